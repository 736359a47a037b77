package scan

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// place is the kind of a string: rules differ in where they look.
type place int8

const (
	placeProse place = iota // titles, descriptions and whatever is not of the other kinds
	placeName               // the name of the tool
	placeKey                // the name of a member: of a parameter, or one that no standard gives
	placeValue              // a default, a constant, one of an enumeration, an example, a pattern
)

// field is one string of a definition.
type field struct {
	place place
	node  int32  // where it stands in a definition
	name  string // where it stands, when it is not of a definition
	text  string
}

// node is one step of the way to a string.
type node struct {
	parent int32
	member string
	index  int32 // of an element; -1 for a member
}

// pointer gives the JSON pointer of a node.
func (s *scanner) pointer(n int32) string {
	var steps []string
	for ; n > 0; n = s.nodes[n].parent {
		step := s.nodes[n].member
		if s.nodes[n].index >= 0 {
			step = strconv.Itoa(int(s.nodes[n].index))
		}
		steps = append(steps, step)
	}
	var b strings.Builder
	for k := len(steps) - 1; k >= 0; k-- {
		b.WriteByte('/')
		b.WriteString(pointerEscapes.Replace(steps[k]))
	}
	return b.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// context says what the members of an object are.
type context int8

const (
	inTool    context = iota // those of a tool
	inSchema                 // keywords of JSON Schema
	inNames                  // names that the server chose, each with a schema
	inValues                 // example values: any JSON
	inAnyJSON                // any JSON
)

// collector goes through JSON whose grammar is checked and gives its strings to
// the scanner.
type collector struct {
	s  *scanner
	in []byte
	i  int
}

// collect takes all strings of a definition. It gives a reason when it could
// not.
func (s *scanner) collect(raw []byte) (reason string) {
	c := collector{s: s, in: raw}
	s.nodes = append(s.nodes[:0], node{})
	return c.value(0, 0, inTool, placeProse)
}

func (c *collector) value(at int32, depth int, in context, p place) string {
	if len(c.s.fields) >= maxStrings {
		return fmt.Sprintf("the definition has more than %d strings; only the first were looked at", maxStrings)
	}
	if depth > maxDepth {
		return fmt.Sprintf("the definition is nested deeper than %d levels; only what stands before was looked at", maxDepth)
	}
	switch c.peek() {
	case '{':
		return c.object(at, depth, in, p)
	case '[':
		return c.array(at, depth, in, p)
	case '"':
		if text := c.text(); text != "" {
			c.s.add(field{place: p, node: at, text: text})
		}
	default:
		for c.i < len(c.in) && c.in[c.i] > ' ' && c.in[c.i] != ',' && c.in[c.i] != ']' && c.in[c.i] != '}' {
			c.i++
		}
	}
	return ""
}

func (c *collector) array(at int32, depth int, in context, p place) string {
	for k := int32(0); c.more(); k++ {
		if reason := c.value(c.step(node{at, "", k}), depth+1, in, p); reason != "" {
			return reason
		}
	}
	return ""
}

func (c *collector) object(at int32, depth int, in context, p place) string {
	for c.more() {
		c.peek()
		member := c.text()
		c.peek()
		c.i++ // the colon
		next := c.step(node{at, member, -1})
		within, its := inside(in, member, p)
		if in == inNames || in == inValues || !isKnown(member) {
			c.s.add(field{place: placeKey, node: next, text: member})
		}
		if isTyped(in, member) && c.skipTyped() {
			continue
		}
		if reason := c.value(next, depth+1, within, its); reason != "" {
			return reason
		}
	}
	return ""
}

func (c *collector) step(n node) int32 {
	c.s.nodes = append(c.s.nodes, n)
	return int32(len(c.s.nodes) - 1)
}

// inside says what stands in a member.
func inside(in context, member string, p place) (context, place) {
	switch in {
	case inTool:
		switch member {
		case "name":
			return inAnyJSON, placeName
		case "inputSchema", "outputSchema":
			return inSchema, placeProse
		}
		return inAnyJSON, placeProse
	case inNames:
		return inSchema, placeProse
	case inSchema:
		switch member {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			return inNames, placeProse
		case "default", "const", "enum", "examples", "example", "pattern":
			return inValues, placeValue
		case "required", "dependentRequired":
			return inValues, placeKey
		case "title", "description", "$comment":
			return inAnyJSON, placeProse
		}
		return inSchema, placeProse
	}
	return in, p
}

// known are the names of members that MCP and JSON Schema give. They say
// nothing; whatever has another name is looked at.
var known = func() map[string]bool {
	names := map[string]bool{}
	for _, n := range strings.Fields(`name title description inputSchema outputSchema annotations icons _meta execution
		readOnlyHint destructiveHint idempotentHint openWorldHint taskSupport src mimeType sizes theme
		$schema $id $ref $anchor $dynamicRef $dynamicAnchor $defs $comment $vocabulary definitions
		type properties required additionalProperties patternProperties propertyNames items prefixItems contains
		minContains maxContains unevaluatedItems unevaluatedProperties additionalItems enum const default examples example
		format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems
		uniqueItems minProperties maxProperties dependentRequired dependentSchemas dependencies allOf anyOf oneOf not if then else
		contentEncoding contentMediaType contentSchema readOnly writeOnly deprecated nullable discriminator`) {
		names[n] = true
	}
	return names
}()

func isKnown(member string) bool { return known[member] }

// isTyped says whether a member mostly holds one of a few words that say
// nothing.
func isTyped(in context, member string) bool {
	return in == inSchema && (member == "type" || member == "$schema" || member == "format")
}

// skipTyped steps over such a word; false when it is none of them.
func (c *collector) skipTyped() bool {
	if c.peek() != '"' {
		return false
	}
	start := c.i
	switch c.text() {
	case "string", "object", "array", "number", "integer", "boolean", "null", "uri", "date", "date-time", "email", "uuid",
		"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema":
		return true
	}
	c.i = start
	return false
}

// peek skips white space and gives the next byte.
func (c *collector) peek() byte {
	for c.in[c.i] == ' ' || c.in[c.i] == '\n' || c.in[c.i] == '\t' || c.in[c.i] == '\r' {
		c.i++
	}
	return c.in[c.i]
}

// more steps over the opening bracket or the comma before an element or a
// member. At the end it steps over the closing bracket and gives false.
func (c *collector) more() bool {
	switch c.peek() {
	case '[', '{':
		c.i++
		if b := c.peek(); b != ']' && b != '}' {
			return true
		}
	case ',':
		c.i++
		c.peek()
		return true
	}
	c.i++
	return false
}

// text steps over a string and decodes it.
func (c *collector) text() string {
	start := c.i + 1
	plain := true
	for c.i = start; c.in[c.i] != '"'; c.i++ {
		if c.in[c.i] == '\\' {
			plain = false
			c.i++
		}
	}
	c.i++
	raw := c.in[start : c.i-1]
	if plain && utf8.Valid(raw) {
		return string(raw)
	}
	var text string
	if err := json.Unmarshal(c.in[start-1:c.i], &text); err != nil {
		panic(fmt.Sprintf("a string of valid JSON cannot be decoded: %v", err))
	}
	return text
}
