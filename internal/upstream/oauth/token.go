package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// formParams are the parameters of a request to an authorization server.
type formParams map[string]string

// postForm sends a form as the client.
func (w *webClient) postForm(ctx context.Context, endpoint string, c *clientRegistration, f formParams) (*http.Response, error) {
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
	r, err := w.newRequest(ctx, http.MethodPost, endpoint, strings.NewReader(values.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if c.Method == methodBasic {
		r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret))
	}
	return w.sendRequest(r)
}

// requestToken sends a request to a token endpoint.
func (w *webClient) requestToken(ctx context.Context, endpoint string, c *clientRegistration, f formParams) (*tokenResponse, error) {
	resp, err := w.postForm(ctx, endpoint, c, f)
	if err != nil {
		return nil, err
	}
	a := &tokenResponse{}
	err = w.decodeResponse(resp, endpoint, a, &a.Error)
	switch {
	case err != nil:
		return nil, err
	case !strings.EqualFold(a.Type, "bearer"):
		return nil, errors.New("the authorization server issues tokens of an unsupported type; only Bearer tokens are supported")
	case !isValidInHeader(a.Access) || len(a.Refresh) > maxToken:
		return nil, errors.New("the authorization server issues a token that cannot be sent in a header")
	}
	return a, nil
}

// revokeToken revokes a login; errors are ignored.
func (w *webClient) revokeToken(ctx context.Context, c *credential) {
	if c.RevocationEndpoint == "" {
		return
	}
	f := formParams{"token": c.Refresh, "token_type_hint": "refresh_token"}
	if c.Refresh == "" {
		f = formParams{"token": c.Access, "token_type_hint": "access_token"}
	}
	if resp, err := w.postForm(ctx, c.RevocationEndpoint, &c.Client, f); err == nil {
		_ = resp.Body.Close()
	}
}
