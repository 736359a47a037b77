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

// Address is where a server is reached over HTTP, and with what.
type Address struct {
	URL     string
	Headers map[string]string
	Account Account // proves who asks; nil: nothing does
	Dial    func(*url.URL) (Client, error)
}

// site is a server that is reached over HTTP, with what is said to it beside
// requests. Of its goroutines one tells it what nobody waits for.
type site struct {
	url       *url.URL // changes while the session is being set up only
	redirects int
	fields    http.Header // what the configuration adds
	client    Client
	state     atomic.Pointer[httpState]

	told   *outbox            // when the server is too far behind, what comes is dropped
	cancel context.CancelFunc // ends the goroutines
	wg     sync.WaitGroup
}

// httpState is what the heads of requests are made of.
type httpState struct {
	session   string
	version   string
	post, get *Head
}

// newSite prepares a server; nothing is sent yet, and nothing runs.
func newSite(a Address, o Options) (*site, error) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, problem.Ownf("the url is not an absolute http or https URL")
	}
	l := &site{url: u, fields: http.Header{}, cancel: func() {}, told: newOutbox()}
	l.fields.Set("User-Agent", "mcpproxy/"+o.Version)
	if u.User != nil {
		password, _ := u.User.Password()
		r := http.Request{Header: l.fields}
		r.SetBasicAuth(u.User.Username(), password)
		l.url = stripUser(u)
	}
	for name, value := range a.Headers {
		l.fields.Set(name, value)
	}
	if err := l.setState("", ""); err != nil {
		return nil, err
	}
	client, err := a.Dial(l.url)
	if err != nil {
		return nil, err
	}
	l.client = proven(client, a.Account)
	return l, nil
}

func stripUser(u *url.URL) *url.URL {
	v := *u
	v.User = nil
	return &v
}

// setState renders the heads anew.
func (l *site) setState(id, version string) error {
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
	s := &httpState{session: id, version: version}
	var err error
	if s.post, err = newHead(l.url, common); err != nil {
		return err
	}
	if s.get, err = newHead(l.url, get); err != nil {
		return err
	}
	l.state.Store(s)
	return nil
}

// maxRedirects is how often the first request may be sent to another path.
const maxRedirects = 3

// redirected follows, while the session is being set up, a redirect within the
// same origin: many servers send /mcp to /mcp/. Elsewhere our headers, and the
// credentials in them, never go.
func (l *site) redirected(location string) bool {
	to, err := l.url.Parse(location)
	if err != nil || location == "" || !sameOrigin(to, l.url) || l.redirects >= maxRedirects {
		return false
	}
	l.redirects++
	l.url = stripUser(to)
	state := l.state.Load()
	return l.setState(state.session, state.version) == nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// stream asks for a stream; a StatusError says that the answer is none.
func (l *site) stream(ctx context.Context, state *httpState, fields []mcp.Field) (*Response, error) {
	a, err := l.client.Do(ctx, &Request{Method: http.MethodGet, Head: state.get, Fields: fields})
	if err != nil || a.Status == http.StatusOK && a.Media == events && !a.Encoded {
		return a, err
	}
	defer a.Body.Close()
	return nil, statusOf(a)
}

// send posts a message that has no response.
func (l *site) send(ctx context.Context, state *httpState, msg []byte) error {
	a, err := l.client.Do(ctx, &Request{Method: http.MethodPost, Head: state.post, Body: msg})
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.Status < 200 || a.Status > 299 {
		return statusOf(a)
	}
	if a.Media != events {
		_, _ = readBody(a, maxErrorBody) // so that the connection can be used again
	}
	return nil
}

// Tidy implements Link.
func (l *site) Tidy(now time.Time) { l.client.Reap(now) }
