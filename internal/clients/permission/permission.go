// Package permission evaluates an MCP client's reaction when its model calls one of MCPProxy's tools: run without
// asking, ask the user, or deny. It finds the rule that decides, and its file. It also writes rules that allow
// read-only tools and make the client ask about all others (plan.go). The rules of each client, or group of similar
// clients, are in one file. table.go lists the clients.
//
// Files:
//   - permission.go, check.go: the types, and the report on a client
//   - target.go: MCPProxy's entries in a client, with the questions and rules about them
//   - plan.go, surface_change.go, edit.go, account.go: prepare, write and undo the rules
//   - table.go, rule_files.go: the clients, and their files with rules
//   - claude.go, codex.go, gemini.go, cursor_cline_goose.go, opencode_zed.go: evaluate the rules of each client
//
// Guarantees:
//   - A decision follows only from the client's files and the tools' hints. A setting that no file contains is "unknown" and
//     never guessed.
//   - If a file cannot be read, everything that it could decide is unknown.
//   - A user's denial is never removed.
//
// It does not see settings in a vendor's user interface, on its command line or on its servers. Notes mention these
// settings. It starts nothing and does not ask for confirmation.
package permission

import (
	"encoding/json"
	"path"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/mcp/wirejson"
)

// Verdict describes how a client handles a call of a tool.
type Verdict string

const (
	Runs    Verdict = "runs"    // without asking
	Asks    Verdict = "asks"    // asks the user
	Denied  Verdict = "denied"  // the call fails, or the model does not see the tool
	Unknown Verdict = "unknown" // no file contains the answer
)

// Words returns the verdict as a phrase about a tool.
func (v Verdict) Words() string {
	return map[Verdict]string{Runs: "runs without asking", Asks: "asks", Denied: "is denied"}[v] + map[bool]string{true: "not known"}[v == Unknown]
}

// ProxyTool is one of MCPProxy's own tools, as clients see it.
type ProxyTool struct {
	Name  string
	Hints tool.Hints
}

// recommendedVerdict returns MCPProxy's recommendation: read-only tools run, others ask.
func (t ProxyTool) recommendedVerdict() Verdict {
	if t.Hints.ReadOnly == tool.True {
		return Runs
	}
	return Asks
}

// ParseTools parses the definitions of tools/list.
func ParseTools(definitions json.RawMessage) []ProxyTool {
	var all []ProxyTool
	_ = wirejson.EachElement(definitions, func(definition []byte) error {
		name, _ := wirejson.String(wirejson.Find(definition, "name"))
		all = append(all, ProxyTool{name, tool.ParseHints(wirejson.Find(definition, "annotations"))})
		return nil
	})
	return all
}

// Rule is the rule that decides, with its position. Line counts from 1. For a client's default, Line is 0 and Path is
// empty.
type Rule struct {
	Text string `json:"text" doc:"The rule as written, or the default of the client."`
	Path string `json:"path,omitempty" doc:"The file of the rule."`
	Line int    `json:"line,omitempty"`
}

// toolDecision is the verdict for one tool.
type toolDecision struct {
	verdict Verdict
	rule    Rule
	why     string
}

// clientDoc is the content of a client's file.
type clientDoc struct {
	kind fileKind
	clients.ClientDoc
}

// newRule returns a rule in the document.
func (d clientDoc) newRule(at clients.ParsedValue, text string) Rule {
	return Rule{text, d.Path, at.Line()}
}

// fileKind is the purpose of a client's file.
type fileKind string

const (
	fileRules          fileKind = "rules"    // permissions
	fileServers        fileKind = "servers"  // servers, with settings per server
	fileSwitches       fileKind = "switches" // which servers are disabled
	fileTrustedFolders fileKind = "folders"  // which directories are trusted
)

// clientFile is a file that a client reads.
type clientFile struct {
	kind fileKind
	clients.File
}

// clientDocs are the client's existing files, lowest precedence first.
type clientDocs []clientDoc

func (all clientDocs) withKind(k fileKind) clientDocs {
	var some clientDocs
	for _, d := range all {
		if d.kind == k {
			some = append(some, d)
		}
	}
	return some
}

func (all clientDocs) highestFirst() clientDocs {
	other := make(clientDocs, len(all))
	for i, d := range all {
		other[len(all)-1-i] = d
	}
	return other
}

// strongestValue returns the value at a path from the document with the highest precedence that contains it.
func (all clientDocs) strongestValue(keys ...string) (clientDoc, clients.ParsedValue) {
	for _, d := range all.highestFirst() {
		if found := d.Value.Get(keys...); found.Exists() {
			return d, found
		}
	}
	return clientDoc{}, clients.ParsedValue{}
}

// serverEntry returns the server's entry from the document with the highest precedence that contains it.
func (all clientDocs) serverEntry(server string) (clientDoc, clients.ParsedValue) {
	for _, d := range all.withKind(fileServers).highestFirst() {
		if e := d.ServerEntry(server); e.Exists() {
			return d, e
		}
	}
	return clientDoc{}, clients.ParsedValue{}
}

// toolQuery is the input of a decision.
type toolQuery struct {
	docs   clientDocs
	server string // MCPProxy's name in the client
	tool   ProxyTool
	dir    string // working directory
}

// firstMatch returns the first string of a list that matches.
func firstMatch(list clients.ParsedValue, matches func(string) bool) (clients.ParsedValue, bool) {
	for _, item := range list.StringItems() {
		if matches(item.Text()) {
			return item, true
		}
	}
	return clients.ParsedValue{}, false
}

// denyListed denies a tool if a list of a document matches. name is the name of the list.
func denyListed(d clientDoc, list clients.ParsedValue, name string, matches func(string) bool) toolDecision {
	if at, found := firstMatch(list, matches); found {
		return toolDecision{Denied, d.newRule(at, name+" "+at.Text()), ""}
	}
	return toolDecision{}
}

// denyUnlisted denies a tool if a list of a document exists and does not match. The argument what is the kind of its
// elements.
func denyUnlisted(d clientDoc, list clients.ParsedValue, name, what string, matches func(string) bool) toolDecision {
	if _, found := firstMatch(list, matches); found || !list.IsList() {
		return toolDecision{}
	}
	return toolDecision{Denied, d.newRule(list, name+" does not contain the "+what), ""}
}

func equalTo(name string) func(string) bool { return func(s string) bool { return s == name } }

// matchStar reports whether the name matches a pattern in which * matches any text.
func matchStar(pattern, name string) bool {
	head, tail, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for i := 0; i <= len(name); i++ {
		if matchStar(tail, name[i:]) {
			return true
		}
	}
	return false
}

// matchGlob is like matchStar, but ? matches one character.
func matchGlob(pattern, name string) bool {
	escaped := strings.NewReplacer(`\`, `\\`, `[`, `\[`, "/", "\x00").Replace(pattern)
	ok, err := path.Match(escaped, strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}

// sanitizeName returns a name as clients with a restricted character set write it.
func sanitizeName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}
