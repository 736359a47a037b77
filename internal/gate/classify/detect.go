package classify

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/wordlist"
)

//go:embed detect.txt
var detectText string

var detectWords = sync.OnceValue(func() map[string]map[string]bool {
	sets := map[string]map[string]bool{}
	for _, s := range wordlist.Parse(detectText) {
		sets[s.Head] = s.WordSet()
	}
	return sets
})

// parameter is a property of a tool's schema.
type parameter struct {
	name, lower, about, fallback string
	values                       []string // of its enum
	open                         bool     // a free text, or a list of them
}

// detect finds the argument that determines what a call of the tool does; nil if the schema shows none.
// The rule is not declared, so it can only raise the lane.
func detect(d *tool.Definition) *Rule {
	params := parameters(d.InputSchema)
	if len(params) == 0 {
		return nil
	}
	known, name, about := detectWords(), words(d.ID.Tool), words(d.Description)
	says := func(set string, of ...[]string) bool {
		return slices.ContainsFunc(of, func(ws []string) bool {
			return slices.ContainsFunc(ws, func(w string) bool { return known[set][w] })
		})
	}
	address := slices.ContainsFunc(params, func(p parameter) bool { return known["address"][p.lower] })
	program := programIn(name)
	for _, p := range params {
		rule := &Rule{Argument: "$." + p.name, Default: p.fallback}
		its := words(p.about)
		switch is := func(set string) bool { return known[set][p.lower] }; {
		case strings.ContainsRune(p.name, '.'):
			continue
		case p.open && (is("sql") || is("sql perhaps") && says("says sql", name, about, its)):
			rule.By = policy.BySQL
		case p.open && (is("graphql") || is("graphql perhaps") && slices.Contains(slices.Concat(name, about, its), "graphql")):
			rule.By = policy.ByGraphQL
		case is("http") && (slices.Contains(p.values, "GET") || p.values == nil && p.open && address):
			rule.By = policy.ByHTTP
		case p.open && is("cli") && program != "":
			rule.By, rule.Program = policy.ByCLI, program
		case p.open && is("shell") && says("says shell", name) && !says("not shell", name, about, its):
			rule.By = policy.ByShell
		case is("action") && rule.actions(p.values):
			rule.By = policy.ByAction
		default:
			continue
		}
		return rule
	}
	return nil
}

// ProgramOf returns the known program with verbs that a tool is named after; "" for none.
func ProgramOf(tool string) string { return programIn(words(tool)) }

// programIn returns the program with verbs among the words of a name.
func programIn(name []string) string {
	for _, w := range name {
		if p := knownCommands().programs[w]; p != nil && p.verbs {
			return p.name
		}
	}
	return ""
}

// actions sorts the values of an enum into r, and reports whether they differ in effect: at least one
// clearly changes something.
func (r *Rule) actions(values []string) bool {
	writes, changes := 0, false
	for _, v := range values {
		changes = changes || nameSaysChange(v)
		switch operationOfName(v) {
		case policy.Destructive:
			r.Destructive = append(r.Destructive, v)
		case policy.Read:
			r.Read = append(r.Read, v)
		default:
			writes++
		}
		if strings.ContainsAny(v, "*?") { // it would be a pattern
			return false
		}
	}
	return changes && (len(r.Read) > 0 && writes+len(r.Destructive) > 0 || len(r.Destructive) > 0 && writes > 0)
}

// maxParameters limits the properties of a schema that are read.
const maxParameters = 100

// parameters parses the properties of a schema.
func parameters(schema []byte) (all []parameter) {
	if wirejson.Kind(schema) != '{' {
		return nil
	}
	properties := wirejson.Find(schema, "properties")
	if wirejson.Kind(properties) != '{' {
		return nil
	}
	_ = wirejson.EachMember(properties, func(name, value []byte) error {
		if wirejson.Kind(value) != '{' || len(all) >= maxParameters {
			return nil
		}
		p := parameter{name: string(name), lower: strings.ToLower(strings.ReplaceAll(string(name), "-", "_"))}
		p.about, _ = wirejson.String(wirejson.Find(value, "description"))
		p.fallback, _ = wirejson.String(wirejson.Find(value, "default"))
		if enum := wirejson.Find(value, "enum"); wirejson.Kind(enum) == '[' {
			p.values, _ = texts(enum)
		}
		kind, _ := wirejson.String(wirejson.Find(value, "type"))
		p.open = p.values == nil && kind != "boolean" && kind != "integer" && kind != "number" && kind != "object"
		all = append(all, p)
		return nil
	})
	return all
}

// words splits a name or text into lower-case words.
func words(s string) []string {
	if len(s) > 4096 {
		s = s[:4096]
	}
	var spaced strings.Builder
	for i, r := range s {
		if 'A' <= r && r <= 'Z' && i > 0 && 'a' <= s[i-1] && s[i-1] <= 'z' {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(r)
	}
	all := strings.FieldsFunc(spaced.String(), func(r rune) bool { return !('a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9') })
	for i, w := range all {
		all[i] = strings.ToLower(w)
	}
	return all
}
