package transport

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
)

// ServerAddress is the URL of an HTTP server, with headers and credentials.
type ServerAddress struct {
	URL     string
	Headers map[string]string
	Account ServerAuthorizer // nil means no authorization
	Dial    func(*url.URL) (HTTPClient, error)
}

// remoteHTTPServer is an HTTP server with its current session state. One goroutine sends background messages.
type remoteHTTPServer struct {
	url       *url.URL // changed only during the handshake
	redirects int
	fields    http.Header // configured headers
	client    HTTPClient
	state     atomic.Pointer[sessionRequestHeads]

	outbox *outbox            // drops messages when full
	cancel context.CancelFunc // ends the goroutines
	wg     sync.WaitGroup
}

// sessionRequestHeads contains the rendered heads for one session state.
type sessionRequestHeads struct {
	session   string
	version   string
	post, get *RequestHead
}

// newRemoteHTTPServer prepares a server without sending anything.
func newRemoteHTTPServer(a ServerAddress, o LinkOptions) (*remoteHTTPServer, error) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, problem.TrustedTextErrorf("the url is not an absolute http or https URL")
	}
	l := &remoteHTTPServer{url: u, fields: http.Header{}, cancel: func() {}, outbox: newOutbox()}
	l.fields.Set("User-Agent", "mcpproxy/"+o.Version)
	if u.User != nil {
		password, _ := u.User.Password()
		r := http.Request{Header: l.fields}
		r.SetBasicAuth(u.User.Username(), password)
		l.url = stripUserInfo(u)
	}
	for name, value := range a.Headers {
		l.fields.Set(name, value)
	}
	if err := l.setSessionHeads("", ""); err != nil {
		return nil, err
	}
	client, err := a.Dial(l.url)
	if err != nil {
		return nil, err
	}
	l.client = wrapWithAuthorization(client, a.Account)
	return l, nil
}

func stripUserInfo(u *url.URL) *url.URL {
	v := *u
	v.User = nil
	return &v
}

// setSessionHeads sets the session ID and the version, and renders the heads of all later requests with them.
func (l *remoteHTTPServer) setSessionHeads(id, version string) error {
	common := l.fields.Clone()
	if id != "" {
		common.Set(mcp.HeaderSession, id)
	}
	if version != "" {
		common.Set(mcp.HeaderVersion, version)
	}
	get := common.Clone()
	get.Set("Accept", "text/event-stream")
	common.Set("Accept", "application/json, text/event-stream")
	common.Set("Content-Type", "application/json")
	s := &sessionRequestHeads{session: id, version: version}
	var err error
	if s.post, err = newRequestHead(l.url, common); err != nil {
		return err
	}
	if s.get, err = newRequestHead(l.url, get); err != nil {
		return err
	}
	l.state.Store(s)
	return nil
}

// maxRedirects limits the redirects of the first request.
const maxRedirects = 3

// adoptSameOriginRedirect makes the target of a redirect the URL of all later requests, if it has the same origin. It
// reports whether it did so. It sends nothing. Many servers redirect /mcp to /mcp/. Headers and credentials never go to
// another origin.
func (l *remoteHTTPServer) adoptSameOriginRedirect(location string) bool {
	to, err := l.url.Parse(location)
	if err != nil || location == "" || !sameOrigin(to, l.url) || l.redirects >= maxRedirects {
		return false
	}
	l.redirects++
	l.url = stripUserInfo(to)
	state := l.state.Load()
	return l.setSessionHeads(state.session, state.version) == nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// requestEventStream requests an event stream. A StatusError means that the response is not an event stream.
func (l *remoteHTTPServer) requestEventStream(ctx context.Context, state *sessionRequestHeads, fields []mcp.Header) (*HTTPResponse, error) {
	a, err := l.client.Do(ctx, &HTTPRequest{Method: http.MethodGet, Head: state.get, Headers: fields})
	if err != nil || a.Status == http.StatusOK && a.Media == events && !a.Encoded {
		return a, err
	}
	defer a.Body.Close()
	return nil, newStatusError(a)
}

// postToServer posts a message without a response.
func (l *remoteHTTPServer) postToServer(ctx context.Context, state *sessionRequestHeads, msg []byte) error {
	a, err := l.client.Do(ctx, &HTTPRequest{Method: http.MethodPost, Head: state.post, Body: msg})
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.Status < 200 || a.Status > 299 {
		return newStatusError(a)
	}
	if a.Media != events {
		_, _ = readBody(a, maxErrorBody) // makes the connection reusable
	}
	return nil
}

// CloseIdle implements Link.
func (l *remoteHTTPServer) CloseIdle(now time.Time) { l.client.CloseIdle(now) }
