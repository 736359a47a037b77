package classify

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// maxSchema is the size of the largest schema that is analyzed, in bytes; the largest real ones have 53 KB. A tool
// with a larger schema does not count as read-only.
const maxSchema = 128 << 10

// schemaAnalysis is the analysis of the parameters of a tool.
type schemaAnalysis struct {
	code    string // a parameter that contains code
	changes string // a parameter that only makes sense for a change
	deletes string // an enum of actions, one of which deletes
	writes  string // an enum of actions, one of which writes
	vessel  string // a parameter that may contain code, if the description mentions some
	long    bool
}

// analyzeSchema analyzes the parameters.
func analyzeSchema(raw json.RawMessage) schemaAnalysis {
	var s schemaAnalysis
	if len(raw) > maxSchema {
		s.long = true
		return s
	}
	if len(raw) > 0 {
		s.analyzeObject(raw, 0)
	}
	return s
}

// analyzeObject analyzes the properties of a schema and its nested schemas, in one pass.
func (s *schemaAnalysis) analyzeObject(raw []byte, depth int) {
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
					s.analyzeProperty(string(name), value)
					s.analyzeObject(value, depth+1)
					return nil
				})
			}
		case "anyOf", "oneOf", "allOf":
			if wirejson.Kind(value) == '[' {
				_ = wirejson.EachElement(value, func(value []byte) error { s.analyzeObject(value, depth+1); return nil })
			}
		case "items", "$defs", "definitions", "additionalProperties":
			s.analyzeObject(value, depth+1)
		}
		return nil
	})
}

func (s *schemaAnalysis) analyzeProperty(name string, value []byte) {
	lower, snake := strings.ToLower(name), ""
	if lower == name {
		snake = strings.ReplaceAll(name, "-", "_")
	} else {
		var buffer [maxNameWords]string
		snake = strings.Join(splitIdentifier(name, buffer[:0]), "_")
	}
	k := schemaType(value)
	open := k != "boolean" && k != "integer" && k != "number" && k != "object" && !hasEnum(value)
	switch {
	case nameMeansCode(lower, snake):
		if (open || k == "object" && !hasEnum(value)) && !(lower == "code" && isDescribedAsID(value)) {
			s.code = cmp.Or(s.code, snake)
		}
	case open && describedAsCode(value):
		s.code = cmp.Or(s.code, snake)
	case open && hasTrait(snake, vessel):
		s.vessel = cmp.Or(s.vessel, snake)
	case hasTrait(lower, changing) || hasTrait(snake, changing):
		s.changes = cmp.Or(s.changes, snake)
	}
	if hasTrait(lower, action) || hasTrait(snake, action) {
		s.analyzeEnum(value)
	}
}

// nameMeansCode reports whether the name of a parameter indicates that its value is code.
func nameMeansCode(lower, snake string) bool {
	if hasTrait(lower, codeWord) || hasTrait(snake, codeWord) {
		return true
	}
	words := strings.Split(snake, "_")
	last := words[len(words)-1]
	if (hasTrait(last, written) || hasTrait(last, language)) && slices.ContainsFunc(words, func(w string) bool { return hasTrait(w, language) }) {
		return true // raw_sql_query
	}
	if len(words) != 2 {
		return false
	}
	first, rest := words[0], last
	switch rest {
	case "code", "script", "command", "statement", "query", "string", "text":
		return hasTrait(first, codeWord) && first != "code" || first == "source" && rest == "code"
	}
	return false
}

// describedAsCode reports whether the description of a parameter starts with a text that indicates code: "The SQL
// query to run", "Query in Cypher".
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
	for n := 0; n < most && hasTrait(first, plain); n++ {
		first = next()
	}
	spoken := hasTrait(first, language)
	if !spoken && !hasTrait(first, scripting) && !hasTrait(first, written) {
		return false
	}
	second, third := next(), next()
	switch {
	case spoken, hasTrait(first, scripting):
		return second == "to" || hasTrait(second, written) || hasTrait(third, written) && (spoken || hasTrait(second, plain))
	case hasTrait(first, codeWord) && second == "to":
		return third == "run" || third == "execute" || third == "evaluate" || third == "eval"
	case hasTrait(second, language):
		return true
	}
	for n, before, w := 0, second, third; n < most && w != ""; n, before, w = n+1, w, next() {
		if hasTrait(w, language) { // a query to run, in SQL
			return before == "in" || before == "using" || hasTrait(before, plain)
		}
	}
	return false
}

func isLetter(r rune) bool { return r >= utf8.RuneSelf || isLetterByte(byte(r)) }

// isDescribedAsID reports whether a parameter "code" is described as an identifier.
func isDescribedAsID(value []byte) bool {
	about, _ := wirejson.String(wirejson.Find(value, "description"))
	about = strings.ToLower(about)
	return slices.ContainsFunc(lexicon().identifying, func(w string) bool { return strings.Contains(about, w) })
}

func schemaType(value []byte) string {
	k, _ := wirejson.String(wirejson.Find(value, "type"))
	return k
}

func hasEnum(value []byte) bool { return wirejson.Kind(wirejson.Find(value, "enum")) == '[' }

// analyzeEnum looks for changing actions in an enum.
func (s *schemaAnalysis) analyzeEnum(value []byte) {
	known := lexicon()
	each := func(v []byte) error {
		text, ok := wirejson.String(v)
		if !ok {
			return nil
		}
		for i, w := range splitIdentifier(text, nil) {
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
