package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/mcp/dialpolicy"
)

// Bounds on what authorization servers may send and take.
const (
	maxDocument  = 256 << 10
	maxToken     = 16 << 10
	maxRedirects = 3
	requestTime  = 15 * time.Second
)

// web makes the requests of one account to authorization servers. Every
// address is checked when it is dialled, so that neither a name nor a redirect
// leads to where it must not.
type web struct {
	http  *http.Client
	guard guard
	agent string
}

func newWeb(g guard, agent string) *web {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: g.Dial, TLSHandshakeTimeout: 10 * time.Second,
		DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, ResponseHeaderTimeout: requestTime,
	}
	w := &web{guard: g, agent: agent}
	w.http = &http.Client{Transport: transport, Timeout: requestTime, CheckRedirect: w.redirect}
	return w
}

// redirect follows a few redirects of documents, each to a URL that would do by
// itself, and none of what carries a secret.
func (w *web) redirect(r *http.Request, via []*http.Request) error {
	switch {
	case via[0].Method != http.MethodGet:
		return http.ErrUseLastResponse
	case len(via) > maxRedirects:
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	}
	return w.guard.check(r.URL)
}

// errAbsent says that there is no such document.
var errAbsent = errors.New("there is no such document")

// document fetches a JSON document.
func (w *web) document(ctx context.Context, address string, into any) error {
	r, err := w.request(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := w.send(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return errAbsent
	case resp.StatusCode != http.StatusOK:
		return statusError(resp, address)
	}
	return w.decode(resp, address, into)
}

// answer reads what an endpoint answers, into a structure whose field refusal
// is the error code of OAuth, and closes it.
func (w *web) answer(resp *http.Response, address string, into any, refusal *string) error {
	defer func() { _ = resp.Body.Close() }()
	err := w.decode(resp, address, into)
	switch {
	case *refusal != "":
		return &oauthError{clipCode(*refusal)}
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		return statusError(resp, address)
	}
	return err
}

func statusError(resp *http.Response, address string) error {
	return fmt.Errorf("%s answers with HTTP status %d", place(address), resp.StatusCode)
}

// oauthError is an error that an authorization server answers.
type oauthError struct{ code string }

func (e *oauthError) Error() string {
	return "the authorization server answers " + strconv.Quote(e.code)
}

// final reports whether trying again cannot help: what was issued is no good any
// more.
func final(err error) bool {
	var e *oauthError
	return errors.As(err, &e) && e.code != "temporarily_unavailable" && e.code != "server_error" && e.code != "slow_down"
}

// clientRefused reports whether the authorization server does not know the
// client.
func clientRefused(err error) bool {
	var e *oauthError
	return errors.As(err, &e) && (e.code == "invalid_client" || e.code == "unauthorized_client")
}

// clipCode keeps of an error code what can be one.
func clipCode(code string) string {
	var b strings.Builder
	for _, r := range code {
		if b.Len() < 60 && r >= ' ' && r <= '~' && r != '"' && r != '\\' {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (w *web) decode(resp *http.Response, address string, into any) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return bare(err)
	case len(body) > maxDocument:
		return fmt.Errorf("the answer of %s is larger than %d bytes", place(address), maxDocument)
	case json.Unmarshal(body, into) != nil:
		return fmt.Errorf("the answer of %s is not the JSON that is expected", place(address))
	}
	return nil
}

func (w *web) request(ctx context.Context, method, address string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, errors.New("an address is no URL")
	}
	if err := w.guard.check(r.URL); err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", w.agent)
	return r, nil
}

// send sends a request; the URL in an error is without what may be secret in it.
func (w *web) send(r *http.Request) (*http.Response, error) {
	resp, err := w.http.Do(r)
	if err != nil {
		return nil, bare(err)
	}
	return resp, nil
}

// place returns where an address leads, without what may be secret in it.
func place(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the address"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// bare takes the URL out of an error: it may hold a secret.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("%s: %w", place(u.URL), u.Err)
	}
	return err
}

// guard decides which URLs may be asked, and which addresses dialled.
type guard struct{ dialpolicy.Policy }

// check judges a URL before it is asked.
func (g guard) check(u *url.URL) error {
	host := u.Hostname()
	switch {
	case host == "" || u.User != nil:
		return fmt.Errorf("%s cannot be used", place(u.String()))
	case u.Scheme == "https":
	case u.Scheme == "http" && dialpolicy.IsLocalName(host) && (g.Loopback || g.Private):
	default:
		return fmt.Errorf("%s cannot be used: it is not https (http is for this machine only)", place(u.String()))
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return g.Check(addr)
	}
	return nil
}
