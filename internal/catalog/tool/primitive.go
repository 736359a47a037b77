package tool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// DefinitionKind is the kind of a definition. The zero value is a tool.
type DefinitionKind string

// The kinds. All kinds except tools are primitives (see Primitive).
const (
	KindTool         DefinitionKind = ""
	KindPrompt       DefinitionKind = "prompt"
	KindResource     DefinitionKind = "resource"
	KindTemplate     DefinitionKind = "template"
	KindInstructions DefinitionKind = "instructions"
)

// PrimitiveKinds returns all kinds except tools.
func PrimitiveKinds() []DefinitionKind {
	return []DefinitionKind{KindInstructions, KindPrompt, KindResource, KindTemplate}
}

// Words returns all kinds except tools.
func (DefinitionKind) Words() []string {
	var words []string
	for _, k := range PrimitiveKinds() {
		words = append(words, string(k))
	}
	return words
}

// Label returns the kind in readable form.
func (k DefinitionKind) Label() string { return cmp.Or(string(k), "tool") }

// NameMember returns the member that identifies a primitive of the kind.
func (k DefinitionKind) NameMember() string { return nameMembers[k] }

var nameMembers = map[DefinitionKind]string{KindPrompt: "name", KindResource: "uri", KindTemplate: "uriTemplate"}

// MaxPrimitiveName is the maximum length of the name or URI of a primitive, in bytes.
const MaxPrimitiveName = 8 << 10

// Primitive is a prompt, a resource, a resource template, or a server's instructions, which have no name. Raw contains
// the server's bytes. A Primitive is immutable.
type Primitive struct {
	Kind        DefinitionKind
	Name        string // or the URI, or the URI template
	Raw         json.RawMessage
	Fingerprint Fingerprint
}

// ReadName returns the name or URI in a definition of this kind, as ParsePrimitive reads it, or "" if there is none.
func (k DefinitionKind) ReadName(raw json.RawMessage) string {
	name, _ := wirejson.String(wirejson.Find(raw, k.NameMember()))
	return name
}

// ParsePrimitive parses a primitive as its server sent it, and keeps raw. raw must have a canonical form, at most
// MaxDefinition bytes and a name.
func ParsePrimitive(kind DefinitionKind, raw json.RawMessage) (Primitive, error) {
	o, err := parsePrimitive(kind, raw)
	if err != nil {
		return Primitive{}, fmt.Errorf("a definition of the kind %s cannot be used: %w", kind.Label(), err)
	}
	return o, nil
}

func parsePrimitive(kind DefinitionKind, raw json.RawMessage) (Primitive, error) {
	canonical, err := canonicalDefinition(raw)
	if err != nil {
		return Primitive{}, err
	}
	o := Primitive{Kind: kind, Raw: raw}
	if kind == KindInstructions {
		o.Fingerprint = sha256.Sum256(canonical)
		return o, nil
	}
	key := kind.NameMember()
	if key == "" {
		return Primitive{}, errors.New("its kind is not known")
	}
	if wirejson.EachMember(canonical, func(name, value []byte) error {
		if string(name) == key {
			o.Name = decodeStringIfValidUnicode(value)
		}
		return nil
	}) != nil {
		return Primitive{}, errors.New("it is not an object")
	}
	switch {
	case o.Name == "":
		return Primitive{}, fmt.Errorf("its %s is missing, empty or not a string", key)
	case len(o.Name) > MaxPrimitiveName:
		return Primitive{}, fmt.Errorf("its %s is longer than %d bytes", key, MaxPrimitiveName)
	}
	o.Fingerprint = sha256.Sum256(dropVolatileMembers(kind, canonical))
	return o, nil
}

// dropVolatileMembers returns the canonical form of a primitive without the size and the date of a resource. These
// change with its content and cannot contain text. If such a member has a value of another type, it is kept.
func dropVolatileMembers(kind DefinitionKind, canonical []byte) []byte {
	if kind == KindPrompt || !bytes.Contains(canonical, []byte(`"size":`)) && !bytes.Contains(canonical, []byte(`"lastModified":`)) {
		return canonical
	}
	return rewriteMembers(canonical, func(name string, value []byte) ([]byte, bool) {
		switch {
		case name == "size" && kind == KindResource && isByteCount(value):
			return nil, false
		case name == "annotations" && value[0] == '{':
			rest := rewriteMembers(value, func(name string, value []byte) ([]byte, bool) {
				return value, name != "lastModified" || !isDate(value)
			})
			return rest, len(rest) > len("{}") || len(rest) == len(value)
		}
		return value, true
	})
}

// rewriteMembers rewrites a canonical object member by member. It drops the members that keep rejects.
func rewriteMembers(object []byte, keep func(name string, value []byte) ([]byte, bool)) []byte {
	out := append(make([]byte, 0, len(object)), '{')
	c := wirejson.Cursor{Text: object}
	for end := c.Enter('{'); c.More(end); {
		name := c.ReadName()
		value, kept := keep(string(wirejson.Unescape(name)), c.ReadValue())
		if !kept {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), name...), `":`...), value...)
	}
	return append(out, '}')
}

// isByteCount reports whether a value is a whole number of bytes.
func isByteCount(value []byte) bool {
	return len(value) <= 16 && len(bytes.Trim(value, "0123456789")) == 0
}

// maxDate is the maximum length of a date, in bytes. A date with nanoseconds and a zone has 35.
const maxDate = 40

// isDate reports whether a value is exactly a date.
func isDate(value []byte) bool {
	if value[0] != '"' || len(value) > maxDate+2 {
		return false
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if _, err := time.Parse(layout, string(value[1:len(value)-1])); err == nil {
			return true
		}
	}
	return false
}
