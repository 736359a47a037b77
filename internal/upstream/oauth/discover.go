package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/dialpolicy"
)

// resourceMetadata is a server's protected resource metadata (RFC 9728).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// authServerMetadata is an authorization server's metadata (RFC 8414).
type authServerMetadata struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	Scopes        []string `json:"scopes_supported"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	PKCE          []string `json:"code_challenge_methods_supported"`
	IssParameter  bool     `json:"authorization_response_iss_parameter_supported"`
	Documents     bool     `json:"client_id_metadata_document_supported"`

	DeviceAuthorization string `json:"device_authorization_endpoint"`
}

// discoveryResult is the discovered data for a login.
type discoveryResult struct {
	resource string // resource parameter for the token
	scopes   []string
	as       authServerMetadata
}

// discoverAuthServer finds the authorization server of a server.
func (w *webClient) discoverAuthServer(ctx context.Context, server *url.URL, asked bearerChallenge, s *Settings) (*discoveryResult, error) {
	rm, err := w.fetchResourceMetadata(ctx, server, asked.metadata)
	if errors.Is(err, errNoDocument) {
		return w.discoverLegacyAuthServer(ctx, server)
	}
	if err != nil {
		return nil, err
	}
	issuer, err := chooseIssuer(rm.Servers, s.AuthorizationServer)
	if err != nil {
		return nil, err
	}
	as, err := w.fetchAuthServerMetadata(ctx, issuer)
	if errors.Is(err, errNoDocument) {
		return nil, fmt.Errorf("the authorization server %s publishes no metadata at the well-known URLs", redactURL(issuer))
	}
	if err != nil {
		return nil, err
	}
	return &discoveryResult{resource: rm.Resource, scopes: rm.Scopes, as: *as}, w.checkEndpoints(as)
}

// chooseIssuer returns the configured authorization server, or the first one that the
// server names.
func chooseIssuer(named []string, wanted string) (string, error) {
	if len(named) == 0 {
		return "", errors.New("the server names no authorization server")
	}
	if wanted == "" {
		return named[0], nil
	}
	if i := slices.IndexFunc(named, func(n string) bool { return isSameIssuer(n, wanted) }); i >= 0 {
		return named[i], nil
	}
	return "", fmt.Errorf("the server does not name the authorization server that oauth.authorization_server is set to; it names %s", redactURL(named[0]))
}

// isSameIssuer compares issuers. A path that is only a slash makes no difference.
func isSameIssuer(a, b string) bool { return trimRootSlash(a) == trimRootSlash(b) }

func trimRootSlash(issuer string) string {
	if u, err := url.Parse(issuer); err == nil && u.Path == "/" && u.RawQuery == "" && u.Fragment == "" {
		return strings.TrimSuffix(issuer, "/")
	}
	return issuer
}

// fetchResourceMetadata fetches the server's metadata from the URL in its challenge or from the two well-known URLs. It
// returns errNoDocument if there is none.
func (w *webClient) fetchResourceMetadata(ctx context.Context, server *url.URL, named string) (*resourceMetadata, error) {
	root := url.URL{Scheme: server.Scheme, Host: server.Host}
	places := []string{root.String() + "/.well-known/oauth-protected-resource"}
	if path := strings.TrimSuffix(server.EscapedPath(), "/"); path != "" {
		places = slices.Insert(places, 0, places[0]+path)
	}
	if named != "" {
		places = slices.Insert(places, 0, named)
	}
	rm := &resourceMetadata{}
	address, err := w.fetchFirstExisting(ctx, places, rm)
	switch {
	case err != nil:
		return nil, fmt.Errorf("find out where to log in: %w", err)
	case !resourceIncludesServer(rm.Resource, server):
		return nil, fmt.Errorf("the metadata at %s is for another resource than this server", redactURL(address))
	}
	return rm, nil
}

// fetchFirstExisting fetches the first document that exists and returns its URL. It returns errNoDocument if there is
// none.
func (w *webClient) fetchFirstExisting(ctx context.Context, addresses []string, into any) (string, error) {
	for _, address := range addresses {
		if err := w.fetchDocument(ctx, address, into); !errors.Is(err, errNoDocument) {
			return address, err
		}
	}
	return "", errNoDocument
}

// resourceIncludesServer reports whether a resource includes the server: the same origin, and a path
// prefix.
func resourceIncludesServer(resource string, server *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || !strings.EqualFold(r.Scheme, server.Scheme) || !strings.EqualFold(dialpolicy.HostPort(r), dialpolicy.HostPort(server)) || r.User != nil {
		return false
	}
	path := strings.TrimSuffix(r.EscapedPath(), "/")
	return path == strings.TrimSuffix(server.EscapedPath(), "/") || strings.HasPrefix(server.EscapedPath(), path+"/")
}

// fetchAuthServerMetadata fetches the metadata of an authorization server, in the order of the MCP
// specification, and compares its issuer with the requested one.
func (w *webClient) fetchAuthServerMetadata(ctx context.Context, issuer string) (*authServerMetadata, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the issuer of the authorization server is not a usable URL")
	}
	root := u.Scheme + "://" + u.Host
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{root + "/.well-known/oauth-authorization-server" + path, root + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, root+path+"/.well-known/openid-configuration")
	}
	as := &authServerMetadata{}
	address, err := w.fetchFirstExisting(ctx, places, as)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask the authorization server: %w", err)
	case !isSameIssuer(as.Issuer, issuer):
		return nil, fmt.Errorf("the metadata at %s is of another issuer than the one that the server names", redactURL(address))
	}
	return as, nil
}

// discoverLegacyAuthServer is for servers of MCP 2025-03-26: they are the authorization server
// themselves, with default endpoints if there is no metadata.
func (w *webClient) discoverLegacyAuthServer(ctx context.Context, server *url.URL) (*discoveryResult, error) {
	root := server.Scheme + "://" + server.Host
	as, err := w.fetchAuthServerMetadata(ctx, root)
	if errors.Is(err, errNoDocument) {
		as, err = &authServerMetadata{Issuer: root, Authorization: root + "/authorize", Token: root + "/token",
			Registration: root + "/register", PKCE: []string{"S256"}}, nil
	}
	if err != nil {
		return nil, err
	}
	return &discoveryResult{resource: server.String(), as: *as}, w.checkEndpoints(as)
}

// checkEndpoints checks the endpoints before any is used.
func (w *webClient) checkEndpoints(as *authServerMetadata) error {
	for _, endpoint := range []struct {
		name, address string
		needed        bool
	}{
		{"authorization_endpoint", as.Authorization, true}, {"token_endpoint", as.Token, true},
		{"registration_endpoint", as.Registration, false}, {"revocation_endpoint", as.Revocation, false},
		{"device_authorization_endpoint", as.DeviceAuthorization, false},
	} {
		if endpoint.address == "" && !endpoint.needed {
			continue
		}
		u, err := url.Parse(endpoint.address)
		if err != nil || u.Host == "" || u.Fragment != "" || strings.ContainsFunc(endpoint.address, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("the %s of the authorization server is not a usable URL", endpoint.name)
		}
		if err := w.guard.checkURL(u); err != nil {
			return fmt.Errorf("the %s of the authorization server: %w", endpoint.name, err)
		}
	}
	if !slices.Contains(as.PKCE, "S256") {
		return errors.New("the authorization server does not declare support of PKCE with S256, which a safe login requires")
	}
	return nil
}
