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

// What the walk over the arguments may cost: an allowance, and a unit for each
// byte, so that whatever a schema looks at a few times is judged, up to the
// largest arguments. A unit is about 25 ns.
const (
	allowance    = 50_000
	bytesPerUnit = 32 // of an array or object to be stepped through
)

// errDoubt ends a walk over arguments that are not certainly valid.
var errDoubt = errors.New("not certainly valid")

// accepts reports whether the arguments are certainly valid.
func (s *Schema) accepts(args []byte) bool {
	if s.plain == nil || wirejson.Check(args, wirejson.Limits{Bytes: len(args), Depth: maxArgDepth}) != nil {
		return false
	}
	left := allowance + len(args)
	return s.plain.accept(args, &left)
}

func (p *plain) accept(value []byte, left *int) bool {
	if p.free {
		return true
	}
	kind := wirejson.Kind(value)
	if *left--; *left < 0 || p.types != "" && strings.IndexByte(p.types, kind) < 0 {
		return false
	}
	return p.acceptKind(kind, value, left) && p.acceptOthers(value, left)
}

func (p *plain) acceptKind(kind byte, value []byte, left *int) bool {
	switch kind {
	case '"':
		return p.acceptText(value, left)
	case 't', 'f', 'n':
		return !p.listed || strings.IndexByte(p.literals, kind) >= 0
	case '0':
		return !p.listed && p.acceptNumber(value)
	case '[':
		return !p.listed && p.acceptElements(value, left)
	case '{':
		return !p.listed && p.acceptMembers(value, left)
	}
	return false
}

// acceptOthers asks the other schemas that are for the same value.
func (p *plain) acceptOthers(value []byte, left *int) bool {
	for _, other := range p.all {
		if !other.accept(value, left) {
			return false
		}
	}
	return p.either == nil || slices.ContainsFunc(p.either, func(other *plain) bool { return other.accept(value, left) })
}

func (p *plain) acceptText(value []byte, left *int) bool {
	if p.length.none() && !p.listed {
		return true
	}
	if *left -= len(value) / bytesPerUnit; *left < 0 {
		return false
	}
	text := value[1 : len(value)-1]
	most := int64(len(text))
	least := most / 12 // a character is at most \u1234\u1234
	fits := p.length.least <= least && most <= p.length.most
	switch {
	case fits && !p.listed:
		return true
	case least > p.length.most:
		return false
	}
	if bytes.IndexByte(text, '\\') >= 0 {
		decoded, _ := wirejson.String(value)
		text = []byte(decoded)
	}
	return (fits || p.length.hold(int64(utf8.RuneCount(text)))) && (!p.listed || p.texts[string(text)])
}

func (p *plain) acceptNumber(value []byte) bool {
	if n, ok := wirejson.Int(value); ok {
		return p.integer.hold(n)
	}
	if p.whole { // 1.0 and 1e3 are integers, too
		return false
	}
	x, err := strconv.ParseFloat(unsafe.String(&value[0], len(value)), 64)
	return err == nil && p.fraction.least < x && x < p.fraction.most
}

func (p *plain) acceptElements(value []byte, left *int) bool {
	if p.element.free && p.count.none() {
		return true
	}
	if *left -= len(value) / bytesPerUnit; *left < 0 {
		return false
	}
	count := int64(0)
	err := wirejson.Elements(value, func(element []byte) error {
		if count++; !p.element.accept(element, left) {
			return errDoubt
		}
		return nil
	})
	return err == nil && p.count.hold(count)
}

func (p *plain) acceptMembers(value []byte, left *int) bool {
	if len(p.members) == 0 && p.rest != nil && p.rest.free {
		return true
	}
	if *left -= len(value) / bytesPerUnit; *left < 0 {
		return false
	}
	missing := p.required
	err := wirejson.Members(value, func(name, value []byte) error {
		*left--
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
