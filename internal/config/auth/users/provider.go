package users

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp/dialpolicy"
)

// Limits of the requests to a provider.
const (
	providerTimeout = 10 * time.Second
	maxAnswer       = 1 << 20
	// keysAge is how long keys are used before they are read again, so that a key that the provider withdraws ends.
	keysAge = 5 * time.Minute
	// keysInterval is the shortest time between two reads of the keys: anyone can send a token with an unknown key.
	keysInterval = 5 * time.Second
	// awayInterval is the shortest time between two attempts to read the metadata.
	awayInterval = 2 * time.Second
)

// errKeysFresh means that the keys were read a moment ago, so that an unknown key counts as wrong.
var errKeysFresh = errors.New("the keys of the provider were read a moment ago")

// provider is the connection to one provider. Its fields below mu are read once, and again after keysAge.
type provider struct {
	Issuer
	client    *http.Client
	transport *boundedTransport
	now       func() time.Time
	internal  atomic.Bool // the last metadata came from a private address

	mu       sync.Mutex
	tried    time.Time
	read     time.Time
	verifier *oidc.IDTokenVerifier
	ends     endpoints
}

// endpoints are the parts of a provider's metadata that are used.
type endpoints struct {
	Keys          string `json:"jwks_uri"`
	UserInfo      string `json:"userinfo_endpoint"`
	Introspection string `json:"introspection_endpoint"`
}

// newProvider returns the connection to a provider. It sends nothing.
func newProvider(i Issuer, now func() time.Time) *provider {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	p := &provider{Issuer: i, now: now, transport: &boundedTransport{inner: transport, now: now}}
	transport.DialContext = p.dial
	p.client = &http.Client{
		Transport: p.transport, Timeout: providerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p
}

// dial connects to the host of the issuer, which is configured, also at a private address. Other hosts are named by the
// provider: they may have private addresses only if the provider has one.
func (p *provider) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	own := ""
	if u, err := url.Parse(p.URL); err == nil {
		own = u.Hostname()
	}
	return dialpolicy.ForHost(own, p.internal.Load() || strings.EqualFold(host, own)).Dial(ctx, network, address)
}

// noteAddress sets p.internal for a connection that the certificate of the issuer has proven.
func (p *provider) noteAddress(info httptrace.GotConnInfo) {
	at, err := netip.ParseAddrPort(info.Conn.RemoteAddr().String())
	p.internal.Store(err == nil && dialpolicy.Policy{Loopback: true}.CheckAddr(at.Addr()) != nil)
}

// connect returns the verifier and the endpoints of the provider. It reads the metadata when it is needed.
func (p *provider) connect() (*oidc.IDTokenVerifier, endpoints, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.verifier != nil && now.Sub(p.read) < keysAge || now.Sub(p.tried) < awayInterval && !p.tried.IsZero() {
		return p.current()
	}
	p.tried = now
	ctx := oidc.ClientContext(context.Background(), p.client) // the key set keeps it
	found, err := oidc.NewProvider(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: p.noteAddress}), p.URL)
	var ends endpoints
	if err == nil {
		err = found.Claims(&ends)
	}
	for _, one := range []string{ends.Keys, ends.UserInfo, ends.Introspection} {
		if err == nil && one != "" {
			err = CheckURL(one)
		}
	}
	if err != nil { // the metadata and the keys of before stay valid
		return p.current()
	}
	p.transport.forget()
	keys := oidc.NewRemoteKeySet(ctx, ends.Keys)
	p.verifier = oidc.NewVerifier(p.URL, keys, &oidc.Config{SkipClientIDCheck: true, SkipExpiryCheck: true, SupportedSigningAlgs: algorithms})
	p.ends, p.read = ends, now
	return p.current()
}

func (p *provider) current() (*oidc.IDTokenVerifier, endpoints, error) {
	if p.verifier == nil {
		return nil, endpoints{}, auth.ErrProviderAway
	}
	return p.verifier, p.ends, nil
}

