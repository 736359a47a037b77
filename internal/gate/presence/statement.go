package presence

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// Statement is the signed text. It states that a user, at a time and for one request, makes the decisions in the
// claims. It contains the digest of the claims.
type Statement struct {
	Claims Digest
	Count  int // number of claims
	At     time.Time
	For    string // method and path of the request
	Nonce  string
	Anchor Digest // fingerprint of the signing anchor
}

// The limits of statements.
const (
	maxStatement = 8 << 10 // bytes
	maxSignature = 8 << 10
	maxFor       = 4 << 10
	// timeForm has a fixed number of digits, so that each time has exactly one text.
	timeForm = "2006-01-02T15:04:05.000000Z"
)

// statementJSON is the JSON form of a statement, in this order.
type statementJSON struct {
	Claims Digest `json:"claims"`
	Count  int    `json:"count"`
	At     string `json:"at"`
	For    string `json:"for"`
	Nonce  string `json:"nonce"`
	Anchor Digest `json:"anchor"`
}

// CanonicalJSON returns the statement as JSON. Each statement has exactly one text.
func (s Statement) CanonicalJSON() []byte {
	raw, err := wirejson.MarshalWithoutHTMLEscape(statementJSON{s.Claims, s.Count, s.At.UTC().Format(timeForm), s.For, s.Nonce, s.Anchor})
	if err != nil {
		panic("presence: " + err.Error()) // every field can be encoded
	}
	return raw
}

// NewDraftStatement returns an incomplete statement over claims.
func NewDraftStatement(claims []Claim, at time.Time, nonce string) Statement {
	claims = sortClaims(claims)
	return Statement{Claims: claimsDigest(claims), Count: len(claims), At: at, Nonce: nonce}
}

// Digest returns the signed digest of the statement, which is also the challenge of a passkey.
func (s Statement) Digest() Digest { return domainDigest("statement", s.CanonicalJSON()) }

// ParseStatement parses the result of CanonicalJSON, and rejects any other text.
func ParseStatement(text []byte) (Statement, error) {
	var p statementJSON
	if len(text) > maxStatement {
		return Statement{}, fmt.Errorf("a statement has %d bytes, more than %d", len(text), maxStatement)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return Statement{}, errors.New("a statement is not JSON, or has members of other types")
	}
	at, err := time.Parse(timeForm, p.At)
	if err != nil {
		return Statement{}, errors.New("a statement has no time")
	}
	s := Statement{p.Claims, p.Count, at, p.For, p.Nonce, p.Anchor}
	if !isNonce(p.Nonce) || p.Count < 1 || p.Count > maxClaims || p.For == "" || len(p.For) > maxFor || !bytes.Equal(s.CanonicalJSON(), text) {
		return Statement{}, errors.New("a statement does not have the expected format")
	}
	return s, nil
}

// isNonce reports whether a nonce is valid. Nonces are used in names.
func isNonce(nonce string) bool {
	return len(nonce) >= 20 && len(nonce) <= 64 && strings.Trim(nonce, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// SignedStatement is a statement with its signature.
type SignedStatement struct {
	Statement
	Signature []byte
}

var errSignature = errors.New("the signature is not from the anchor")

// Header is the request header for a signed statement.
const Header = "MCPProxy-Presence"

// HeaderValue returns the signed statement as the value of the header.
func (s SignedStatement) HeaderValue() string {
	to := base64.RawURLEncoding
	return to.EncodeToString(s.Statement.CanonicalJSON()) + "." + to.EncodeToString(s.Signature)
}

// parseSignedStatement parses the result of HeaderValue.
func parseSignedStatement(text string) (SignedStatement, error) {
	statement, signature, ok := strings.Cut(text, ".")
	if !ok || len(text) > 2*(maxStatement+maxSignature) {
		return SignedStatement{}, errors.New("it is not a statement and a signature")
	}
	from := base64.RawURLEncoding.Strict()
	raw, err := from.DecodeString(statement)
	if err != nil {
		return SignedStatement{}, errors.New("its statement is not base64url")
	}
	s := SignedStatement{}
	if s.Signature, err = from.DecodeString(signature); err != nil || len(s.Signature) > maxSignature {
		return SignedStatement{}, errors.New("its signature is not base64url")
	}
	s.Statement, err = ParseStatement(raw)
	if err == nil && s.HeaderValue() != text { // base64 decoding ignores line breaks
		err = errors.New("it does not have the format of a statement")
	}
	return s, err
}

// Evidence is the stored form of a signed statement, with its claims.
type Evidence struct {
	SignedStatement
	Claims []Claim // sorted
}

// checkClaims rejects evidence whose claims do not match the statement.
func (e *Evidence) checkClaims() error {
	for _, c := range e.Claims {
		if err := c.validate(); err != nil {
			return err
		}
	}
	if len(e.Claims) != e.Count || claimsDigest(e.Claims) != e.Statement.Claims {
		return errors.New("its claims are not those that were signed")
	}
	return nil
}

// ClaimLines returns the claims as one text.
func (e *Evidence) ClaimLines() string {
	lines := make([]string, len(e.Claims))
	for i, c := range e.Claims {
		lines[i] = string(c)
	}
	return strings.Join(lines, "\n")
}

// ParseStoredEvidence parses stored evidence: the result of Statement.CanonicalJSON, the signature, and the result of
// ClaimLines.
func ParseStoredEvidence(statement, signature []byte, lines string) (Evidence, error) {
	s, err := ParseStatement(statement)
	if err != nil {
		return Evidence{}, err
	}
	e := Evidence{SignedStatement: SignedStatement{s, signature}}
	for line := range strings.SplitSeq(lines, "\n") {
		e.Claims = append(e.Claims, Claim(line))
	}
	return e, e.checkClaims()
}
