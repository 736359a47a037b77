package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// Limits for simple schemas.
const (
	maxSimpleDepth    = 12
	maxSimpleWork     = 6_000   // number of schemas, members and values, with references expanded
	maxSimpleRequired = 64      // bits of a set
	maxSimpleNumber   = 1 << 53 // in a schema
)

// simpleSchema is a schema with only common keywords. It accepts values that are certainly valid. All other values go
// to the library.
type simpleSchema struct {
	acceptsAll   bool   // the schema accepts every value
	types        string // allowed results of wirejson.Kind; empty means all
	integersOnly bool   // numbers must be integers
	hasEnum      bool   // the schema has enum or const
	stringValues map[string]bool
	literals     string   // by their kind
	length       intRange // of strings, in characters
	count        intRange // of elements
	integer      intRange // of integers
	// fraction is the range of numbers that are not integers. Numbers are compared after rounding, and the limits are
	// excluded. That is safe because rounding preserves order.
	fraction struct{ least, most float64 }
	element  *simpleSchema
	members  map[string]memberSchema
	rest     *simpleSchema // for members without an entry in members; nil if no other members are allowed
	required uint64
	all      []*simpleSchema // all must accept the value
	either   []*simpleSchema // one must accept the value
}

type memberSchema struct {
	*simpleSchema
	bit uint64 // in required
}

type intRange struct{ least, most int64 }

func (b intRange) contains(n int64) bool { return b.least <= n && n <= b.most }

var unbounded = intRange{math.MinInt64, math.MaxInt64}

func (b intRange) isUnbounded() bool { return b == unbounded }

// simpleCompiler compiles the simple form of one schema.
type simpleCompiler struct {
	root     map[string]any
	anything *simpleSchema
	work     int
}

// compileSimple returns the simple form of a schema that the library has compiled, or nil if there is none.
func compileSimple(doc any) *simpleSchema {
	root, _ := doc.(map[string]any)
	c := simpleCompiler{root: root, anything: &simpleSchema{acceptsAll: true}}
	if p, ok := c.compileNode(doc, 0); ok {
		return p
	}
	return nil
}

func (c *simpleCompiler) compileNode(doc any, depth int) (*simpleSchema, bool) {
	members, ok := doc.(map[string]any)
	if !ok {
		return c.anything, doc == true
	}
	if depth > maxSimpleDepth || !c.spendWork(1) {
		return nil, false
	}
	p := &simpleSchema{length: unbounded, count: unbounded, integer: unbounded, element: c.anything, rest: c.anything}
	p.fraction.least, p.fraction.most = math.Inf(-1), math.Inf(1)
	p.acceptsAll = true
	for name, v := range members {
		switch name {
		case "title", "description", "default", "examples", "$comment", "format":
			continue
		case "$schema", // a draft that the library supports
			"$defs", "definitions": // used through references
			if depth > 0 {
				return nil, false
			}
			continue
		}
		p.acceptsAll = false
		if !c.compileKeyword(p, name, v, depth) {
			return nil, false
		}
	}
	if p.acceptsAll {
		return c.anything, true
	}
	return p, c.compileMembers(p, members, depth)
}

func (c *simpleCompiler) spendWork(work int) bool {
	c.work += work
	return c.work <= maxSimpleWork
}

// compileKeyword compiles a keyword, and reports whether the simple form supports it.
func (c *simpleCompiler) compileKeyword(p *simpleSchema, name string, v any, depth int) (ok bool) {
	switch name {
	case "properties", "required", "additionalProperties": // see compileMembers
		return true
	case "type":
		return p.setTypes(v)
	case "enum":
		list, _ := v.([]any)
		return c.spendWork(len(list)) && p.setEnum(list)
	case "const":
		return p.setEnum([]any{v})
	case "items":
		p.element, ok = c.compileNode(v, depth+1)
		return ok
	case "$ref":
		target, ok := c.compileRef(v, depth)
		p.all = append(p.all, target)
		return ok
	case "allOf":
		inner, ok := c.compileSchemaList(v, depth)
		p.all = append(p.all, inner...)
		return ok
	case "anyOf", "oneOf":
		if p.either != nil {
			return false
		}
		p.either, ok = c.compileSchemaList(v, depth)
		return ok && (name == "anyOf" || haveDisjointTypes(p.either))
	}
	return p.setBoundKeyword(name, v)
}

