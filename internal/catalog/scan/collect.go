package scan

import (
	"fmt"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// jsonContext is the meaning of an object's members.
type jsonContext int8

const (
	inTool    jsonContext = iota // members of a tool
	inSchema                     // JSON Schema keywords
	inNames                      // names chosen by the server, each with a schema
	inValues                     // example values: any JSON
	inAnyJSON                    // any JSON
)

// stringCollector walks valid JSON and adds its strings to the scanner.
type stringCollector struct {
	wirejson.Cursor
	s *scanner
}

// walkDefinition adds all strings of a definition. It returns a reason if it could not.
func (s *scanner) walkDefinition(raw []byte) (reason string) {
	c := stringCollector{wirejson.Cursor{Text: raw}, s}
	s.nodes = append(s.nodes[:0], pathNode{})
	return c.walkValue(0, 0, inTool, kindProse)
}

func (c *stringCollector) walkValue(at int32, depth int, in jsonContext, p stringKind) string {
	if len(c.s.fields) >= maxStrings {
		return fmt.Sprintf("the definition has more than %d strings; only the first ones were scanned", maxStrings)
	}
	if depth > maxDepth {
		return fmt.Sprintf("the definition is nested deeper than %d levels; only the part before that was scanned", maxDepth)
	}
	switch c.Peek() {
	case '{':
		return c.walkObject(at, depth, in, p)
	case '[':
		return c.walkArray(at, depth, in, p)
	case '"':
		if text := c.decodeString(); text != "" {
			c.s.addField(scannedString{place: p, node: at, text: text})
		}
	default:
		c.ReadValue()
	}
	return ""
}

func (c *stringCollector) walkArray(at int32, depth int, in jsonContext, p stringKind) string {
	end := c.Enter('[')
	for k := int32(0); c.More(end); k++ {
		if reason := c.walkValue(c.addNode(pathNode{at, "", k}), depth+1, in, p); reason != "" {
			return reason
		}
	}
	return ""
}

func (c *stringCollector) walkObject(at int32, depth int, in jsonContext, p stringKind) string {
	for end := c.Enter('{'); c.More(end); {
		member := decodeJSONString(c.ReadName())
		next := c.addNode(pathNode{at, member, -1})
		within, its := memberContext(in, member, p)
		if in == inNames || in == inValues || !wordLists().members[member] {
			c.s.addField(scannedString{place: kindMemberName, node: next, text: member})
		}
		if in == inSchema && c.skipKeywordValue(member) {
			continue
		}
		if reason := c.walkValue(next, depth+1, within, its); reason != "" {
			return reason
		}
	}
	return ""
}

func (c *stringCollector) addNode(n pathNode) int32 {
	c.s.nodes = append(c.s.nodes, n)
	return int32(len(c.s.nodes) - 1)
}

// memberContext returns the context and string kind of a member's value.
func memberContext(in jsonContext, member string, p stringKind) (jsonContext, stringKind) {
	switch in {
	case inTool:
		switch member {
		case "name":
			return inAnyJSON, kindToolName
		case "inputSchema", "outputSchema":
			return inSchema, kindProse
		}
		return inAnyJSON, kindProse
	case inNames:
		return inSchema, kindProse
	case inSchema:
		switch member {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			return inNames, kindProse
		case "default", "const", "enum", "examples", "example", "pattern":
			return inValues, kindValue
		case "required", "dependentRequired":
			return inValues, kindMemberName
		case "title", "description", "$comment":
			return inAnyJSON, kindProse
		}
		return inSchema, kindProse
	}
	return in, p
}

// skipKeywordValue skips the value of a member if it is one of a few harmless words.
func (c *stringCollector) skipKeywordValue(member string) bool {
	if member != "type" && member != "$schema" && member != "format" || c.Peek() != '"' {
		return false
	}
	before := c.Cursor
	if wordLists().types[c.decodeString()] {
		return true
	}
	c.Cursor = before
	return false
}

// decodeString reads and decodes a string.
func (c *stringCollector) decodeString() string {
	value := c.ReadValue()
	return decodeJSONString(value[1 : len(value)-1])
}

// decodeJSONString decodes a string, with U+FFFD for invalid UTF-8.
func decodeJSONString(raw []byte) string {
	text := string(wirejson.Unescape(raw))
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	return text
}
