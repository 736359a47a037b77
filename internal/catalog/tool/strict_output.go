package tool

import (
	"encoding/json"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// compilesForClients reports whether all clients can compile an output schema. Some clients compile the output schemas
// of a whole list when they receive it, and reject the list if one does not compile: a reference has no target, a
// pattern is not valid in JavaScript, or a keyword has the form of another draft. A schema that only some clients can
// compile is left out.
func compilesForClients(schema json.RawMessage) bool {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return false
	}
	c := schemaCompileCheck{root: root}
	return !hasIdentifier(root) && c.isSchema(root, 0) && !slices.ContainsFunc(c.refs, func(ref string) bool { return !c.leadsToSchema(ref) })
}

// hasIdentifier reports whether a value contains an identifier of a schema. Some clients also look for identifiers in
// vendors' keywords and in maps of schemas.
func hasIdentifier(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if name == "$id" || name == "$anchor" || name == "$dynamicAnchor" || hasIdentifier(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasIdentifier)
	}
	return false
}

// schemaCompileCheck checks the parts of a schema.
type schemaCompileCheck struct {
	root any
	refs []string // references in the checked parts
}

// maxCompiledDepth is the maximum nesting depth of schemas.
const maxCompiledDepth = 64

// schemaKeywords contains the form of each keyword's value: S schema, M schemas by name, P schemas by pattern, N lists
// by name, D schemas or lists by name, L list of schemas, T type or list of types, n number, b boolean, t text, l list,
// e non-empty list, p pattern, r reference, x not supported by all clients.
var schemaKeywords = map[string]byte{
	"not": 'S', "if": 'S', "then": 'S', "else": 'S', "additionalProperties": 'S', "propertyNames": 'S', "contains": 'S', "additionalItems": 'S', "items": 'S',
	"unevaluatedProperties": 'S', "unevaluatedItems": 'S', "properties": 'M', "$defs": 'M', "definitions": 'M', "dependentSchemas": 'M', "patternProperties": 'P',
	"dependentRequired": 'N', "dependencies": 'D', "allOf": 'L', "anyOf": 'L', "oneOf": 'L', "prefixItems": 'L', "type": 'T',
	"maximum": 'n', "minimum": 'n', "exclusiveMaximum": 'n', "exclusiveMinimum": 'n', "multipleOf": 'n', "maxLength": 'n', "minLength": 'n',
	"maxItems": 'n', "minItems": 'n', "maxProperties": 'n', "minProperties": 'n', "maxContains": 'n', "minContains": 'n',
	"uniqueItems": 'b', "nullable": 'b', "format": 't', "required": 'l', "enum": 'e', "pattern": 'p', "$ref": 'r',
	"id": 'x', "$dynamicRef": 'x', "$recursiveAnchor": 'x', "$recursiveRef": 'x', "$async": 'x',
	"formatMinimum": 'x', "formatMaximum": 'x', "formatExclusiveMinimum": 'x', "formatExclusiveMaximum": 'x',
}

func isListValue(v any) bool { _, ok := v.([]any); return ok }

func isTypeWord(v any) bool {
	word, _ := v.(string)
	return slices.Contains([]string{"string", "number", "integer", "boolean", "null", "object", "array"}, word)
}

func (c *schemaCompileCheck) isSchema(v any, depth int) bool {
	if _, ok := v.(bool); ok {
		return depth > 0
	}
	members, ok := v.(map[string]any)
	if !ok || depth > maxCompiledDepth {
		return false
	}
	for name, value := range members {
		if !c.isKeyword(schemaKeywords[name], value, depth) {
			return false
		}
	}
	return members["nullable"] == nil || members["type"] != nil
}

// isKeyword reports whether a keyword's value has this form.
func (c *schemaCompileCheck) isKeyword(form byte, value any, depth int) bool {
	below := func(v any) bool { return c.isSchema(v, depth+1) }
	members, isObject := value.(map[string]any)
	list, isList := value.([]any)
	text, isText := value.(string)
	all := func(names func(string) bool, values func(any) bool) bool {
		for name, v := range members {
			if !names(name) || !values(v) {
				return false
			}
		}
		return isObject
	}
	anyName := func(string) bool { return true }
	each := func(is func(any) bool) bool {
		return isList && !slices.ContainsFunc(list, func(v any) bool { return !is(v) })
	}
	switch form {
	case 'S':
		return below(value)
	case 'M':
		return all(anyName, below)
	case 'P':
		return all(isPortablePattern, below)
	case 'N':
		return all(anyName, isListValue)
	case 'D':
		return all(anyName, func(v any) bool { return isListValue(v) || below(v) })
	case 'L':
		return each(below)
	case 'T':
		return isTypeWord(value) || each(isTypeWord)
	case 'n':
		_, ok := value.(float64)
		return ok
	case 'b':
		_, ok := value.(bool)
		return ok
	case 't':
		return isText
	case 'l':
		return isList
	case 'e':
		return len(list) > 0
	case 'p':
		return isText && isPortablePattern(text)
	case 'r':
		c.refs = append(c.refs, text)
		return isText
	}
	return form == 0 // an annotation
}

// leadsToSchema reports whether a reference leads to a schema within the schema, and not back to itself.
func (c *schemaCompileCheck) leadsToSchema(ref string) bool {
	for range maxCompiledDepth {
		target, found := c.partAt(ref)
		if !found || !(&schemaCompileCheck{}).isSchema(target, 1) {
			return false
		}
		members, _ := target.(map[string]any)
		next, further := members["$ref"].(string)
		if !further {
			return true
		}
		ref = next
	}
	return false
}

// partAt returns the part of the schema that a local reference points to.
func (c *schemaCompileCheck) partAt(ref string) (part any, found bool) {
	fragment, within := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(fragment)
	if !within || err != nil {
		return nil, false
	}
	steps := strings.Split(pointer, "/")
	if steps[0] != "" { // an anchor
		return nil, false
	}
	part = c.root
	for _, step := range steps[1:] {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch whole := part.(type) {
		case map[string]any:
			part, found = whole[step]
		case []any:
			i, err := strconv.Atoi(step)
			if found = err == nil && 0 <= i && i < len(whole); found {
				part = whole[i]
			}
		default:
			found = false
		}
		if !found {
			return nil, false
		}
	}
	return part, true
}

// isPortablePattern reports whether a pattern is certainly a valid regular expression in Go and in JavaScript, where
// the Unicode flag forbids unnecessary escapes and lone brackets.
func isPortablePattern(pattern string) bool {
	if _, err := syntax.Parse(pattern, syntax.Perl); err != nil || strings.Contains(pattern, "[:") {
		return false
	}
	class := false
	for i := 0; i < len(pattern); i++ {
		c, rest := pattern[i], pattern[i+1:]
		assertion := !class && (c == '^' || c == '$')
		set := false // whether the position is in a character class
		switch {
		case c == '\\' && rest != "":
			i++
			if !strings.Contains(`dDwWsSbBnrtfv^$\.*+?()[]{}|/`, rest[:1]) && !(class && rest[0] == '-') {
				return false
			}
			set, assertion = strings.Contains("dDwWsS", rest[:1]), !class && strings.Contains("bB", rest[:1])
			rest = rest[1:]
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(' && strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "?:"), c == ']', c == '}':
			return false
		case c == '{':
			count, _, closed := strings.Cut(rest, "}")
			if !closed || strings.Trim(count, "0123456789,") != "" || count == "" || count[0] == ',' {
				return false
			}
			i += len(count) + 1
		}
		if assertion && rest != "" && strings.Contains("*+?{", rest[:1]) || set && class && len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			return false
		}
	}
	return true
}
