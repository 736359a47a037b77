package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// form are the parameters of a request to an authorization server.
type form map[string]string

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
	return w.send(r)
}

// token asks a token endpoint.
func (w *web) token(ctx context.Context, endpoint string, c *client, f form) (*tokenAnswer, error) {
	resp, err := w.post(ctx, endpoint, c, f)
	if err != nil {
		return nil, err
	}
	a := &tokenAnswer{}
	err = w.answer(resp, endpoint, a, &a.Error)
	switch {
	case err != nil:
		return nil, err
	case !strings.EqualFold(a.Type, "bearer"):
		return nil, errors.New("the authorization server issues a kind of token that is not known; only Bearer is")
	case !sendable(a.Access) || len(a.Refresh) > maxToken:
		return nil, errors.New("the authorization server issues a token that cannot be sent")
	}
	return a, nil
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
