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

// Kind is what a definition is of. The zero value is a tool.
type Kind string

// The kinds. All but tools are offers.
const (
	KindTool         Kind = ""
	KindPrompt       Kind = "prompt"
	KindResource     Kind = "resource"
	KindTemplate     Kind = "template"
	KindInstructions Kind = "instructions"
)

// OfferKinds returns all kinds but tools.
func OfferKinds() []Kind {
	return []Kind{KindInstructions, KindPrompt, KindResource, KindTemplate}
}

// Words are all kinds but tools.
func (Kind) Words() []string {
	var words []string
	for _, k := range OfferKinds() {
		words = append(words, string(k))
	}
	return words
}

// Word returns the kind as people read it.
func (k Kind) Word() string { return cmp.Or(string(k), "tool") }

// Key is the member that tells an offer of the kind from others of its server.
func (k Kind) Key() string { return keys[k] }

var keys = map[Kind]string{KindPrompt: "name", KindResource: "uri", KindTemplate: "uriTemplate"}

// MaxOfferName is the longest name or address of an offer, in bytes.
const MaxOfferName = 8 << 10

// Offer is what a server offers beside tools, as it declared it: a prompt, a
// resource, a resource template, or its instructions, which have no name. Raw
// is the server's bytes. An Offer is immutable.
type Offer struct {
	Kind        Kind
	Name        string // or the address, or the template of addresses
	Raw         json.RawMessage
	Fingerprint Fingerprint
}

// NameIn returns the name or address that a definition of this kind has, as
// ParseOffer reads it; "" when it has none.
func (k Kind) NameIn(raw json.RawMessage) string {
	name, _ := wirejson.String(wirejson.Find(raw, k.Key()))
	return name
}

// ParseOffer reads an offer as its server sent it, and keeps raw. It must have
// a canonical form, at most MaxDefinition bytes and a name.
func ParseOffer(kind Kind, raw json.RawMessage) (Offer, error) {
	o, err := parseOffer(kind, raw)
	if err != nil {
		return Offer{}, fmt.Errorf("a definition of the kind %s cannot be used: %w", kind.Word(), err)
	}
	return o, nil
}

func parseOffer(kind Kind, raw json.RawMessage) (Offer, error) {
	canonical, err := bounded(raw)
	if err != nil {
		return Offer{}, err
	}
	o := Offer{Kind: kind, Raw: raw}
	if kind == KindInstructions {
		o.Fingerprint = sha256.Sum256(canonical)
		return o, nil
	}
	key := kind.Key()
	if key == "" {
		return Offer{}, errors.New("its kind is not known")
	}
	if wirejson.Members(canonical, func(name, value []byte) error {
		if string(name) == key {
			o.Name = exactText(value)
		}
		return nil
	}) != nil {
		return Offer{}, errors.New("it is not an object")
	}
	switch {
	case o.Name == "":
		return Offer{}, fmt.Errorf("it has no %s that is a string and not empty", key)
	case len(o.Name) > MaxOfferName:
		return Offer{}, fmt.Errorf("its %s is longer than %d bytes", key, MaxOfferName)
	}
	o.Fingerprint = sha256.Sum256(lasting(kind, canonical))
	return o, nil
}

// lasting is the canonical form of an offer without what changes whenever the
// content behind it does, and cannot hold a text: the size and the date of a
// resource. With any other value they are part of it.
func lasting(kind Kind, canonical []byte) []byte {
	if kind == KindPrompt || !bytes.Contains(canonical, []byte(`"size":`)) && !bytes.Contains(canonical, []byte(`"lastModified":`)) {
		return canonical
	}
	return without(canonical, func(name string, value []byte) ([]byte, bool) {
		switch {
		case name == "size" && kind == KindResource && isSize(value):
			return nil, false
		case name == "annotations" && value[0] == '{':
			rest := without(value, func(name string, value []byte) ([]byte, bool) {
				return value, name != "lastModified" || !isDate(value)
			})
			return rest, len(rest) > len("{}") || len(rest) == len(value)
		}
		return value, true
	})
}

// without rewrites an object in canonical form member by member.
func without(object []byte, keep func(name string, value []byte) ([]byte, bool)) []byte {
	out := append(make([]byte, 0, len(object)), '{')
	c := wirejson.Cursor{Text: object}
	for end := c.Open('{'); c.More(end); {
		name := c.Name()
		value, kept := keep(string(wirejson.Unescape(name)), c.Value())
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

// isSize reports whether a value is a whole number of bytes.
func isSize(value []byte) bool { return len(value) <= 16 && len(bytes.Trim(value, "0123456789")) == 0 }

// maxDate is the longest date, in bytes: one with nanoseconds and a zone has 35.
const maxDate = 40

// isDate reports whether a value is a date and nothing but a date.
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
