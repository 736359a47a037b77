package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// Prefix is the path of the API.
const Prefix = "/api/v1"

// UI is the name of the web UI in the surfaces of ops.Status.
const UI = "ui"

// SourceHeader names the MCPProxy program that sends the request: cli or ui.
const SourceHeader = "X-MCPProxy-Source"

// Endpoint is the address of the daemon and the credentials of the client.
type Endpoint struct {
	Socket  string          // path of the unix socket; if empty, URL and Key are used
	URL     string          // http://host:port
	Key     string          // API key for URL
	Source  activity.Source // cli or ui; empty means rest
	Version string          // of the client program
	// Permit shows a statement to the user and returns it signed. If it is nil, nothing is signed.
	Permit func(ctx context.Context, a presence.SignRequest) (presence.SignedStatement, error)
}

// Timeouts for the response header. A tool call has no such timeout, because the daemon limits its duration.
const (
	responseTimeout = 10 * time.Second
	loginTimeout    = 45 * time.Second // the daemon contacts several other servers
	restartTimeout  = 20 * time.Second // the daemon itself waits for the server up to 10 s
)

var errNoResponse = errors.New("the daemon sent no response")

// Client sends requests to a daemon. Its errors are *problem.Problem.
type Client struct {
	base     string
	endpoint Endpoint
	http     *http.Client
}

// NewClient returns a client. It does not connect yet.
func NewClient(e Endpoint) *Client {
	c := &Client{base: strings.TrimSuffix(e.URL, "/"), endpoint: e}
	transport := &http.Transport{Proxy: nil, DisableCompression: true, IdleConnTimeout: time.Minute}
	if e.Socket != "" {
		c.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return DialSocket(ctx, e.Socket) }
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// sendSignedIfRequired sends one request with a JSON body. The response header must arrive within wait; 0 means no
// limit. If the daemon requires proof of presence, the user signs and the request is sent again.
func (c *Client) sendSignedIfRequired(ctx context.Context, wait time.Duration, method string, asks clientRequest, out any) error {
	err := c.sendAndDecode(ctx, wait, method, asks, out)
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok || p.Code != problem.PresenceRequired || p.Detail("statement") == nil || c.endpoint.Permit == nil {
		return err
	}
	detail := func(name string) json.RawMessage { raw, _ := p.Detail(name).(json.RawMessage); return raw }
	asked, err := presence.ParseSignRequest(detail("statement"), detail("claims"), detail("anchor"))
	if err == nil && asked.For != c.methodAndURI(method, asks) {
		err = errors.New("it belongs to another request: " + problem.ClipName(asked.For))
	}
	if err != nil {
		return problem.New(problem.Internal, "The text to sign cannot be trusted: "+err.Error()+".", "Check that MCPProxy is the program that answers at "+c.daemonAddress()+".").Because(err)
	}
	signed, err := c.endpoint.Permit(ctx, asked)
	if err != nil {
		return err
	}
	again := asks
	again.header = asks.header.Clone()
	again.header.Set(presence.Header, signed.HeaderValue())
	return c.sendAndDecode(ctx, wait, method, again, out)
}

// methodAndURI returns the method and URI that the statement for this request must contain.
func (c *Client) methodAndURI(method string, asks clientRequest) string {
	u, err := url.Parse(c.base + Prefix + asks.path)
	if err != nil {
		return ""
	}
	return method + " " + u.RequestURI()
}

// sendAndDecode sends one request.
func (c *Client) sendAndDecode(ctx context.Context, wait time.Duration, method string, asks clientRequest, out any) error {
	var reader io.Reader
	if asks.body != nil {
		raw, err := wirejson.MarshalWithoutHTMLEscape(asks.body) // sends the arguments unchanged
		if err != nil {
			return problem.From(fmt.Errorf("encode the request: %w", err))
		}
		reader = bytes.NewReader(raw)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := c.send(ctx, wait, cancel, method, asks, reader)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return c.toUnreachableError(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return parseProblem(resp, answer)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return problem.New(problem.Internal, "The daemon returned a response that could not be decoded.",
			"The daemon and this command may have different versions. Restart the daemon.").Because(err)
	}
	return nil
}

// send sends a request and cancels it when no header arrives within wait.
func (c *Client) send(ctx context.Context, wait time.Duration, cancel context.CancelCauseFunc, method string, asks clientRequest, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+Prefix+asks.path, body)
	if err != nil {
		return nil, problem.From(fmt.Errorf("make the request: %w", err))
	}
	req.Header = asks.header
	c.setHeaders(req, asks.body != nil)
	if wait > 0 {
		timer := time.AfterFunc(wait, func() { cancel(errNoResponse) })
		defer timer.Stop()
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.toUnreachableError(ctx, err)
	}
	return resp, nil
}

// streamTo sends a request without a body and copies the response to w. It stops at an error of w.
func (c *Client) streamTo(ctx context.Context, method string, asks clientRequest, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := c.send(ctx, responseTimeout, cancel, method, asks, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			return c.toUnreachableError(ctx, err)
		}
		return parseProblem(resp, answer)
	}
	out := &errorRecordingWriter{to: w}
	if _, err = io.Copy(out, resp.Body); err == nil || out.err != nil {
		return out.err
	}
	return c.toUnreachableError(ctx, err)
}

