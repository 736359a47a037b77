package classify

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// maxSchema is the longest schema that is read, in bytes; the largest real ones have 53 KB. A tool with a
// longer one does not count as read-only.
const maxSchema = 128 << 10

// schema is the analysis of the parameters of a tool.
type schema struct {
	code    string // a parameter with code
	changes string // a parameter that only makes sense for a change
	deletes string // an enum of actions, one of which deletes
	writes  string // an enum of actions, one of which writes
	vessel  string // a parameter that may contain code, if the description mentions some
	long    bool
}

// readSchema analyzes the parameters.
func readSchema(raw json.RawMessage) schema {
	var s schema
	if len(raw) > maxSchema {
		s.long = true
		return s
	}
	if len(raw) > 0 {
		s.object(raw, 0)
	}
	return s
}

// object analyzes the properties of a schema and its nested schemas, in one pass.
func (s *schema) object(raw []byte, depth int) {
	const maxDepth = 12
	if wirejson.Kind(raw) != '{' {
		return
	}
	if depth > maxDepth {
		s.long = true
		return
	}
	_ = wirejson.EachMember(raw, func(name, value []byte) error {
		switch string(name) {
		case "properties":
			if wirejson.Kind(value) == '{' {
				_ = wirejson.EachMember(value, func(name, value []byte) error {
					s.property(string(name), value)
					s.object(value, depth+1)
					return nil
				})
			}
		case "anyOf", "oneOf", "allOf":
			if wirejson.Kind(value) == '[' {
				_ = wirejson.EachElement(value, func(value []byte) error { s.object(value, depth+1); return nil })
			}
		case "items", "$defs", "definitions", "additionalProperties":
			s.object(value, depth+1)
		}
		return nil
	})
}

func (s *schema) property(name string, value []byte) {
	lower, snake := strings.ToLower(name), ""
	if lower == name {
		snake = strings.ReplaceAll(name, "-", "_")
	} else {
		var buffer [maxNameWords]string
		snake = strings.Join(pieces(name, buffer[:0]), "_")
	}
	k := kindOf(value)
	open := k != "boolean" && k != "integer" && k != "number" && k != "object" && !hasEnum(value)
	switch {
	case takesCode(lower, snake):
		if (open || k == "object" && !hasEnum(value)) && !(lower == "code" && identifies(value)) {
			s.code = cmp.Or(s.code, snake)
		}
	case open && describedAsCode(value):
		s.code = cmp.Or(s.code, snake)
	case open && is(snake, vessel):
		s.vessel = cmp.Or(s.vessel, snake)
	case is(lower, changing) || is(snake, changing):
		s.changes = cmp.Or(s.changes, snake)
	}
	if is(lower, action) || is(snake, action) {
		s.choice(value)
	}
}

// takesCode reports whether the name of a parameter says that it is code.
func takesCode(lower, snake string) bool {
	if is(lower, codeWord) || is(snake, codeWord) {
		return true
	}
	words := strings.Split(snake, "_")
	last := words[len(words)-1]
	if (is(last, written) || is(last, language)) && slices.ContainsFunc(words, func(w string) bool { return is(w, language) }) {
		return true // raw_sql_query
	}
	if len(words) != 2 {
		return false
	}
	first, rest := words[0], last
	switch rest {
	case "code", "script", "command", "statement", "query", "string", "text":
		return is(first, codeWord) && first != "code" || first == "source" && rest == "code"
	}
	return false
}

// describedAsCode reports whether the description of a parameter starts by saying that it is code: "The
// SQL query to run", "Query in Cypher".
func describedAsCode(value []byte) bool {
	const most = 12
	about, _ := wirejson.String(wirejson.Find(value, "description"))
	next := func() string {
		from := strings.IndexFunc(about, isLetter)
		if from < 0 {
			return ""
		}
		about = about[from:]
		end := strings.IndexFunc(about, func(r rune) bool { return !isLetter(r) })
		if end < 0 {
			end = len(about)
		}
		w := strings.ToLower(about[:end])
		about = about[end:]
		return w
	}
	first := next()
	for n := 0; n < most && is(first, plain); n++ {
		first = next()
	}
	spoken := is(first, language)
	if !spoken && !is(first, scripting) && !is(first, written) {
		return false
	}
	second, third := next(), next()
	switch {
	case spoken, is(first, scripting):
		return second == "to" || is(second, written) || is(third, written) && (spoken || is(second, plain))
	case is(first, codeWord) && second == "to":
		return third == "run" || third == "execute" || third == "evaluate" || third == "eval"
	case is(second, language):
		return true
	}
	for n, before, w := 0, second, third; n < most && w != ""; n, before, w = n+1, w, next() {
		if is(w, language) { // a query to run, in SQL
			return before == "in" || before == "using" || is(before, plain)
		}
	}
	return false
}

func isLetter(r rune) bool { return r >= utf8.RuneSelf || isLetterByte(byte(r)) }

// identifies reports whether a parameter "code" is described as an identifier.
func identifies(value []byte) bool {
	about, _ := wirejson.String(wirejson.Find(value, "description"))
	about = strings.ToLower(about)
	return slices.ContainsFunc(lexicon().identifying, func(w string) bool { return strings.Contains(about, w) })
}

func kindOf(value []byte) string {
	k, _ := wirejson.String(wirejson.Find(value, "type"))
	return k
}

func hasEnum(value []byte) bool { return wirejson.Kind(wirejson.Find(value, "enum")) == '[' }

// choice looks for changing actions in an enum.
func (s *schema) choice(value []byte) {
	known := lexicon()
	each := func(v []byte) error {
		text, ok := wirejson.String(v)
		if !ok {
			return nil
		}
		for i, w := range pieces(text, nil) {
			switch r := known.words[w]; {
			case r.role == destroys && i == 0 && r.form == base:
				s.deletes = cmp.Or(s.deletes, w)
			case (r.role == writes || r.role == mayWrite || r.role == runs) && i == 0 && r.form == base:
				s.writes = cmp.Or(s.writes, w)
			}
		}
		return nil
	}
	if enum := wirejson.Find(value, "enum"); wirejson.Kind(enum) == '[' {
		_ = wirejson.EachElement(enum, each)
	}
	for _, word := range [...]string{"anyOf", "oneOf"} {
		if list := wirejson.Find(value, word); wirejson.Kind(list) == '[' {
			_ = wirejson.EachElement(list, func(v []byte) error {
				if constant := wirejson.Find(v, "const"); constant != nil {
					return each(constant)
				}
				return nil
			})
		}
	}
}
