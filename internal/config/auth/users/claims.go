package users

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/config/auth"
)

// Limits of tokens.
const (
	maxToken   = 16 << 10 // bytes
	clockSkew  = 30 * time.Second
	maxName    = 128
	maxSubject = 255 // of OpenID Connect
)

// algorithms are the accepted signature algorithms: none with a shared secret.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// claims are the claims of a token, or of an answer of its provider.
type claims map[string]json.RawMessage

func (c claims) text(name string) string {
	var s string
	_ = json.Unmarshal(c[name], &s) // another type counts as missing
	return s
}

func (c claims) has(name string) bool {
	_, there := c[name]
	return there
}

// list returns a claim that is a string or a list of strings. A name with dots that is no claim is a path.
func (c claims) list(name string) (out []string) {
	raw, ok := c[name]
	if first, rest, dotted := strings.Cut(name, "."); !ok && dotted {
		var inner claims
		_ = json.Unmarshal(c[first], &inner)
		return inner.list(rest)
	}
	if json.Unmarshal(raw, &out) != nil {
		out = nil
		if one := c.text(name); one != "" {
			out = []string{one}
		}
	}
	return out
}

// hasList reports whether there is a claim for list, whatever its type.
func (c claims) hasList(name string) bool {
	first, rest, dotted := strings.Cut(name, ".")
	if c.has(name) || !dotted {
		return c.has(name)
	}
	var inner claims
	_ = json.Unmarshal(c[first], &inner)
	return inner.hasList(rest)
}

// aboutTokens are the claims of an introspection answer that are about the token (RFC 7662, RFC 8693, RFC 9068, RFC 9470).
var aboutTokens = []string{"active", "scope", "scp", "client_id", "username", "token_type", "exp", "iat", "nbf", "sub", "aud", "iss", "jti", "azp",
	"typ", "sid", "session_state", "auth_time", "acr", "amr", "cnf", "act", "may_act"}

// describesUser reports whether an answer of the provider has claims about the user.
func (i *Issuer) describesUser(said claims) bool {
	for name := range said {
		if name != "sub" && (i.Check == CheckUserInfo || !slices.Contains(aboutTokens, name)) {
			return true
		}
	}
	return false
}

// time returns a claim that is a number of seconds; zero if it is missing.
func (c claims) time(name string) (time.Time, bool) {
	raw, there := c[name]
	if !there {
		return time.Time{}, true
	}
	var seconds float64
	if json.Unmarshal(raw, &seconds) != nil || math.Abs(seconds) > 1e11 || seconds == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(seconds * 1000)), true
}

func (c claims) isTrue(name string) bool {
	return string(c[name]) == "true" || c.text(name) == "true"
}

// refuse returns the refusal of an invalid token.
func refuse(format string, args ...any) *auth.TokenRefusal {
	return &auth.TokenRefusal{Reason: fmt.Sprintf(format, args...)}
}

// readUnverified returns the issuer in a token, whose signature was not checked yet. Its refusal is about the form.
func readUnverified(text string) (issuer string, refusal *auth.TokenRefusal) {
	if len(text) > maxToken {
		return "", refuse("The token is larger than %d bytes", maxToken)
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return "", refuse("The token is not a JSON Web Token")
	}
	var head struct {
		Type      string `json:"typ"`
		Algorithm string `json:"alg"`
	}
	var body struct {
		Issuer string `json:"iss"`
	}
	for i, into := range []any{&head, &body, nil} { // strictly, so that a token has one text
		raw, err := base64.RawURLEncoding.Strict().DecodeString(parts[i])
		if err != nil || strings.ContainsAny(parts[i], "\r\n") || into != nil && json.Unmarshal(raw, into) != nil {
			return "", refuse("The token is malformed")
		}
	}
	switch strings.TrimPrefix(strings.ToLower(head.Type), "application/") {
	case "", "jwt", "at+jwt":
	default:
		return "", refuse("The token is not an access token")
	}
	if !slices.Contains(algorithms, head.Algorithm) {
		return "", refuse("The signature algorithm of the token is not allowed")
	}
	return body.Issuer, nil
}

