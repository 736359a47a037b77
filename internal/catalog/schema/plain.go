package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// Bounds on what is plain.
const (
	maxPlainDepth    = 12
	maxPlainWork     = 6_000   // of schemas, members and values, with references written out
	maxPlainRequired = 64      // bits of a set
	maxPlainNumber   = 1 << 53 // in a schema
)

// plain is the form of a schema whose every keyword is known here. It says
// yes for certain, or nothing: what it does not accept the library judges.
type plain struct {
	free     bool   // everything is allowed, so nothing is looked at
	types    string // what wirejson.Kind may say; all when empty
	whole    bool   // numbers must be integers
	listed   bool   // there is an enum or a const:
	texts    map[string]bool
	literals string // by their Kind
	length   bounds // of strings, in characters
	count    bounds // of elements
	integer  bounds // of integers
	// fraction is between what other numbers must be. It is compared as rounded
	// and without its ends, which is certain: rounding changes no order.
	fraction struct{ least, most float64 }
	element  *plain
	members  map[string]member
	rest     *plain // of members without a name here; nil when there may be none
	required uint64
	all      []*plain // all of which must allow it
	either   []*plain // one of which must
}

type member struct {
	*plain
	bit uint64 // in required
}

type bounds struct{ least, most int64 }

func (b bounds) hold(n int64) bool { return b.least <= n && n <= b.most }

var unbounded = bounds{math.MinInt64, math.MaxInt64}

func (b bounds) none() bool { return b == unbounded }

// plainCompiler makes the plain form of one schema.
type plainCompiler struct {
	root     map[string]any
	anything *plain
	work     int
}

// plainOf returns the plain form of a schema that the library has compiled, nil
// when it has none.
func plainOf(doc any) *plain {
	root, _ := doc.(map[string]any)
	c := plainCompiler{root: root, anything: &plain{free: true}}
	if p, ok := c.compile(doc, 0); ok {
		return p
	}
	return nil
}

func (c *plainCompiler) compile(doc any, depth int) (*plain, bool) {
	members, ok := doc.(map[string]any)
	if !ok {
		return c.anything, doc == true
	}
	if depth > maxPlainDepth || !c.spend(1) {
		return nil, false
	}
	p := &plain{length: unbounded, count: unbounded, integer: unbounded, element: c.anything, rest: c.anything}
	p.fraction.least, p.fraction.most = math.Inf(-1), math.Inf(1)
	p.free = true
	for name, v := range members {
		switch name {
		case "title", "description", "default", "examples", "$comment", "format":
			continue
		case "$schema", // of a draft that the library knows
			"$defs", "definitions": // looked at where something refers to them
			if depth > 0 {
				return nil, false
			}
			continue
		}
		p.free = false
		if !c.keyword(p, name, v, depth) {
			return nil, false
		}
	}
	if p.free {
		return c.anything, true
	}
	return p, c.setMembers(p, members, depth)
}

func (c *plainCompiler) spend(work int) bool {
	c.work += work
	return c.work <= maxPlainWork
}

// keyword notes what a keyword asks for, and reports whether it is plain.
func (c *plainCompiler) keyword(p *plain, name string, v any, depth int) (ok bool) {
	switch name {
	case "properties", "required", "additionalProperties": // see setMembers
		return true
	case "type":
		return p.setTypes(v)
	case "enum":
		list, _ := v.([]any)
		return c.spend(len(list)) && p.list(list)
	case "const":
		return p.list([]any{v})
	case "items":
		p.element, ok = c.compile(v, depth+1)
		return ok
	case "$ref":
		target, ok := c.referred(v, depth)
		p.all = append(p.all, target)
		return ok
	case "allOf":
		inner, ok := c.list(v, depth)
		p.all = append(p.all, inner...)
		return ok
	case "anyOf", "oneOf":
		if p.either != nil {
			return false
		}
		p.either, ok = c.list(v, depth)
		return ok && (name == "anyOf" || disjoint(p.either))
	}
	return p.setLimit(name, v)
}