// verify checks the signature of a token, and returns its claims.
func (p *provider) verify(ctx context.Context, text string) (claims, error) {
	verifier, _, err := p.connect()
	if err != nil {
		return nil, err
	}
	token, err := verifier.Verify(ctx, text)
	if err != nil {
		if away, ok := errors.AsType[*url.Error](err); ok && !errors.Is(away, errKeysFresh) {
			return nil, auth.ErrProviderAway
		}
		return nil, refuse("The signature of the token is not valid")
	}
	var all claims
	if err := token.Claims(&all); err != nil {
		return nil, refuse("The token is malformed")
	}
	return all, nil
}

// check asks the provider whether it still accepts a token. It returns what the provider says of the user.
func (p *provider) check(ctx context.Context, text, subject string) (claims, error) {
	if p.Check == CheckOff {
		return nil, nil
	}
	_, ends, err := p.connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), providerTimeout) // others wait for the result
	defer cancel()
	var r *http.Request
	if p.Check == CheckIntrospection {
		form := url.Values{"token": {text}, "token_type_hint": {"access_token"}}.Encode()
		r, err = http.NewRequestWithContext(ctx, http.MethodPost, ends.Introspection, strings.NewReader(form))
	} else {
		r, err = http.NewRequestWithContext(ctx, http.MethodGet, ends.UserInfo, nil)
	}
	if err != nil || r.URL.Host == "" {
		return nil, auth.ErrProviderAway
	}
	if p.Check == CheckIntrospection {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth(url.QueryEscape(p.CheckClient), url.QueryEscape(p.CheckPassword))
	} else {
		r.Header.Set("Authorization", "Bearer "+text)
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return nil, auth.ErrProviderAway
	}
	defer func() { _ = resp.Body.Close() }()
	var said claims
	switch err := json.NewDecoder(resp.Body).Decode(&said); {
	case p.Check == CheckUserInfo && resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests:
		return nil, refuse("The provider no longer accepts the token")
	case resp.StatusCode != http.StatusOK || err != nil:
		return nil, auth.ErrProviderAway
	case p.Check == CheckIntrospection && !said.isTrue("active"):
		return nil, refuse("The provider no longer accepts the token")
	case said.text("sub") != subject && (p.Check == CheckUserInfo || said.text("sub") != ""):
		return nil, refuse("The provider names another user for the token")
	}
	return said, nil
}

// boundedTransport limits the answers of a provider, and how often its keys are read.
type boundedTransport struct {
	inner http.RoundTripper
	now   func() time.Time

	mu   sync.Mutex // guards last
	last struct {   // the last read of the keys
		at  time.Time
		err error
	}
}

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || r.Header.Get("Authorization") != "" || strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration") {
		return t.send(r)
	}
	t.mu.Lock() // the key set sends one request at a time
	defer t.mu.Unlock()
	if now := t.now(); now.Sub(t.last.at) < keysInterval {
		if t.last.err != nil {
			return nil, t.last.err
		}
		return nil, errKeysFresh
	}
	resp, err := t.send(r)
	t.last.at, t.last.err = t.now(), err
	return resp, err
}

func (t *boundedTransport) send(r *http.Request) (*http.Response, error) {
	resp, err := t.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 500 {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the provider answers with status %d", resp.StatusCode)
	}
	resp.Body = &boundedBody{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	return resp, nil
}

// forget allows the next read of the keys at once.
func (t *boundedTransport) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last.at = time.Time{}
}

// boundedBody is the beginning of a body.
type boundedBody struct {
	io.Reader
	io.Closer
}

// CheckURL returns an error for the URL of a provider that is neither https nor on this machine.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return errors.New("is not a URL such as https://login.example.com")
	case u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return errors.New("must begin with https:// unless it is on this machine")
}

func isLoopback(host string) bool {
	return host == "127.0.0.1" || host == "::1" || host == "localhost"
}
