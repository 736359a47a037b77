package effect

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/internal/rawjson"
)

// maxSchema is the longest schema that is read; the largest real ones have
// 53 KB. A longer one is not taken for that of a reading tool.
const maxSchema = 128 << 10

// schema is what the parameters of a tool say.
type schema struct {
	code    string // a parameter that takes code
	changes string // a parameter that only makes sense where something changes
	deletes string // a choice between actions, one of which deletes
	writes  string // a choice between actions, one of which writes
	long    bool
}

// readSchema goes through the parameters.
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

// object looks at the properties of a schema, and of the schemas in it, in one
// pass.
func (s *schema) object(raw []byte, depth int) {
	const maxDepth = 12
	if rawjson.Kind(raw) != '{' {
		return
	}
	if depth > maxDepth {
		s.long = true
		return
	}
	_ = rawjson.Members(raw, func(name, value []byte) error {
		switch string(name) {
		case "properties":
			if rawjson.Kind(value) == '{' {
				_ = rawjson.Members(value, func(name, value []byte) error {
					s.property(string(name), value)
					s.object(value, depth+1)
					return nil
				})
			}
		case "anyOf", "oneOf", "allOf":
			if rawjson.Kind(value) == '[' {
				_ = rawjson.Elements(value, func(value []byte) error { s.object(value, depth+1); return nil })
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
	switch {
	case takesCode(lower, snake):
		if k := kindOf(value); k != "boolean" && k != "integer" && k != "number" && !hasEnum(value) && !(lower == "code" && identifies(value)) {
			s.code = cmp.Or(s.code, snake)
		}
	case is(lower, changing) || is(snake, changing):
		s.changes = cmp.Or(s.changes, snake)
	}
	if is(lower, action) || is(snake, action) {
		s.choice(value)
	}
}

// takesCode reports whether a parameter of that name is a program or a part of one.
func takesCode(lower, snake string) bool {
	if is(lower, codeWord) || is(snake, codeWord) {
		return true
	}
	first, rest, parted := strings.Cut(snake, "_")
	if !parted || strings.Contains(rest, "_") {
		return false
	}
	switch rest {
	case "code", "script", "command", "statement", "query", "string", "text":
		return is(first, codeWord) && first != "code" || first == "source" && rest == "code"
	}
	return false
}

// identifies reports whether a parameter "code" is explained as one that names
// something.
func identifies(value []byte) bool {
	about, _ := rawjson.String(rawjson.Find(value, "description"))
	about = strings.ToLower(about)
	return slices.ContainsFunc(lexicon().identifying, func(w string) bool { return strings.Contains(about, w) })
}

func kindOf(value []byte) string {
	k, _ := rawjson.String(rawjson.Find(value, "type"))
	return k
}

func hasEnum(value []byte) bool { return rawjson.Kind(rawjson.Find(value, "enum")) == '[' }

// choice looks for actions that change something among the values of an enum.
func (s *schema) choice(value []byte) {
	known := lexicon()
	each := func(v []byte) error {
		text, ok := rawjson.String(v)
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
	if enum := rawjson.Find(value, "enum"); rawjson.Kind(enum) == '[' {
		_ = rawjson.Elements(enum, each)
	}
	for _, word := range [...]string{"anyOf", "oneOf"} {
		if list := rawjson.Find(value, word); rawjson.Kind(list) == '[' {
			_ = rawjson.Elements(list, func(v []byte) error {
				if constant := rawjson.Find(v, "const"); constant != nil {
					return each(constant)
				}
				return nil
			})
		}
	}
}
