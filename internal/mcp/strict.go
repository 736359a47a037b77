package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// The strict form of a definition or a result is the form that strict clients accept. Such a client rejects a whole
// list, or a whole result, if one part violates the schema of the protocol.
//
//   - A rule changes only what has one meaning: a member that is null counts as missing, and [] in place of {} as empty.
//   - A value that a rule does not change keeps its bytes.
//   - The value must be valid JSON without two members of the same name.

// StrictFault is a violation that cannot be repaired, with its path: "inputSchema.required", or "" for the value itself.
type StrictFault struct{ Path, What string }

// NewStrictFault returns the fault of a value.
func NewStrictFault(what string) *StrictFault { return &StrictFault{What: what} }

func (f *StrictFault) Error() string { return strings.TrimPrefix(f.Path+" "+f.What, " ") }

// within returns the fault of a value as a fault of the object or list that contains the value at step.
func (f *StrictFault) within(step string) *StrictFault {
	if f.Path != "" && f.Path[0] != '[' {
		step += "."
	}
	return &StrictFault{step + f.Path, f.What}
}

// StrictRule returns the strict form of a value, or nil if the member is to be left out. value is nil if the member is
// missing.
type StrictRule func(value json.RawMessage) (json.RawMessage, *StrictFault)

// StrictMember is a member of an object whose value has to follow a rule.
type StrictMember struct {
	Name     string
	Rule     StrictRule
	Required bool // the rule also applies if the member is missing or null
}

// StrictIcons is the rule for the icons of a definition or a link.
func StrictIcons(value json.RawMessage) (json.RawMessage, *StrictFault) {
	return StrictListOf(StrictObjectWith(iconMembers))(value)
}

var iconMembers = []StrictMember{{"src", StrictText, true}, {"mimeType", StrictText, false}, {"sizes", StrictListOf(StrictText), false}, {"theme", StrictOneOf("light", "dark"), false}}

// StrictAnnotations is the rule for the annotations of a resource or a content block. Those of tools are hints, with
// other members.
func StrictAnnotations(value json.RawMessage) (json.RawMessage, *StrictFault) {
	return StrictObjectWith(annotationMembers)(value)
}

var annotationMembers = []StrictMember{{"audience", StrictListOf(StrictOneOf("user", "assistant")), false}, {"priority", strictShare, false}, {"lastModified", strictDate, false}}

// IsEmptyAs reports whether a value is an empty array or object of this kind. Languages without both types, such as PHP
// and Lua, write one for the other.
func IsEmptyAs(value json.RawMessage, kind byte) bool {
	return wirejson.Kind(value) == kind && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
}

// ApplyStrict applies the rules to the members of an object.
func ApplyStrict(object json.RawMessage, members []StrictMember) (json.RawMessage, *StrictFault) {
	if IsEmptyAs(object, '[') {
		object = json.RawMessage("{}")
	}
	if wirejson.Kind(object) != '{' {
		return nil, NewStrictFault("is no object")
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

// StrictObjectWith returns the rule for an object whose members follow rules.
func StrictObjectWith(members []StrictMember) StrictRule {
	return func(value json.RawMessage) (json.RawMessage, *StrictFault) { return ApplyStrict(value, members) }
}

// StrictListOf returns the rule for an array whose elements follow a rule.
func StrictListOf(rule StrictRule) StrictRule {
	return func(value json.RawMessage) (json.RawMessage, *StrictFault) {
		if IsEmptyAs(value, '{') {
			value = json.RawMessage("[]")
		}
		if wirejson.Kind(value) != '[' {
			return nil, NewStrictFault("is no list")
		}
		out, i, changed := json.RawMessage("["), 0, false
		var fault *StrictFault
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

// strictKind returns the rule for a value that has one of these JSON kinds.
func strictKind(value json.RawMessage, kinds, want string) (json.RawMessage, *StrictFault) {
	if k := wirejson.Kind(value); k == 0 || strings.IndexByte(kinds, k) < 0 {
		return nil, NewStrictFault("is no " + want)
	}
	return value, nil
}

// StrictText is the rule for a string.
func StrictText(value json.RawMessage) (json.RawMessage, *StrictFault) {
	return strictKind(value, `"`, "text")
}

// StrictBool is the rule for a boolean.
func StrictBool(value json.RawMessage) (json.RawMessage, *StrictFault) {
	return strictKind(value, "tf", "boolean")
}

// StrictInteger is the rule for an integer. It leaves out another number, because some clients read only integers.
func StrictInteger(value json.RawMessage) (json.RawMessage, *StrictFault) {
	if _, fault := strictKind(value, "0", "number"); fault != nil {
		return nil, fault
	}
	if _, ok := wirejson.Int(value); !ok {
		return nil, nil
	}
	return value, nil
}

// strictShare is the rule for a number from 0 to 1.
func strictShare(value json.RawMessage) (json.RawMessage, *StrictFault) {
	var n float64
	if json.Unmarshal(value, &n) != nil || n < 0 || n > 1 {
		return nil, NewStrictFault("is no number from 0 to 1")
	}
	return value, nil
}

// StrictOneOf returns the rule for a string that is one of words.
func StrictOneOf(words ...string) StrictRule {
	return func(value json.RawMessage) (json.RawMessage, *StrictFault) {
		text, _ := wirejson.String(value)
		for _, w := range words {
			if w == text {
				return value, nil
			}
		}
		return nil, NewStrictFault("is none of " + strings.Join(words, ", "))
	}
}

var portableDate = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// strictDate is the rule for a date. It leaves out a date that not all clients can parse.
func strictDate(value json.RawMessage) (json.RawMessage, *StrictFault) {
	text, ok := wirejson.String(value)
	if !ok {
		return nil, NewStrictFault("is no text")
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil || !portableDate.MatchString(text) {
		return nil, nil
	}
	return value, nil
}
