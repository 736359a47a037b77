package effect

import (
	"encoding/json"
	"strings"

	"mcpproxy/internal/strictjson"
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

// changing are parameters that speak of a change.
var changing = set(`force dry_run dryrun overwrite cascade confirm confirmed confirmation purge recursive_delete delete remove
	truncate permanently hard_delete new_name new_value save_path savepath output_path outputpath output_file outputfile
	output_dir outputdir output_directory save_to save_dir destination_path dest_path target_path commit_message create_if_missing
	if_exists upsert append replace updates changes set_fields unset`)

// actions are parameters that choose what is done.
var actions = set(`action operation op method command mode verb subcommand task`)

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
	if strictjson.Kind(raw) != '{' {
		return
	}
	if depth > maxDepth {
		s.long = true
		return
	}
	_ = strictjson.Members(raw, func(name, value []byte) error {
		switch string(name) {
		case "properties":
			if strictjson.Kind(value) == '{' {
				_ = strictjson.Members(value, func(name, value []byte) error {
					s.property(string(name), value)
					s.object(value, depth+1)
					return nil
				})
			}
		case "anyOf", "oneOf", "allOf":
			if strictjson.Kind(value) == '[' {
				_ = strictjson.Elements(value, func(value []byte) error { s.object(value, depth+1); return nil })
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
			s.code = cmpOr(s.code, snake)
		}
	case changing[lower] || changing[snake]:
		s.changes = cmpOr(s.changes, snake)
	}
	if actions[lower] || actions[snake] {
		s.choice(value)
	}
}

// takesCode says whether a parameter of that name is a program or a part of one.
func takesCode(lower, snake string) bool {
	if codeWords[lower] || codeWords[snake] {
		return true
	}
	first, rest, parted := strings.Cut(snake, "_")
	if !parted || strings.Contains(rest, "_") {
		return false
	}
	switch rest {
	case "code", "script", "command", "statement", "query", "string", "text":
		return codeWords[first] && first != "code" || first == "source" && rest == "code"
	}
	return false
}

// identifies says whether a parameter "code" is explained as one that names
// something.
func identifies(value []byte) bool {
	about, _ := strictjson.String(strictjson.Find(value, "description"))
	about = strings.ToLower(about)
	for _, w := range identifying {
		if strings.Contains(about, w) {
			return true
		}
	}
	return false
}

func kindOf(value []byte) string {
	k, _ := strictjson.String(strictjson.Find(value, "type"))
	return k
}

func hasEnum(value []byte) bool { return strictjson.Kind(strictjson.Find(value, "enum")) == '[' }

// choice looks for actions that change something among the values of an enum.
func (s *schema) choice(value []byte) {
	known := lexicon()
	each := func(v []byte) error {
		text, ok := strictjson.String(v)
		if !ok {
			return nil
		}
		for i, w := range pieces(text, nil) {
			switch r := known[w]; {
			case r.role == destroys && i == 0 && r.form == base:
				s.deletes = cmpOr(s.deletes, w)
			case (r.role == writes || r.role == mayWrite || r.role == runs) && i == 0 && r.form == base:
				s.writes = cmpOr(s.writes, w)
			}
		}
		return nil
	}
	if enum := strictjson.Find(value, "enum"); strictjson.Kind(enum) == '[' {
		_ = strictjson.Elements(enum, each)
	}
	for _, word := range [...]string{"anyOf", "oneOf"} {
		if list := strictjson.Find(value, word); strictjson.Kind(list) == '[' {
			_ = strictjson.Elements(list, func(v []byte) error {
				if constant := strictjson.Find(v, "const"); constant != nil {
					return each(constant)
				}
				return nil
			})
		}
	}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