func (c *plainCompiler) list(v any, depth int) (out []*plain, ok bool) {
	list, _ := v.([]any)
	for _, doc := range list {
		p, ok := c.compile(doc, depth+1)
		if !ok {
			return nil, false
		}
		out = append(out, p)
	}
	return out, len(list) > 0
}

// referred returns the definition that a reference leads to, if it is one of
// the root's.
func (c *plainCompiler) referred(v any, depth int) (*plain, bool) {
	ref, _ := v.(string)
	for _, home := range []string{"$defs", "definitions"} {
		name, found := strings.CutPrefix(ref, "#/"+home+"/")
		definitions, _ := c.root[home].(map[string]any)
		if doc, defined := definitions[name]; found && defined && !strings.ContainsAny(name, "/~%") {
			return c.compile(doc, depth+1)
		}
	}
	return nil, false
}

// disjoint reports whether no value can have the types of two of them, so that
// one of them is exactly one.
func disjoint(alternatives []*plain) bool {
	seen := ""
	for _, p := range alternatives {
		if p.types == "" || strings.ContainsAny(seen, p.types) {
			return false
		}
		seen += p.types
	}
	return true
}

func (p *plain) setTypes(v any) bool {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	kinds := map[string]string{"string": `"`, "integer": "0", "number": "0", "boolean": "tf", "null": "n", "array": "[", "object": "{"}
	p.whole = true
	for _, name := range list {
		text, _ := name.(string)
		p.types += kinds[text]
		p.whole = p.whole && text != "number"
	}
	return p.types != ""
}

// list notes the values of an enum or a const, without those that are for the
// library to compare. Both together are not plain.
func (p *plain) list(values []any) bool {
	if p.listed {
		return false
	}
	p.listed, p.texts = true, make(map[string]bool, len(values))
	for _, v := range values {
		switch v := v.(type) {
		case string:
			p.texts[v] = true
		case bool:
			p.literals += strconv.FormatBool(v)[:1]
		}
	}
	return true
}

func (p *plain) setLimit(name string, v any) bool {
	number, _ := v.(json.Number)
	switch name {
	case "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum":
		limit, ok := new(big.Rat).SetString(string(number))
		return ok && p.setRange(name, limit)
	}
	limit := map[string]*int64{
		"minLength": &p.length.least, "maxLength": &p.length.most, "minItems": &p.count.least, "maxItems": &p.count.most,
	}[name]
	n, ok := wirejson.Int([]byte(number))
	if limit == nil || !ok || n >= maxPlainNumber {
		return false
	}
	*limit = n
	return true
}

// setRange notes a bound on numbers: for integers the outermost that is allowed.
func (p *plain) setRange(name string, limit *big.Rat) bool {
	near, _ := limit.Float64()
	if math.Abs(near) >= maxPlainNumber {
		return false
	}
	below := new(big.Int).Div(limit.Num(), limit.Denom()).Int64() // rounded down
	above := below
	if !limit.IsInt() {
		above++
	}
	switch name {
	case "exclusiveMinimum":
		above = below + 1
		fallthrough
	case "minimum":
		p.integer.least, p.fraction.least = max(p.integer.least, above), max(p.fraction.least, near)
	case "exclusiveMaximum":
		below = above - 1
		fallthrough
	case "maximum":
		p.integer.most, p.fraction.most = min(p.integer.most, below), min(p.fraction.most, near)
	}
	return true
}

func (c *plainCompiler) setMembers(p *plain, schema map[string]any, depth int) (ok bool) {
	switch rest := schema["additionalProperties"]; rest {
	case nil, true:
	case false:
		p.rest = nil
	default:
		if p.rest, ok = c.compile(rest, depth+1); !ok {
			return false
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	if !c.spend(len(properties) + len(required)) {
		return false
	}
	p.members = make(map[string]member, len(properties))
	for name, v := range properties {
		inner, ok := c.compile(v, depth+1)
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
