package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// chooseClient returns the client to log in with: the configured one, else the metadata document, else a dynamic registration.
// It registers once per authorization server.
func (w *webClient) chooseClient(ctx context.Context, d *discoveryResult, s *Settings, known *credential, redirect string) (*clientRegistration, error) {
	if known != nil && known.Issuer != d.as.Issuer {
		if s.ClientID != "" && known.Client.ID == s.ClientID && s.AuthorizationServer == "" {
			return nil, fmt.Errorf("the server now names another authorization server (%s), and the client of the configuration belongs to %s; set oauth.authorization_server to the right one",
				redactURL(d.as.Issuer), redactURL(known.Issuer))
		}
		known = nil // issued by another authorization server
	}
	switch {
	case s.ClientID != "":
		return &clientRegistration{Kind: preregistered, ID: s.ClientID, Secret: s.ClientSecret, Method: chooseAuthMethod(s.ClientSecret, d.as.AuthMethods)}, nil
	case s.ClientMetadataURL != "" && d.as.Documents:
		return &clientRegistration{Kind: metadataDocument, ID: s.ClientMetadataURL, Method: methodNone}, nil
	case known != nil && known.Client.Kind == dynamic && known.Client.Redirect == redirect && !known.Client.isExpired():
		return &known.Client, nil
	case d.as.Registration == "":
		return nil, errors.New("the authorization server does not support client registration; register MCPProxy there by hand and set oauth.client_id")
	}
	return w.registerClient(ctx, &d.as, redirect)
}

func (c *clientRegistration) isExpired() bool {
	return !c.SecretUntil.IsZero() && time.Now().After(c.SecretUntil)
}

// chooseAuthMethod returns a supported authentication method for a client with this secret. The
// default is client_secret_basic (RFC 8414).
func chooseAuthMethod(secret string, supported []string) authMethod {
	switch {
	case secret == "":
		return methodNone
	case len(supported) == 0 || slices.Contains(supported, string(methodBasic)):
		return methodBasic
	}
	return methodPost
}

// chooseRegistrationAuthMethod returns the method for a registration: preferably none, because a
// local program cannot hide a secret from its user.
func chooseRegistrationAuthMethod(supported []string) authMethod {
	for _, m := range []authMethod{methodNone, methodBasic, methodPost} {
		if slices.Contains(supported, string(m)) {
			return m
		}
	}
	return methodNone
}

// registerClient registers MCPProxy (RFC 7591).
func (w *webClient) registerClient(ctx context.Context, as *authServerMetadata, redirect string) (*clientRegistration, error) {
	grants := []string{"authorization_code", "refresh_token"}
	if as.DeviceAuthorization != "" {
		grants = append(grants, deviceGrant)
	}
	kind := "native"
	if strings.HasPrefix(redirect, "https://") {
		kind = "web" // OpenID Connect allows native clients only addresses of the user's machine
	}
	body, err := json.Marshal(struct {
		Name            string     `json:"client_name"`
		Redirects       []string   `json:"redirect_uris"`
		Grants          []string   `json:"grant_types"`
		Responses       []string   `json:"response_types"`
		Method          authMethod `json:"token_endpoint_auth_method"`
		ApplicationType string     `json:"application_type"`
	}{"MCPProxy", []string{redirect}, grants, []string{"code"}, chooseRegistrationAuthMethod(as.AuthMethods), kind})
	if err != nil {
		return nil, err
	}
	r, err := w.newRequest(ctx, http.MethodPost, as.Registration, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := w.sendRequest(r)
	if err != nil {
		return nil, err
	}
	var a struct {
		ID      string     `json:"client_id"`
		Secret  string     `json:"client_secret"`
		Method  authMethod `json:"token_endpoint_auth_method"`
		Expires int64      `json:"client_secret_expires_at"`
		Error   string     `json:"error"`
	}
	err = w.decodeResponse(resp, as.Registration, &a, &a.Error)
	switch {
	case err != nil:
		return nil, fmt.Errorf("register: %w", err)
	case a.ID == "" || len(a.ID) > maxToken || len(a.Secret) > maxToken || strings.ContainsFunc(a.ID+a.Secret, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return nil, errors.New("register: the authorization server gives no usable client")
	}
	c := &clientRegistration{Kind: dynamic, ID: a.ID, Secret: a.Secret, Method: a.Method, Redirect: redirect}
	if a.Expires > 0 {
		c.SecretUntil = time.Unix(a.Expires, 0)
	}
	switch c.Method {
	case methodNone, methodBasic, methodPost:
	case "":
		c.Method = chooseAuthMethod(a.Secret, as.AuthMethods)
	default:
		return nil, errors.New("register: the authorization server requires an unknown kind of proof")
	}
	return c, nil
}
