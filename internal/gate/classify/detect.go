package classify

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/sectionfile"
)

//go:embed detect.txt
var detectText string

var detectWords = sync.OnceValue(func() map[string]map[string]bool {
	sets := map[string]map[string]bool{}
	for _, s := range sectionfile.Parse(detectText) {
		sets[s.Head] = s.WordSet()
	}
	return sets
})

// schemaParameter is a property of a tool's schema.
type schemaParameter struct {
	name, lower, about, fallback string
	values                       []string // values of its enum
	open                         bool     // free text, or a list of free texts
}

// detectArgumentRule finds the argument that determines what a call of the tool does; nil if the schema contains
// none. The rule is not declared, so it can only raise the lane.
func detectArgumentRule(d *tool.Definition) *ArgumentRule {
	params := parseParameters(d.InputSchema)
	if len(params) == 0 {
		return nil
	}
	known, name, about := detectWords(), splitWords(d.ID.Tool), splitWords(d.Description)
	says := func(set string, of ...[]string) bool {
		return slices.ContainsFunc(of, func(ws []string) bool {
			return slices.ContainsFunc(ws, func(w string) bool { return known[set][w] })
		})
	}
	address := slices.ContainsFunc(params, func(p schemaParameter) bool { return known["address"][p.lower] })
	program := findProgram(name)
	for _, p := range params {
		rule := &ArgumentRule{Argument: "$." + p.name, Default: p.fallback}
		its := splitWords(p.about)
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
		case is("action") && rule.groupActionsByEffect(p.values):
			rule.By = policy.ByAction
		default:
			continue
		}
		return rule
	}
	return nil
}

// ProgramInToolName returns the known program with verbs in the name of a tool; "" if there is none.
func ProgramInToolName(tool string) string { return findProgram(splitWords(tool)) }

// findProgram returns the program with verbs among the words of a name.
func findProgram(name []string) string {
	for _, w := range name {
		if p := knownCommands().programs[w]; p != nil && p.verbs {
			return p.name
		}
	}
	return ""
}

// groupActionsByEffect sorts the values of an enum into r. It reports whether their effects differ, so that at least
// one clearly changes something.
func (r *ArgumentRule) groupActionsByEffect(values []string) bool {
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
		if strings.ContainsAny(v, "*?") { // would be interpreted as a pattern
			return false
		}
	}
	return changes && (len(r.Read) > 0 && writes+len(r.Destructive) > 0 || len(r.Destructive) > 0 && writes > 0)
}

// maxParameters limits the properties of a schema that are read.
const maxParameters = 100

// parseParameters parses the properties of a schema.
func parseParameters(schema []byte) (all []schemaParameter) {
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
		p := schemaParameter{name: string(name), lower: strings.ToLower(strings.ReplaceAll(string(name), "-", "_"))}
		p.about, _ = wirejson.String(wirejson.Find(value, "description"))
		p.fallback, _ = wirejson.String(wirejson.Find(value, "default"))
		if enum := wirejson.Find(value, "enum"); wirejson.Kind(enum) == '[' {
			p.values, _ = parseStrings(enum)
		}
		kind, _ := wirejson.String(wirejson.Find(value, "type"))
		p.open = p.values == nil && kind != "boolean" && kind != "integer" && kind != "number" && kind != "object"
		all = append(all, p)
		return nil
	})
	return all
}

// splitWords splits a name or text into lower-case words.
func splitWords(s string) []string {
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
