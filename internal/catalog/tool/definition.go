package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unsafe"

	"mcpproxy/internal/mcp/wirejson"
)

// MaxDefinition is the longest definition, in bytes. Those of real tools have
// up to 60 KB.
const MaxDefinition = 256 << 10

// Definition is a tool as its server declared it. Raw is the tool object with
// the server's bytes; the other fields are views of it. A Definition is
// immutable: nobody writes to any of its slices.
type Definition struct {
	ID           ID
	Raw          json.RawMessage
	Title        string
	Description  string
	InputSchema  json.RawMessage // nil when the server sent none
	OutputSchema json.RawMessage // nil when the server sent none
	Hints        Hints           // as declared
	// ForClients says that its server lists it only to clients that it can ask
	// something, and not to us: a call of ours cannot use it.
	ForClients  bool
	fingerprint Fingerprint // of Raw; zero when it was not parsed
}

// ParseDefinition reads a tool as its server sent it. The definition keeps raw
// and slices of it. Only what it needs must be right: raw must have a canonical
// form, be an object of at most MaxDefinition bytes, and have a name that is a
// string and not empty. Any other member of a type that MCP does not give it
// (a description that is no string, a schema that is no object) is left out of
// the views.
func ParseDefinition(server string, raw json.RawMessage) (Definition, error) {
	d, err := parseDefinition(server, raw)
	if err != nil {
		return Definition{}, fmt.Errorf("the definition of a tool of server %q cannot be used: %w", server, err)
	}
	return d, nil
}

func parseDefinition(server string, raw json.RawMessage) (Definition, error) {
	canonical, err := bounded(raw)
	if err != nil {
		return Definition{}, err
	}
	d := Definition{ID: ID{Server: server}, Raw: raw, fingerprint: sha256.Sum256(canonical)}
	if wirejson.Members(raw, func(name, value []byte) error {
		switch string(name) {
		case "name":
			d.ID.Tool = exactText(value)
		case "title":
			d.Title = text(value)
		case "description":
			d.Description = viewed(value)
		case "inputSchema":
			d.InputSchema = object(value)
		case "outputSchema":
			d.OutputSchema = object(value)
		case "annotations":
			d.Hints = readHints(value)
		}
		return nil
	}) != nil {
		return Definition{}, errors.New("it is not an object")
	}
	if d.ID.Tool == "" {
		return Definition{}, errors.New("it has no name that is a string and not empty")
	}
	if len(d.ID.Tool) > maxToolName {
		return Definition{}, fmt.Errorf("its name is longer than %d bytes", maxToolName)
	}
	return d, nil
}

// bounded returns the canonical form of a definition that is not too long.
func bounded(raw json.RawMessage) ([]byte, error) {
	if len(raw) > MaxDefinition {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxDefinition)
	}
	canonical, err := Canonical(raw)
	if err != nil {
		return nil, fmt.Errorf("it has no canonical form: %w", err)
	}
	return canonical, nil
}

// exactText is text, but "" for a string which is not Unicode text: a call by
// that name could not be the same.
func exactText(value []byte) string {
	s := text(value)
	if bytes.Contains(value, []byte(`\u`)) && !bytes.Equal(wirejson.AppendString(nil, s), appendCanonicalString(nil, value[1:len(value)-1])) {
		return ""
	}
	return s
}

// viewed is text, a view of the bytes where nothing is escaped: a description is most of a
// definition.
func viewed(value []byte) string {
	if value[0] != '"' {
		return ""
	}
	meant := wirejson.Unescape(value[1 : len(value)-1])
	return unsafe.String(unsafe.SliceData(meant), len(meant))
}

func object(value []byte) json.RawMessage {
	if value[0] != '{' {
		return nil
	}
	return value
}

// Fingerprint is the SHA-256 of the canonical JSON of a definition.
type Fingerprint [sha256.Size]byte

// Fingerprint identifies all that the definition says: that of another one is
// the same only if it differs in nothing but key order, white space and
// spelling.
func (d Definition) Fingerprint() Fingerprint {
	if d.fingerprint != (Fingerprint{}) {
		return d.fingerprint
	}
	canonical, err := Canonical(d.Raw)
	if err != nil {
		// ParseDefinition returns no such thing. No canonical form begins so.
		canonical = append([]byte("not canonical: "), d.Raw...)
	}
	return sha256.Sum256(canonical)
}

// String returns the fingerprint in hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }
