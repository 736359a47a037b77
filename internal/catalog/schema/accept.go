package schema

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"mcpproxy/internal/mcp/wirejson"
)

// Limits of the check of arguments: a fixed allowance, plus one unit for each byte. So a schema that reads each value a
// few times is checked completely even for the largest arguments. A unit takes about 25 ns.
const (
	allowance    = 50_000
	bytesPerUnit = 32 // for skipping an array or object
)

// errUncertain ends the check of arguments that are not certainly valid.
var errUncertain = errors.New("not certainly valid")

// certainlyAccepts reports whether the arguments are certainly valid.
func (s *Schema) certainlyAccepts(args []byte) bool {
	if s.simple == nil || wirejson.Check(args, wirejson.Limits{Bytes: len(args), Depth: maxArgDepth}) != nil {
		return false
	}
	left := allowance + len(args)
	return s.simple.accepts(args, &left)
}

func (p *simpleSchema) accepts(value []byte, left *int) bool {
	if p.acceptsAll {
		return true
	}
	kind := wirejson.Kind(value)
	if *left--; *left < 0 || p.types != "" && strings.IndexByte(p.types, kind) < 0 {
		return false
	}
	return p.acceptsOfKind(kind, value, left) && p.satisfiesSubschemas(value, left)
}

func (p *simpleSchema) acceptsOfKind(kind byte, value []byte, left *int) bool {
	switch kind {
	case '"':
		return p.acceptsString(value, left)
	case 't', 'f', 'n':
		return !p.hasEnum || strings.IndexByte(p.literals, kind) >= 0
	case '0':
		return !p.hasEnum && p.acceptsNumber(value)
	case '[':
		return !p.hasEnum && p.acceptsArray(value, left)
	case '{':
		return !p.hasEnum && p.acceptsObject(value, left)
	}
	return false
}

// satisfiesSubschemas checks the other schemas for the same value.
func (p *simpleSchema) satisfiesSubschemas(value []byte, left *int) bool {
	for _, other := range p.all {
		if !other.accepts(value, left) {
			return false
		}
	}
	return p.either == nil || slices.ContainsFunc(p.either, func(other *simpleSchema) bool { return other.accepts(value, left) })
}

func (p *simpleSchema) acceptsString(value []byte, left *int) bool {
	if p.length.isUnbounded() && !p.hasEnum {
		return true
	}
	if *left -= len(value) / bytesPerUnit; *left < 0 {
		return false
	}
	text := value[1 : len(value)-1]
	most := int64(len(text))
	least := most / 12 // a character has at most the form \u1234\u1234
	fits := p.length.least <= least && most <= p.length.most
	switch {
	case fits && !p.hasEnum:
		return true
	case least > p.length.most:
		return false
	}
	if bytes.IndexByte(text, '\\') >= 0 {
		decoded, _ := wirejson.String(value)
		text = []byte(decoded)
	}
	return (fits || p.length.contains(int64(utf8.RuneCount(text)))) && (!p.hasEnum || p.stringValues[string(text)])
}

func (p *simpleSchema) acceptsNumber(value []byte) bool {
	if n, ok := wirejson.Int(value); ok {
		return p.integer.contains(n)
	}
	if p.integersOnly { // 1.0 and 1e3 are integers, too
		return false
	}
	x, err := strconv.ParseFloat(unsafe.String(&value[0], len(value)), 64)
	return err == nil && p.fraction.least < x && x < p.fraction.most
}

func (p *simpleSchema) acceptsArray(value []byte, left *int) bool {
	if p.element.acceptsAll && p.count.isUnbounded() {
		return true
	}
	if *left -= len(value) / bytesPerUnit; *left < 0 {
		return false
	}
	count := int64(0)
	err := wirejson.EachElement(value, func(element []byte) error {
		if count++; !p.element.accepts(element, left) {
			return errUncertain
		}
		return nil
	})
	return err == nil && p.count.contains(count)
}

func (p *simpleSchema) acceptsObject(value []byte, left *int) bool {
	if len(p.members) == 0 && p.rest != nil && p.rest.acceptsAll {
		return true
	}
	if *left -= len(value) / bytesPerUnit; *left < 0 {
		return false
	}
	missing := p.required
	err := wirejson.EachMember(value, func(name, value []byte) error {
		*left--
		m, named := p.members[string(name)]
		if !named {
			m.simpleSchema = p.rest
		}
		if missing &^= m.bit; m.simpleSchema == nil || !m.accepts(value, left) {
			return errUncertain
		}
		return nil
	})
	return err == nil && missing == 0
}
