package oauth

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// clientRegistration is MCPProxy's registration at one authorization server.
type clientRegistration struct {
	Kind        registrationKind `json:"kind"`
	ID          string           `json:"id"`
	Secret      string           `json:"secret,omitempty"`
	Method      authMethod       `json:"method"`
	Redirect    string           `json:"redirect,omitempty"`    // registered redirect URI
	SecretUntil time.Time        `json:"secret_until,omitzero"` // zero: never expires
}

// registrationKind is how a client was registered.
type registrationKind string

const (
	preregistered    registrationKind = "preregistered"
	metadataDocument registrationKind = "document" // a client metadata document
	dynamic          registrationKind = "dynamic"
)

// authMethod is how a client authenticates at the token endpoint.
type authMethod string

const (
	methodNone  authMethod = "none"
	methodBasic authMethod = "client_secret_basic"
	methodPost  authMethod = "client_secret_post"
)

// credential is what one authorization server has issued for one server. It is immutable.
// Without Access it is only the registration.
type credential struct {
	Server   string             `json:"server"`   // the only URL that receives the token
	Resource string             `json:"resource"` // resource parameter of the request
	Issuer   string             `json:"issuer"`
	Client   clientRegistration `json:"client"`
	Access   string             `json:"access,omitempty"`
	Refresh  string             `json:"refresh,omitempty"`
	Scopes   []string           `json:"scopes,omitempty"`
	Expires  time.Time          `json:"expires,omitzero"` // zero: unknown
	Obtained time.Time          `json:"obtained,omitzero"`

	TokenEndpoint      string `json:"token_endpoint"`
	RevocationEndpoint string `json:"revocation_endpoint,omitempty"`
}

// tokenResponse is the response of a token endpoint.
type tokenResponse struct {
	Access   string          `json:"access_token"`
	Type     string          `json:"token_type"`
	Refresh  string          `json:"refresh_token"`
	Scope    string          `json:"scope"`
	Lifetime json.RawMessage `json:"expires_in"` // seconds
	Error    string          `json:"error"`
}

func (c *credential) authorizationHeader() string { return "Bearer " + c.Access }

// renewalLead is how long before its expiry a token is renewed.
const renewalLead = time.Minute

// renewalMargin returns how long before its expiry this token is renewed: less for a
// short-lived one.
func (c *credential) renewalMargin() time.Duration {
	return min(renewalLead, c.Expires.Sub(c.Obtained)/4)
}

// isFresh reports whether the token was issued a moment ago. If the clock was set back since, it was not.
func (c *credential) isFresh() bool {
	age := time.Since(c.Obtained)
	return age >= 0 && age <= minTokenAge
}

// applyTokenResponse stores a token response. A renewal without scopes or refresh token keeps the
// previous ones.
func (c *credential) applyTokenResponse(t *tokenResponse) {
	c.Access, c.Obtained, c.Expires = t.Access, time.Now(), time.Time{}
	if lives := parseLifetime(t.Lifetime); lives > 0 {
		c.Expires = c.Obtained.Add(lives)
	}
	if t.Refresh != "" {
		c.Refresh = t.Refresh
	}
	if t.Scope != "" {
		c.Scopes = strings.Fields(t.Scope)
	}
}

// parseLifetime parses expires_in, which some servers send as a string.
func parseLifetime(raw json.RawMessage) time.Duration {
	seconds, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || !(seconds > 0) {
		return 0
	}
	const most = 10 * 365 * 24 * 3600
	return time.Duration(min(seconds, most)) * time.Second
}

// withoutToken returns the registration alone, or nil if forgetClient is set.
func (c *credential) withoutToken(forgetClient bool) *credential {
	if forgetClient {
		return nil
	}
	kept := *c
	kept.Access, kept.Refresh, kept.Expires, kept.Obtained = "", "", time.Time{}, time.Time{}
	return &kept
}

func decodeCredential(raw []byte) *credential {
	var c credential
	if len(raw) == 0 || json.Unmarshal(raw, &c) != nil || !isValidInHeader(c.Access) && c.Access != "" {
		return nil
	}
	return &c
}

// isValidInHeader reports whether a token may be sent in a header.
func isValidInHeader(token string) bool {
	return token != "" && len(token) <= maxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}
