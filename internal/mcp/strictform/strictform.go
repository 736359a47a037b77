// Package strictform brings parts of messages into the form that strict MCP clients accept. Such a client rejects a
// whole list, or a whole result, if one part violates the schema of the protocol.
//
//   - It changes only what has one meaning: a member that is null counts as missing, and [] in place of {} as empty.
//   - A value that it does not change keeps its bytes.
//   - It expects valid JSON without two members of the same name.
package strictform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// Fault is a violation that cannot be repaired, with its path: "inputSchema.required", or "" for the value itself.
type Fault struct{ Path, What string }

// NewFault returns the fault of a value.
func NewFault(what string) *Fault { return &Fault{What: what} }

func (f *Fault) Error() string { return strings.TrimPrefix(f.Path+" "+f.What, " ") }

// within returns the fault of a value as a fault of the object or list that contains the value at step.
func (f *Fault) within(step string) *Fault {
	if f.Path != "" && f.Path[0] != '[' {
		step += "."
	}
	return &Fault{step + f.Path, f.What}
}

// Rule returns a value in the form that strict clients accept, or nil if the member is to be left out. value is nil if
// the member is missing.
type Rule func(value json.RawMessage) (json.RawMessage, *Fault)

// Member is a member of an object whose value has to follow a rule.
type Member struct {
	Name     string
	Rule     Rule
	Required bool // the rule also applies if the member is missing or null
}

// Icons is the rule for the icons of a definition or a link.
func Icons(value json.RawMessage) (json.RawMessage, *Fault) {
	return ListOf(ObjectWith(iconMembers))(value)
}

var iconMembers = []Member{{"src", Text, true}, {"mimeType", Text, false}, {"sizes", ListOf(Text), false}, {"theme", OneOf("light", "dark"), false}}

// Annotations is the rule for the annotations of a resource or a content block. Those of tools are hints, with other
// members.
func Annotations(value json.RawMessage) (json.RawMessage, *Fault) {
	return ObjectWith(annotationMembers)(value)
}

var annotationMembers = []Member{{"audience", ListOf(OneOf("user", "assistant")), false}, {"priority", share, false}, {"lastModified", date, false}}

// IsEmptyAs reports whether a value is an empty array or object of this kind. Languages without both types, such as PHP
// and Lua, write one for the other.
func IsEmptyAs(value json.RawMessage, kind byte) bool {
	return wirejson.Kind(value) == kind && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
}

// Apply applies the rules to the members of an object.
func Apply(object json.RawMessage, members []Member) (json.RawMessage, *Fault) {
	if IsEmptyAs(object, '[') {
		object = json.RawMessage("{}")
	}
	if wirejson.Kind(object) != '{' {
		return nil, NewFault("is no object")
	}
	for _, m := range members {
		value := json.RawMessage(wirejson.Find(object, m.Name))
		null := string(value) == "null"
		switch {
		case value == nil && !m.Required:
			continue
		case null && m.Required:
			value = nil
		case null:
			object = wirejson.DropMember(object, m.Name)
			continue
		}
		strict, fault := m.Rule(value)
		switch {
		case fault != nil:
			return nil, fault.within(m.Name)
		case strict == nil:
			object = wirejson.DropMember(object, m.Name)
		case !bytes.Equal(strict, value):
			object = wirejson.SetMember(object, m.Name, strict)
		}
	}
	return object, nil
}

// ObjectWith returns the rule for an object whose members follow rules.
func ObjectWith(members []Member) Rule {
	return func(value json.RawMessage) (json.RawMessage, *Fault) { return Apply(value, members) }
}

// ListOf returns the rule for an array whose elements follow a rule.
func ListOf(rule Rule) Rule {
	return func(value json.RawMessage) (json.RawMessage, *Fault) {
		if IsEmptyAs(value, '{') {
			value = json.RawMessage("[]")
		}
		if wirejson.Kind(value) != '[' {
			return nil, NewFault("is no list")
		}
		out, i, changed := json.RawMessage("["), 0, false
		var fault *Fault
		_ = wirejson.EachElement(value, func(element []byte) error { // parsing cannot fail: the value is valid JSON
			strict, f := rule(element)
			if f != nil && fault == nil {
				fault = f.within(fmt.Sprintf("[%d]", i))
			}
			if i++; i > 1 {
				out = append(out, ',')
			}
			out, changed = append(out, strict...), changed || !bytes.Equal(strict, element)
			return nil
		})
		switch {
		case fault != nil:
			return nil, fault
		case !changed:
			return value, nil
		}
		return append(out, ']'), nil
	}
}

// isKind returns the rule for a value that has one of these JSON kinds.
func isKind(value json.RawMessage, kinds, want string) (json.RawMessage, *Fault) {
	if k := wirejson.Kind(value); k == 0 || strings.IndexByte(kinds, k) < 0 {
		return nil, NewFault("is no " + want)
	}
	return value, nil
}

// Text is the rule for a string.
func Text(value json.RawMessage) (json.RawMessage, *Fault) { return isKind(value, `"`, "text") }

// Bool is the rule for a boolean.
func Bool(value json.RawMessage) (json.RawMessage, *Fault) { return isKind(value, "tf", "boolean") }

// Integer is the rule for an integer. It leaves out another number, because some clients read only integers.
func Integer(value json.RawMessage) (json.RawMessage, *Fault) {
	if _, fault := isKind(value, "0", "number"); fault != nil {
		return nil, fault
	}
	if _, ok := wirejson.Int(value); !ok {
		return nil, nil
	}
	return value, nil
}

// share is the rule for a number from 0 to 1.
func share(value json.RawMessage) (json.RawMessage, *Fault) {
	var n float64
	if json.Unmarshal(value, &n) != nil || n < 0 || n > 1 {
		return nil, NewFault("is no number from 0 to 1")
	}
	return value, nil
}

// OneOf returns the rule for a string that is one of words.
func OneOf(words ...string) Rule {
	return func(value json.RawMessage) (json.RawMessage, *Fault) {
		text, _ := wirejson.String(value)
		for _, w := range words {
			if w == text {
				return value, nil
			}
		}
		return nil, NewFault("is none of " + strings.Join(words, ", "))
	}
}

var portableDate = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// date is the rule for a date. It leaves out a date that not all clients can parse.
func date(value json.RawMessage) (json.RawMessage, *Fault) {
	text, ok := wirejson.String(value)
	if !ok {
		return nil, NewFault("is no text")
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil || !portableDate.MatchString(text) {
		return nil, nil
	}
	return value, nil
}
