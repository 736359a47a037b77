package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// form are the parameters of a request to an authorization server.
type form map[string]string

// oauthError is an error that an authorization server answers.
type oauthError struct{ code string }

func (e *oauthError) Error() string {
	return "the authorization server answers " + strconv.Quote(e.code)
}

// final reports whether trying again cannot help: what was issued is no good any
// more.
func final(err error) bool {
	var e *oauthError
	if !errors.As(err, &e) {
		return false
	}
	switch e.code {
	case "temporarily_unavailable", "server_error", "slow_down":
		return false
	}
	return true
}

// clientRefused reports whether the authorization server does not know the
// client.
func clientRefused(err error) bool {
	var e *oauthError
	return errors.As(err, &e) && (e.code == "invalid_client" || e.code == "unauthorized_client")
}

// post sends a form on behalf of the client.
func (w *web) post(ctx context.Context, endpoint string, c *client, f form) (*http.Response, error) {
	values := url.Values{}
	for name, value := range f {
		if value != "" {
			values.Set(name, value)
		}
	}
	if c.Method != methodBasic {
		values.Set("client_id", c.ID)
	}
	if c.Method == methodPost {
		values.Set("client_secret", c.Secret)
	}
	r, err := w.request(ctx, http.MethodPost, endpoint, strings.NewReader(values.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if c.Method == methodBasic {
		r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret))
	}
	resp, err := w.http.Do(r)
	if err != nil {
		return nil, bare(err)
	}
	return resp, nil
}

// token asks a token endpoint.
func (w *web) token(ctx context.Context, endpoint string, c *client, f form) (*tokenAnswer, error) {
	resp, err := w.post(ctx, endpoint, c, f)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var a struct {
		Access    string          `json:"access_token"`
		Type      string          `json:"token_type"`
		Refresh   string          `json:"refresh_token"`
		Scope     string          `json:"scope"`
		ExpiresIn json.RawMessage `json:"expires_in"`
		Error     string          `json:"error"`
	}
	err = w.decode(resp, endpoint, &a)
	switch {
	case a.Error != "":
		return nil, &oauthError{clipCode(a.Error)}
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		return nil, fmt.Errorf("%s answers with HTTP status %d", place(endpoint), resp.StatusCode)
	case err != nil:
		return nil, err
	case !strings.EqualFold(a.Type, "bearer"):
		return nil, errors.New("the authorization server issues a kind of token that is not known; only Bearer is")
	case !sendable(a.Access) || len(a.Refresh) > maxToken:
		return nil, errors.New("the authorization server issues a token that cannot be sent")
	}
	return &tokenAnswer{Access: a.Access, Refresh: a.Refresh, Scope: a.Scope, Lifetime: lifetime(a.ExpiresIn)}, nil
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

// lifetime reads expires_in, which some servers send as a text.
func lifetime(raw json.RawMessage) time.Duration {
	seconds, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || !(seconds > 0) {
		return 0
	}
	const most = 10 * 365 * 24 * 3600
	return time.Duration(min(seconds, most)) * time.Second
}

// revoke has a login forgotten. Whether that works changes nothing here.
func (w *web) revoke(ctx context.Context, c *credential) {
	if c.RevocationEndpoint == "" {
		return
	}
	f := form{"token": c.Refresh, "token_type_hint": "refresh_token"}
	if c.Refresh == "" {
		f = form{"token": c.Access, "token_type_hint": "access_token"}
	}
	if resp, err := w.post(ctx, c.RevocationEndpoint, &c.Client, f); err == nil {
		_ = resp.Body.Close()
	}
}