func (c *simpleCompiler) compileSchemaList(v any, depth int) (out []*simpleSchema, ok bool) {
	list, _ := v.([]any)
	for _, doc := range list {
		p, ok := c.compileNode(doc, depth+1)
		if !ok {
			return nil, false
		}
		out = append(out, p)
	}
	return out, len(list) > 0
}

// compileRef returns the definition that a reference points to, if it is one of the root's definitions.
func (c *simpleCompiler) compileRef(v any, depth int) (*simpleSchema, bool) {
	ref, _ := v.(string)
	for _, home := range []string{"$defs", "definitions"} {
		name, found := strings.CutPrefix(ref, "#/"+home+"/")
		definitions, _ := c.root[home].(map[string]any)
		if doc, defined := definitions[name]; found && defined && !strings.ContainsAny(name, "/~%") {
			return c.compileNode(doc, depth+1)
		}
	}
	return nil, false
}

// haveDisjointTypes reports whether no two alternatives accept the same type, so that oneOf is equivalent to anyOf.
func haveDisjointTypes(alternatives []*simpleSchema) bool {
	seen := ""
	for _, p := range alternatives {
		if p.types == "" || strings.ContainsAny(seen, p.types) {
			return false
		}
		seen += p.types
	}
	return true
}

func (p *simpleSchema) setTypes(v any) bool {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	kinds := map[string]string{"string": `"`, "integer": "0", "number": "0", "boolean": "tf", "null": "n", "array": "[", "object": "{"}
	p.integersOnly = true
	for _, name := range list {
		text, _ := name.(string)
		p.types += kinds[text]
		p.integersOnly = p.integersOnly && text != "number"
	}
	return p.types != ""
}

// setEnum stores the values of an enum or a const. It omits values that only the library compares. A schema with both
// keywords is not supported.
func (p *simpleSchema) setEnum(values []any) bool {
	if p.hasEnum {
		return false
	}
	p.hasEnum, p.stringValues = true, make(map[string]bool, len(values))
	for _, v := range values {
		switch v := v.(type) {
		case string:
			p.stringValues[v] = true
		case bool:
			p.literals += strconv.FormatBool(v)[:1]
		}
	}
	return true
}

func (p *simpleSchema) setBoundKeyword(name string, v any) bool {
	number, _ := v.(json.Number)
	switch name {
	case "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum":
		limit, ok := new(big.Rat).SetString(string(number))
		return ok && p.setNumberBound(name, limit)
	}
	limit := map[string]*int64{
		"minLength": &p.length.least, "maxLength": &p.length.most, "minItems": &p.count.least, "maxItems": &p.count.most,
	}[name]
	n, ok := wirejson.Int([]byte(number))
	if limit == nil || !ok || n >= maxSimpleNumber {
		return false
	}
	*limit = n
	return true
}

// setNumberBound stores a limit for numbers. For integers, it stores the outermost allowed value.
func (p *simpleSchema) setNumberBound(name string, limit *big.Rat) bool {
	near, _ := limit.Float64()
	if math.Abs(near) >= maxSimpleNumber {
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

func (c *simpleCompiler) compileMembers(p *simpleSchema, schema map[string]any, depth int) (ok bool) {
	switch rest := schema["additionalProperties"]; rest {
	case nil, true:
	case false:
		p.rest = nil
	default:
		if p.rest, ok = c.compileNode(rest, depth+1); !ok {
			return false
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	if !c.spendWork(len(properties) + len(required)) {
		return false
	}
	p.members = make(map[string]memberSchema, len(properties))
	for name, v := range properties {
		inner, ok := c.compileNode(v, depth+1)
		if !ok {
			return false
		}
		p.members[name] = memberSchema{simpleSchema: inner}
	}
	for i, v := range required {
		name, ok := v.(string)
		m := p.members[name]
		if m.simpleSchema == nil {
			m.simpleSchema = p.rest
		}
		if !ok || i >= maxSimpleRequired || m.simpleSchema == nil {
			return false
		}
		m.bit |= 1 << i
		p.members[name], p.required = m, p.required|m.bit
	}
	return true
}