// checkClaims checks the claims of a token whose signature is valid. It returns when the token expires.
func (i *Issuer) checkClaims(c claims, now time.Time) (expires time.Time, refusal *auth.TokenRefusal) {
	expires, valid := c.time("exp")
	begins, validBegin := c.time("nbf")
	issued, validIssue := c.time("iat")
	subject := c.text("sub")
	client := c.text("azp")
	if client == "" {
		client = c.text("client_id")
	}
	_, nonce := c["nonce"]
	_, hash := c["at_hash"]
	switch {
	case !valid || !validBegin || !validIssue || expires.IsZero():
		return expires, refuse("The token has no valid times")
	case !now.Before(expires.Add(clockSkew)):
		return expires, refuse("The token has expired")
	case now.Add(clockSkew).Before(begins):
		return expires, refuse("The token is not valid yet")
	case now.Add(clockSkew).Before(issued):
		return expires, refuse("The token was issued in the future")
	case subject == "" || len(subject) > maxSubject:
		return expires, refuse("The token names no user")
	case nonce || hash:
		return expires, refuse("An ID token is not an access token")
	case i.ClientIDs != nil && !slices.Contains(i.ClientIDs, client):
		return expires, refuse("The token was issued to a client that is not allowed")
	case i.Check == CheckOff && (issued.IsZero() || expires.Sub(issued) > i.MaxLifetime):
		return expires, refuse("The token is valid for longer than %s", i.MaxLifetime)
	}
	return expires, nil
}

// identity returns what the rules see of the user.
func (i *Issuer) identity(c claims) identity {
	who := identity{issuer: i.URL, subject: c.text("sub"), groups: c.list(i.GroupsClaim)}
	if i.TrustEmail || c.isTrue("email_verified") {
		who.email = c.text("email")
	}
	return who
}

// userID identifies a user for good: no two subjects share it.
func userID(issuer, subject string) string {
	sum := sha256.Sum256([]byte(issuer + "\x00" + subject))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// userName returns the name of the user, as it is recorded. Records belong to the name, so no user may have that of
// another one: names from a claim, from the subject and with the label of another issuer differ in their form. A name
// other than the subject or a verified address may be anyone's choice, so a part of the user's ID follows it.
func (i *Issuer) userName(c claims, who *identity) string {
	name := who.email
	if i.NameClaim != "email" {
		name = c.text(i.NameClaim)
	}
	switch {
	case !isPlainName(name):
		name = "id:" + userID(i.URL, who.subject)
		if isPlainName(who.subject) {
			name = "sub:" + who.subject
		}
	case i.NameClaim != "sub" && (i.NameClaim != "email" || !c.isTrue("email_verified")):
		name += "~" + userID(i.URL, who.subject)[:6]
	}
	if i.Label != "" {
		return i.Label + "|" + name
	}
	return name
}

// isPlainName reports whether a name can be shown, and contains none of the characters with a meaning in names.
func isPlainName(name string) bool {
	return name != "" && len(name) <= maxName &&
		!strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`:|#"\,*?`, r) })
}

// grantedLanes returns the lanes that the scopes of a token allow.
func (i *Issuer) grantedLanes(c claims) auth.OperationLaneSet {
	if i.IgnoreScopes {
		return auth.AllLanes
	}
	scopes := c.list("scp")
	for _, s := range c.list("scope") { // a string of words, or a list
		scopes = append(scopes, strings.Fields(s)...)
	}
	var lanes auth.OperationLaneSet
	for l := auth.Read; l <= auth.Destructive; l++ {
		if slices.Contains(scopes, auth.ScopeOf(l)) {
			lanes |= 1 << l
		}
	}
	return lanes
}
