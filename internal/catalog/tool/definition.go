package tool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unsafe"

	"mcpproxy/internal/mcp/wirejson"
)

// MaxDefinition is the maximum size of a definition, in bytes. Real tools have up to 60 KB.
const MaxDefinition = 256 << 10

// Definition is a tool as its server declared it. Raw is the tool object with the server's bytes. The other fields are
// views of it. A Definition is immutable, including its slices.
type Definition struct {
	ID           ID
	Raw          json.RawMessage
	Title        string
	Description  string
	InputSchema  json.RawMessage // nil if the server sent none
	OutputSchema json.RawMessage // nil if the server sent none
	Hints        Hints           // as declared
	// ForClients reports that the server lists the tool only to clients that support elicitation or sampling, not to
	// MCPProxy. MCPProxy's own calls cannot use it.
	ForClients bool
	App        AppLink // from _meta.ui
	// Alias is the user's name for the tool. It is set only in the definition that agents see, next to the user's
	// Description. Raw, ID and the fingerprint stay the server's.
	Alias       string
	fingerprint Fingerprint // of Raw; zero if Raw was not parsed
}

// ShownName returns the name by which agents know the tool: its alias, or else its own name.
func (d *Definition) ShownName() string { return cmp.Or(d.Alias, d.ID.Tool) }

// ShownID returns the ID of the tool with its shown name.
func (d *Definition) ShownID() ID { return ID{d.ID.Server, d.ShownName()} }

// ParseDefinition parses a tool as its server sent it. The definition keeps raw and
// slices of it. raw must have a canonical form, be an object of at most MaxDefinition
// bytes, and have a non-empty string as name. Other members of a wrong type (a
// description that is not a string, a schema that is not an object) are left out of the
// views.
func ParseDefinition(server string, raw json.RawMessage) (Definition, error) {
	d, err := parseDefinition(server, raw)
	if err != nil {
		return Definition{}, fmt.Errorf("the definition of a tool of server %q cannot be used: %w", server, err)
	}
	return d, nil
}

func parseDefinition(server string, raw json.RawMessage) (Definition, error) {
	canonical, err := canonicalDefinition(raw)
	if err != nil {
		return Definition{}, err
	}
	d := Definition{ID: ID{Server: server}, Raw: raw, fingerprint: sha256.Sum256(canonical)}
	if wirejson.EachMember(raw, func(name, value []byte) error {
		switch string(name) {
		case "name":
			d.ID.Tool = decodeStringIfValidUnicode(value)
		case "title":
			d.Title = stringOrEmpty(value)
		case "description":
			d.Description = decodeStringNoCopy(value)
		case "inputSchema":
			d.InputSchema = objectOrNil(value)
		case "outputSchema":
			d.OutputSchema = objectOrNil(value)
		case "annotations":
			d.Hints = parseHints(value)
		case "_meta":
			d.App = parseAppLink(value)
		}
		return nil
	}) != nil {
		return Definition{}, errors.New("it is not an object")
	}
	if d.ID.Tool == "" {
		return Definition{}, errors.New("its name is missing, empty or not a string")
	}
	if len(d.ID.Tool) > maxToolName {
		return Definition{}, fmt.Errorf("its name is longer than %d bytes", maxToolName)
	}
	return d, nil
}

// canonicalDefinition returns the canonical form of a definition. It fails if the definition is larger than
// MaxDefinition.
func canonicalDefinition(raw json.RawMessage) ([]byte, error) {
	if len(raw) > MaxDefinition {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxDefinition)
	}
	canonical, err := CanonicalJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("it has no canonical form: %w", err)
	}
	return canonical, nil
}

// decodeStringIfValidUnicode decodes a string. It returns "" for a string that is not valid Unicode, because a call
// could not repeat that name.
func decodeStringIfValidUnicode(value []byte) string {
	s := stringOrEmpty(value)
	if bytes.Contains(value, []byte(`\u`)) && !bytes.Equal(wirejson.AppendString(nil, s), appendCanonicalString(nil, value[1:len(value)-1])) {
		return ""
	}
	return s
}

// decodeStringNoCopy decodes a string. The result shares the bytes if nothing is escaped, because descriptions are the
// largest part of a definition.
func decodeStringNoCopy(value []byte) string {
	if value[0] != '"' {
		return ""
	}
	meant := wirejson.Unescape(value[1 : len(value)-1])
	return unsafe.String(unsafe.SliceData(meant), len(meant))
}

func objectOrNil(value []byte) json.RawMessage {
	if value[0] != '{' {
		return nil
	}
	return value
}

// Fingerprint is the SHA-256 of the canonical JSON of a definition.
type Fingerprint [sha256.Size]byte

// Fingerprint identifies the whole definition. Two definitions have the same fingerprint only if they differ in nothing
// but key order, white space and the spelling of values.
func (d Definition) Fingerprint() Fingerprint {
	if d.fingerprint != (Fingerprint{}) {
		return d.fingerprint
	}
	canonical, err := CanonicalJSON(d.Raw)
	if err != nil {
		// ParseDefinition never returns such a definition. No canonical form begins with this text.
		canonical = append([]byte("not canonical: "), d.Raw...)
	}
	return sha256.Sum256(canonical)
}

// String returns the fingerprint in hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }
