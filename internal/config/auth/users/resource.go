package users

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"mcpproxy/internal/config/auth"
)

// MetadataPath precedes the path of a resource in the path of its metadata (RFC 9728).
const MetadataPath = "/.well-known/oauth-protected-resource"

const apiPath = "/api/v1"

// resourcePath returns the path of the resource to which a request path belongs; "" if users have no access there. REST
// is one resource; each MCP address is another.
func resourcePath(path string) string {
	switch {
	case path == apiPath || strings.HasPrefix(path, apiPath+"/"):
		return apiPath
	case path == "/mcp" || strings.HasPrefix(path, "/mcp/"):
		return path
	}
	return ""
}

// canonicalPath returns the one spelling of a resource path that has several.
func canonicalPath(path string) string {
	path = strings.TrimSuffix(path, "/")
	if rest, ok := strings.CutPrefix(path, "/mcp/"); ok {
		rest = strings.TrimSuffix(rest, "/mcp")
		if name, ok := strings.CutPrefix(rest, "s/"); ok {
			rest = "servers/" + name
		}
		return "/mcp/" + rest
	}
	return path
}

// acceptsAudience reports whether a token with these audiences may be used for a resource. A token for MCP addresses is
// never one for REST: an agent could approve its own calls with it.
func (s *Settings) acceptsAudience(audiences []string, of *Issuer, resource string) bool {
	also, accepted := of.Audiences, MCPAudience
	if resource == apiPath {
		also, accepted = of.APIAudiences, RESTAudience
		if slices.ContainsFunc(audiences, func(a string) bool {
			kind := KindOfAudience(s.PublicURL, a)
			return kind == MCPAudience || kind == OtherAudience && slices.Contains(of.Audiences, a)
		}) {
			return false
		}
	}
	return slices.ContainsFunc(audiences, func(a string) bool {
		own, ok := strings.CutPrefix(a, s.PublicURL)
		return ok && s.PublicURL != "" && (own == resource || canonicalPath(own) == canonicalPath(resource)) ||
			slices.Contains(also, a) && (accepted == KindOfAudience(s.PublicURL, a) || KindOfAudience(s.PublicURL, a) == OtherAudience)
	})
}

// AudienceKind is what an audience stands for.
type AudienceKind uint8

// The kinds of audiences.
const (
	OtherAudience AudienceKind = iota
	MCPAudience                // an MCP address
	RESTAudience               // REST
)

// KindOfAudience returns whether an audience is an address below publicURL.
func KindOfAudience(publicURL, audience string) AudienceKind {
	publicURL = strings.TrimSuffix(publicURL, "/")
	own, ok := strings.CutPrefix(audience, publicURL)
	switch path := canonicalPath(own); {
	case !ok || publicURL == "":
		return OtherAudience
	case path == apiPath:
		return RESTAudience
	case path == "/mcp" || strings.HasPrefix(path, "/mcp/"):
		return MCPAudience
	}
	return OtherAudience
}

// Challenge implements auth.UserVerifier.
func (v *Verifier) Challenge(path string, refusal *auth.TokenRefusal) string {
	s, resource := v.settings.Load(), resourcePath(path)
	if s == nil || resource == "" || refusal != nil && refusal.Forbidden && refusal.Scope == "" {
		return ""
	}
	out := `Bearer resource_metadata="` + s.PublicURL + MetadataPath + resource + `"`
	if refusal == nil {
		return out + `, scope="` + strings.Join(s.scopes(), " ") + `"`
	}
	if refusal.Scope != "" {
		return out + `, error="insufficient_scope", scope="` + refusal.Scope + `", error_description="` + refusal.Reason + `"`
	}
	return out + `, error="invalid_token", error_description="` + refusal.Reason + `"`
}

// scopes returns the scopes that clients should ask for.
func (s *Settings) scopes() []string {
	out := slices.Clone(s.Scopes)
	if slices.ContainsFunc(s.Issuers, func(i Issuer) bool { return !i.IgnoreScopes }) {
		for l := auth.Read; l <= auth.Destructive; l++ {
			out = append(out, auth.ScopeOf(l))
		}
	}
	return out
}

// resourceMetadata is the document of RFC 9728. ClientID is our own member.
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported,omitempty"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
	ClientID string   `json:"client_id,omitempty"`
}

// ServeMetadata serves the metadata of a resource. It reports whether there is one.
func (v *Verifier) ServeMetadata(w http.ResponseWriter, r *http.Request) bool {
	s := v.settings.Load()
	path := strings.TrimPrefix(r.URL.Path, MetadataPath)
	if s == nil || resourcePath(path) != path {
		return false
	}
	m := resourceMetadata{Resource: s.PublicURL + path, Scopes: s.scopes(), Methods: []string{"header"}, Name: "MCPProxy", ClientID: s.ClientID}
	for _, i := range s.Issuers {
		m.Servers = append(m.Servers, i.URL)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*") // it is public, and clients in browsers read it
	_ = json.NewEncoder(w).Encode(m)                   // no one reads the error
	return true
}
