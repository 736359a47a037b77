package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/mcp/dialpolicy"
)

// Bounds on requests to authorization servers.
const (
	maxDocument    = 256 << 10
	maxToken       = 16 << 10
	maxRedirects   = 3
	requestTimeout = 15 * time.Second
)

// webClient sends the requests of one account to authorization servers. Every address is
// checked when it is dialed, so that neither a name nor a redirect leads to a forbidden
// address.
type webClient struct {
	http  *http.Client
	guard urlGuard
	agent string
}

func newWebClient(g urlGuard, agent string) *webClient {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: g.Dial, TLSHandshakeTimeout: 10 * time.Second,
		DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, ResponseHeaderTimeout: requestTimeout,
	}
	w := &webClient{guard: g, agent: agent}
	w.http = &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: w.checkRedirect}
	return w
}

// checkRedirect follows a few redirects of documents to allowed URLs, and none of requests
// with a secret.
func (w *webClient) checkRedirect(r *http.Request, via []*http.Request) error {
	switch {
	case via[0].Method != http.MethodGet:
		return http.ErrUseLastResponse
	case len(via) > maxRedirects:
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	}
	return w.guard.checkURL(r.URL)
}

// errNoDocument means that the document does not exist.
var errNoDocument = errors.New("the document does not exist")

// fetchDocument fetches a JSON document.
func (w *webClient) fetchDocument(ctx context.Context, address string, into any) error {
	r, err := w.newRequest(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := w.sendRequest(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return errNoDocument
	case resp.StatusCode == http.StatusOK && isWebPage(resp):
		return errNoDocument // some sites return their start page for every path
	case resp.StatusCode != http.StatusOK:
		return newStatusError(resp, address)
	}
	return w.decodeJSON(resp, address, into)
}

// decodeResponse decodes and closes a response; refusal points to the field for OAuth's
// error code.
func (w *webClient) decodeResponse(resp *http.Response, address string, into any, refusal *string) error {
	defer func() { _ = resp.Body.Close() }()
	err := w.decodeJSON(resp, address, into)
	switch {
	case *refusal != "":
		return &oauthError{sanitizeErrorCode(*refusal)}
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		return newStatusError(resp, address)
	}
	return err
}

// isWebPage reports whether a response is a web page instead of JSON.
func isWebPage(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/html"
}

func newStatusError(resp *http.Response, address string) error {
	if isWebPage(resp) {
		return fmt.Errorf("%s answers with HTTP status %d and a web page", redactURL(address), resp.StatusCode)
	}
	return fmt.Errorf("%s answers with HTTP status %d", redactURL(address), resp.StatusCode)
}

// oauthError is an error response of an authorization server.
type oauthError struct{ code string }

func (e *oauthError) Error() string {
	return "the authorization server answers " + strconv.Quote(e.code)
}

// isFinalRejection reports whether retries are useless, because what was issued is no longer
// valid.
func isFinalRejection(err error) bool {
	var e *oauthError
	return errors.As(err, &e) && e.code != "temporarily_unavailable" && e.code != "server_error" && e.code != "slow_down"
}

// isUnknownClient reports whether the authorization server does not know the client.
func isUnknownClient(err error) bool {
	var e *oauthError
	return errors.As(err, &e) && (e.code == "invalid_client" || e.code == "unauthorized_client")
}

// sanitizeErrorCode returns the valid part of an error code.
func sanitizeErrorCode(code string) string {
	var b strings.Builder
	for _, r := range code {
		if b.Len() < 60 && r >= ' ' && r <= '~' && r != '"' && r != '\\' {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (w *webClient) decodeJSON(resp *http.Response, address string, into any) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return redactURLInError(err)
	case len(body) > maxDocument:
		return fmt.Errorf("the answer of %s is larger than %d bytes", redactURL(address), maxDocument)
	case json.Unmarshal(body, into) != nil:
		return fmt.Errorf("the answer of %s is not the expected JSON", redactURL(address))
	}
	return nil
}

// rejectsClient reports whether the authorization page rejects the client: with status 400 or 401, or with a redirect
// that says so. Otherwise a user would only see an error page there.
func (w *webClient) rejectsClient(ctx context.Context, page string) bool {
	r, err := w.newRequest(ctx, http.MethodGet, page, nil)
	if err != nil {
		return false
	}
	r.Header.Set("Accept", "text/html,application/json")
	once := *w.http
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := once.Do(r)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	if to, err := resp.Location(); err == nil {
		return isUnknownClient(&oauthError{to.Query().Get("error")})
	}
	return resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnauthorized
}

func (w *webClient) newRequest(ctx context.Context, method, address string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, errors.New("an address is not a URL")
	}
	if err := w.guard.checkURL(r.URL); err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", w.agent)
	return r, nil
}

// sendRequest sends a request; URLs in errors contain no secrets.
func (w *webClient) sendRequest(r *http.Request) (*http.Response, error) {
	resp, err := w.http.Do(r)
	if err != nil {
		return nil, redactURLInError(err)
	}
	return resp, nil
}

// redactURL returns a URL without the parts that may be secret.
func redactURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the address"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// redactURLInError removes the URL from an error, because it may contain a secret.
func redactURLInError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("%s: %w", redactURL(u.URL), u.Err)
	}
	return err
}

// urlGuard decides which URLs may be requested and which addresses dialed.
type urlGuard struct{ dialpolicy.Policy }

// checkURL checks a URL before a request.
func (g urlGuard) checkURL(u *url.URL) error {
	host := u.Hostname()
	switch {
	case host == "" || u.User != nil:
		return fmt.Errorf("%s cannot be used", redactURL(u.String()))
	case u.Scheme == "https":
	case u.Scheme == "http" && dialpolicy.IsLoopbackHost(host) && (g.Loopback || g.Private):
	default:
		return fmt.Errorf("%s cannot be used: it is not https (http is for this machine only)", redactURL(u.String()))
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return g.CheckAddr(addr)
	}
	return nil
}
