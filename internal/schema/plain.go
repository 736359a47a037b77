package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/strictjson"
)

// Bounds on what is plain.
const (
	maxPlainDepth    = 8
	maxPlainArgDepth = 16
	maxPlainRequired = 64      // bits of a set
	maxPlainNumber   = 1 << 53 // in a schema
)

// errDoubt ends a walk over arguments that are not certainly valid.
var errDoubt = errors.New("not certainly valid")

// plain is the form of a schema whose every keyword is known here. It says
// yes for certain, or nothing: what it does not accept the library judges.
type plain struct {
	types    string // what strictjson.Kind may say; all when empty
	listed   bool   // there is an enum or a const:
	texts    []string
	literals string // by their Kind
	length   bounds // of strings, in characters
	value    bounds
	count    bounds // of elements
	element  *plain
	members  map[string]member
	rest     *plain // of members without a name here; nil when there may be none
	required uint64
	price    int // at least what the library's meter takes for one value
}

type member struct {
	*plain
	bit uint64 // in required
}

type bounds struct{ least, most int64 }

func (b bounds) hold(n int64) bool { return b.least <= n && n <= b.most }

// plainOf gives the plain form of a schema that the library has compiled, nil
// when it has none. The root must want an object.
func plainOf(doc any) *plain {
	anything := newPlain(nil)
	anything.element, anything.rest = anything, anything
	if root, ok := anything.compile(doc, 0); ok && root.types == "{" {
		return root
	}
	return nil
}

func newPlain(anything *plain) *plain {
	all := bounds{math.MinInt64, math.MaxInt64}
	return &plain{length: all, value: all, count: all, element: anything, rest: anything, price: 4}
}

// compile gives the plain form of a schema. The receiver is that of true.
func (anything *plain) compile(doc any, depth int) (*plain, bool) {
	members, ok := doc.(map[string]any)
	if !ok {
		return anything, doc == true
	}
	if depth > maxPlainDepth {
		return nil, false
	}
	p := newPlain(anything)
	limits := map[string]*int64{
		"minLength": &p.length.least, "maxLength": &p.length.most, "minItems": &p.count.least, "maxItems": &p.count.most,
		"minimum": &p.value.least, "maximum": &p.value.most,
	}
	for name, v := range members {
		switch name {
		case "title", "description", "default", "examples", "$comment", "format":
		case "properties", "required", "additionalProperties": // see setMembers
		case "$schema": // of a draft that the library knows
			ok = depth == 0
		case "type":
			ok = p.setTypes(v)
		case "enum":
			list, _ := v.([]any)
			ok = p.list(list)
		case "const":
			ok = p.list([]any{v})
		case "items":
			p.element, ok = anything.compile(v, depth+1)
		default:
			ok = setLimit(limits[name], v)
		}
		if !ok {
			return nil, false
		}
	}
	return p, p.setMembers(members, depth)
}

func (p *plain) setTypes(v any) bool {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	kinds := map[string]string{"string": `"`, "integer": "0", "number": "0", "boolean": "tf", "null": "n", "array": "[", "object": "{"}
	for _, name := range list {
		text, _ := name.(string)
		p.types += kinds[text]
	}
	return p.types != ""
}

// list notes the values of an enum or a const, without those that are for the
// library to compare. Both together are not plain.
func (p *plain) list(values []any) bool {
	first := !p.listed
	p.listed = true
	for _, v := range values {
		switch v := v.(type) {
		case string:
			p.texts = append(p.texts, v)
		case bool:
			p.literals += strconv.FormatBool(v)[:1]
		}
	}
	return first
}

func setLimit(limit *int64, v any) bool {
	number, _ := v.(json.Number)
	n, ok := strictjson.Int([]byte(number))
	if limit == nil || !ok || n <= -maxPlainNumber || n >= maxPlainNumber {
		return false
	}
	*limit = n
	return true
}

func (p *plain) setMembers(schema map[string]any, depth int) bool {
	anything := p.rest
	switch schema["additionalProperties"] {
	case nil, true:
	case false:
		p.rest = nil
	default:
		return false
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	p.members, p.price = make(map[string]member, len(properties)), p.price+len(required)/8
	for name, v := range properties {
		inner, ok := anything.compile(v, depth+1)
		if !ok {
			return false
		}
		p.members[name] = member{plain: inner}
	}
	for i, v := range required {
		name, ok := v.(string)
		m := p.members[name]
		if m.plain == nil {
			m.plain = p.rest
		}
		if !ok || i >= maxPlainRequired || m.plain == nil {
			return false
		}
		m.bit |= 1 << i
		p.members[name], p.required = m, p.required|m.bit
	}
	return true
}

// accepts says whether the arguments are certainly valid, and the library
// would find so within the steps: numbers are short and values not deep, so
// that it divides them by no more than this.
func (s *Schema) accepts(args []byte, steps int) bool {
	if s.plain == nil || strictjson.Check(args, strictjson.Limits{Bytes: len(args), Depth: maxPlainArgDepth}) != nil {
		return false
	}
	left := steps / (2 + s.meter.slowness)
	return s.plain.accept(args, &left)
}

func (p *plain) accept(value []byte, left *int) bool {
	kind := strictjson.Kind(value)
	if *left -= p.price; *left < 0 || p.types != "" && strings.IndexByte(p.types, kind) < 0 {
		return false
	}
	switch kind {
	case '"':
		*left -= len(value) / 128
		return *left >= 0 && p.acceptText(value)
	case 't', 'f', 'n':
		return !p.listed || strings.IndexByte(p.literals, kind) >= 0
	case '0':
		n, ok := strictjson.Int(value) // not 1.0 and 1e3
		return ok && !p.listed && p.value.hold(n)
	case '[':
		return !p.listed && p.acceptElements(value, left)
	case '{':
		return !p.listed && p.acceptMembers(value, left)
	}
	return false
}

func (p *plain) acceptText(value []byte) bool {
	text := value[1 : len(value)-1]
	most := int64(len(text))
	fits := p.length.least <= most/12 && most <= p.length.most // a character is at most \u1234\u1234
	if fits && !p.listed {
		return true
	}
	if bytes.IndexByte(text, '\\') >= 0 {
		decoded, _ := strictjson.String(value)
		text = []byte(decoded)
	}
	return (fits || p.length.hold(int64(utf8.RuneCount(text)))) &&
		(!p.listed || slices.ContainsFunc(p.texts, func(t string) bool { return t == string(text) }))
}

func (p *plain) acceptElements(value []byte, left *int) bool {
	count := int64(0)
	err := strictjson.Elements(value, func(element []byte) error {
		if count++; !p.element.accept(element, left) {
			return errDoubt
		}
		return nil
	})
	return err == nil && p.count.hold(count)
}

func (p *plain) acceptMembers(value []byte, left *int) bool {
	missing := p.required
	err := strictjson.Members(value, func(name, value []byte) error {
		m, named := p.members[string(name)]
		if !named {
			m.plain = p.rest
		}
		if missing &^= m.bit; m.plain == nil || !m.accept(value, left) {
			return errDoubt
		}
		return nil
	})
	return err == nil && missing == 0
}
