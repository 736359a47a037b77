package mcpserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// A signed session ID is [INSTANCE-]base32(signature, begin, random number, params). params are those of an initialize
// that opens the session again. The signature also covers the instance, the endpoint and the credential of the client,
// so the ID is worth nothing with others.
const (
	signatureBytes = 16
	beginBytes     = 8
	randomBytes    = 16
	headBytes      = signatureBytes + beginBytes + randomBytes
	// maxSignedID limits the length of an ID. A client whose description is longer gets a random ID.
	maxSignedID = 768
	// maxSessionAge is how long after its begin a session can be rebuilt.
	maxSessionAge = 30 * 24 * time.Hour
)

var idEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// sessionBinding is what a session ID is valid for.
type sessionBinding struct {
	place      string            // endpoint key, with the profile
	credential [sha256.Size]byte // see auth.Authenticator.CredentialHash
}

// sign returns the signature of an ID.
func (b *sessionBinding) sign(key []byte, prefix string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(b.credential[:])
	for _, part := range [...]string{b.place, prefix} {
		sum := sha256.Sum256([]byte(part))
		mac.Write(sum[:])
	}
	mac.Write(body)
	return mac.Sum(nil)[:signatureBytes]
}

// newSignedID returns the ID of a session that begins now; "" if it would be too long.
func newSignedID(key []byte, prefix string, b sessionBinding, began time.Time, params json.RawMessage) string {
	raw := make([]byte, headBytes, headBytes+len(params))
	binary.BigEndian.PutUint64(raw[signatureBytes:], uint64(began.Unix()))
	_, _ = rand.Read(raw[signatureBytes+beginBytes:]) // never fails
	raw = append(raw, params...)
	copy(raw, b.sign(key, prefix, raw[signatureBytes:]))
	if id := prefix + idEncoding.EncodeToString(raw); len(id) <= maxSignedID {
		return id
	}
	return ""
}

// readSignedID returns the params of a session ID with a valid signature that is not too old, and until when it is
// valid.
func readSignedID(key []byte, id string, b sessionBinding, now time.Time) (params json.RawMessage, until time.Time, ok bool) {
	if len(id) > maxSignedID {
		return nil, time.Time{}, false
	}
	at := strings.LastIndexByte(id, '-') + 1
	raw, err := idEncoding.DecodeString(id[at:])
	if err != nil || len(raw) < headBytes || idEncoding.EncodeToString(raw) != id[at:] { // one spelling only
		return nil, time.Time{}, false
	}
	if !hmac.Equal(raw[:signatureBytes], b.sign(key, id[:at], raw[signatureBytes:])) {
		return nil, time.Time{}, false
	}
	until = time.Unix(int64(binary.BigEndian.Uint64(raw[signatureBytes:])), 0).Add(maxSessionAge)
	return raw[headBytes:], until, now.Before(until)
}

// rebuildParams returns the params of an initialize that reopens a session: the negotiated protocol version and the
// client's own data, without texts that no server uses.
func rebuildParams(version, client, clientVersion string, capabilities json.RawMessage) json.RawMessage {
	if wirejson.Kind(capabilities) != '{' {
		capabilities = json.RawMessage("{}")
	}
	out := wirejson.AppendString([]byte(`{"protocolVersion":`), version)
	out = append(append(out, `,"capabilities":`...), capabilities...)
	out = wirejson.AppendString(append(out, `,"clientInfo":{"name":`...), client)
	out = wirejson.AppendString(append(out, `,"version":`...), clientVersion)
	return append(out, "}}"...)
}

// changeableLists returns the notifications of the lists that may change, by the result of an initialize.
func changeableLists(initialized json.RawMessage) (methods []string) {
	all := wirejson.Find(initialized, "capabilities")
	for _, l := range [...]struct{ capability, method string }{
		{"tools", mcp.ToolsChanged}, {"prompts", mcp.PromptsChanged}, {"resources", mcp.ResourcesChanged},
	} {
		if changes, _ := wirejson.Bool(wirejson.Find(wirejson.Find(all, l.capability), "listChanged")); changes {
			methods = append(methods, l.method)
		}
	}
	return methods
}
