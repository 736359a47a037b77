package upstream

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"mcpproxy/internal/reach"
)

// stdClient is net/http: for TLS, HTTP/2 and proxies.
type stdClient struct {
	transport *http.Transport
}

func newStdClient(rule reach.Rule) *stdClient {
	return &stdClient{&http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            rule.Dial,
		TLSHandshakeTimeout:    15 * time.Second,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    maxIdleConns,
		IdleConnTimeout:        idleConnTime,
		MaxResponseHeaderBytes: maxHead,
		ForceAttemptHTTP2:      true,
	}}
}

// do sends the request. net/http sends a POST again only when it knows that
// the server has not acted on it.
func (c *stdClient) do(ctx context.Context, r *exchange) (*answer, error) {
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	})
	req := (&http.Request{Method: r.method, URL: r.head.url, Host: r.head.fields.Get("Host"),
		Header: r.head.fields, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if len(r.fields) > 0 {
		req.Header = r.head.fields.Clone()
		for _, f := range r.fields {
			req.Header.Set(f.Name, f.Value)
		}
	}
	if r.auth != "" {
		req.Header = req.Header.Clone()
		req.Header.Set("Authorization", r.auth)
	}
	if r.body != nil {
		body := bytes.Clone(r.body) // net/http may go on reading it after RoundTrip
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(body))
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		if expired(ctx) {
			err = ctx.Err()
		}
		if !connected {
			return nil, &unsentError{err}
		}
		return nil, err
	}
	h := resp.Header
	a := &answer{
		status: resp.StatusCode, media: mediaOf(h.Get("Content-Type")), length: resp.ContentLength,
		session: h.Get("Mcp-Session-Id"), location: h.Get("Location"), challenge: strings.Join(h.Values("WWW-Authenticate"), ", "),
		encoded: h.Get("Content-Encoding") != "" && h.Get("Content-Encoding") != "identity",
		body:    resp.Body,
	}
	if r.passes {
		a.passAll(h)
	}
	return a, nil
}

func (c *stdClient) reap(time.Time) {} // IdleConnTimeout does it

func (c *stdClient) close() { c.transport.CloseIdleConnections() }
