package oauth

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// client is MCPProxy as one authorization server knows it.
type client struct {
	Kind        registration `json:"kind"`
	ID          string       `json:"id"`
	Secret      string       `json:"secret,omitempty"`
	Method      authMethod   `json:"method"`
	Redirect    string       `json:"redirect,omitempty"`    // what it was registered with
	SecretUntil time.Time    `json:"secret_until,omitzero"` // zero: for ever
}

// registration is how a client came to be known.
type registration string

const (
	preregistered registration = "preregistered"
	document      registration = "document" // a client metadata document
	dynamic       registration = "dynamic"
)

// authMethod is how a client proves itself at the token endpoint.
type authMethod string

const (
	methodNone  authMethod = "none"
	methodBasic authMethod = "client_secret_basic"
	methodPost  authMethod = "client_secret_post"
)

// credential is what one authorization server has issued for one server. It is
// never changed. Without Access it is only the registration.
type credential struct {
	Server   string    `json:"server"`   // the URL that the token is sent to, and no other
	Resource string    `json:"resource"` // as it was asked for
	Issuer   string    `json:"issuer"`
	Client   client    `json:"client"`
	Access   string    `json:"access,omitempty"`
	Refresh  string    `json:"refresh,omitempty"`
	Scopes   []string  `json:"scopes,omitempty"`
	Expires  time.Time `json:"expires,omitzero"` // zero: not known
	Obtained time.Time `json:"obtained,omitzero"`

	TokenEndpoint      string `json:"token_endpoint"`
	RevocationEndpoint string `json:"revocation_endpoint,omitempty"`
}

// tokenAnswer is what a token endpoint answers.
type tokenAnswer struct {
	Access   string          `json:"access_token"`
	Type     string          `json:"token_type"`
	Refresh  string          `json:"refresh_token"`
	Scope    string          `json:"scope"`
	Lifetime json.RawMessage `json:"expires_in"` // seconds
	Error    string          `json:"error"`
}

func (c *credential) header() string { return "Bearer " + c.Access }

// renewBefore is how long before it expires a token is renewed.
const renewBefore = time.Minute

// margin returns how long before its end a token is renewed: less for one that does
// not live long.
func (c *credential) margin() time.Duration {
	return min(renewBefore, c.Expires.Sub(c.Obtained)/4)
}

// take takes a token over. A renewal that names no scopes or no refresh token
// leaves those there were.
func (c *credential) take(t *tokenAnswer) {
	c.Access, c.Obtained, c.Expires = t.Access, time.Now(), time.Time{}
	if lives := lifetime(t.Lifetime); lives > 0 {
		c.Expires = c.Obtained.Add(lives)
	}
	if t.Refresh != "" {
		c.Refresh = t.Refresh
	}
	if t.Scope != "" {
		c.Scopes = strings.Fields(t.Scope)
	}
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

// withoutToken keeps the registration, nil when that is not wanted either.
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
	if len(raw) == 0 || json.Unmarshal(raw, &c) != nil || !sendable(c.Access) && c.Access != "" {
		return nil
	}
	return &c
}

// sendable reports whether a token can stand in a header.
func sendable(token string) bool {
	return token != "" && len(token) <= maxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}