// errorRecordingWriter records write errors, to distinguish them from read errors in io.Copy.
type errorRecordingWriter struct {
	to  io.Writer
	err error
}

func (p *errorRecordingWriter) Write(b []byte) (n int, err error) {
	n, p.err = p.to.Write(b)
	return n, p.err
}

func (c *Client) setHeaders(req *http.Request, body bool) {
	if body {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "mcpproxy/"+c.endpoint.Version)
	if c.endpoint.Source != "" {
		req.Header.Set(SourceHeader, string(c.endpoint.Source))
	}
	if c.endpoint.Key != "" && c.endpoint.Socket == "" {
		req.Header.Set("X-API-Key", c.endpoint.Key)
	}
}

// toUnreachableError converts a transport error to a problem that says why the daemon cannot be reached.
func (c *Client) toUnreachableError(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errNoResponse):
		return problem.New(problem.DaemonNotRunning, "The daemon at "+c.daemonAddress()+" does not answer.",
			"Check its log for the cause, and restart it.").Because(err)
	case errors.Is(ctx.Err(), context.Canceled):
		return problem.New(problem.Interrupted, "Interrupted.", "").Because(err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return problem.New(problem.Timeout, "MCPProxy did not respond in time.", "Try again, or allow more time.").Because(err)
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return problem.New(problem.DaemonNotRunning, "MCPProxy is not running: nothing responds at "+c.daemonAddress()+".",
			"Start it with `mcpproxy serve`, or name its data directory with --data-dir.").Because(err)
	}
	return problem.New(problem.DaemonNotRunning, "The connection to MCPProxy at "+c.daemonAddress()+" broke off.",
		"Check that it still runs with `mcpproxy status`.").Because(err)
}

// IsDaemonAbsentError reports whether err means that no daemon is running. In this case, the request was not sent.
func IsDaemonAbsentError(err error) bool {
	var op *net.OpError
	return err != nil && problem.From(err).Code == problem.DaemonNotRunning && errors.As(err, &op) && op.Op == "dial" &&
		!op.Timeout() && !errors.Is(err, fs.ErrPermission)
}

func (c *Client) daemonAddress() string {
	if c.endpoint.Socket != "" {
		return c.endpoint.Socket
	}
	return c.endpoint.URL
}

// parseProblem decodes a problem document.
func parseProblem(resp *http.Response, body []byte) error {
	var d problemDocument
	if err := json.Unmarshal(body, &d); err != nil || d.Code == "" {
		return problem.Newf(problem.Internal, "The response is not from MCPProxy's API: %s.", resp.Status).
			WithHint("Check the address.")
	}
	return d.toProblem()
}
