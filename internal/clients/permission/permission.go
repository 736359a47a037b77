// Package permission says what an MCP client does when its model calls one of
// MCPProxy's tools: whether the call runs unasked, asks a person or is denied, and
// which rule in which file decides; and it makes the rules with which what only
// reads runs unasked and the rest asks.
//
// It guarantees that a judgement follows from the texts of the client's files and
// from the hints of the tools alone, that what no file says is "unknown" and never
// guessed, that a file that cannot be read makes everything it could decide
// unknown, and that a denial a person wrote is never taken out. What a vendor
// decides in its user interface, by its command line or on its servers is not
// seen: the notes say so where it matters. It starts nothing and asks nobody.
package permission

import (
	"encoding/json"
	"path"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/mcp/wirejson"
)

// Verdict is what a client does with a call of a tool.
type Verdict string

const (
	Runs    Verdict = "runs"    // without a question
	Asks    Verdict = "asks"    // a person
	Denied  Verdict = "denied"  // the call fails, or the model does not see the tool
	Unknown Verdict = "unknown" // no file says it
)

// Words are the verdict in a sentence about a tool.
func (v Verdict) Words() string {
	return map[Verdict]string{Runs: "runs unasked", Asks: "asks", Denied: "is denied"}[v] + map[bool]string{true: "not known"}[v == Unknown]
}

// Tool is one of MCPProxy's own tools, as clients see it.
type Tool struct {
	Name  string
	Hints tool.Hints
}

// Wanted is what MCPProxy recommends: what says that it only reads runs, anything
// else asks.
func (t Tool) Wanted() Verdict {
	if t.Hints.ReadOnly == tool.True {
		return Runs
	}
	return Asks
}

// Tools reads definitions as tools/list has them.
func Tools(definitions json.RawMessage) []Tool {
	var all []Tool
	_ = wirejson.Elements(definitions, func(definition []byte) error {
		name, _ := wirejson.String(wirejson.Find(definition, "name"))
		all = append(all, Tool{name, tool.ParseHints(wirejson.Find(definition, "annotations"))})
		return nil
	})
	return all
}

// namesWithVerdict are the names of the tools of which MCPProxy recommends v.
func namesWithVerdict(tools []Tool, v Verdict) []string {
	var names []string
	for _, t := range tools {
		if t.Wanted() == v {
			names = append(names, t.Name)
		}
	}
	return names
}

// Rule is what decides, and where it stands. Line counts from 1; it is 0, and Path
// empty, for what a client does when no file says anything.
type Rule struct {
	Text string `json:"text" doc:"The rule as it is written, or what the client does by itself"`
	Path string `json:"path,omitempty" doc:"The file it stands in"`
	Line int    `json:"line,omitempty"`
}

// decision is the verdict on one tool.
type decision struct {
	verdict Verdict
	rule    Rule
	why     string
}

// doc is a file of a client as it was read.
type doc struct {
	kind fileKind
	clients.Doc
}

// rule names what stands in the doc.
func (d doc) rule(at clients.Tree, text string) Rule { return Rule{text, d.Path, at.Line()} }

// fileKind is what a file of a client is for.
type fileKind string

const (
	fileRules    fileKind = "rules"    // holds permissions
	fileServers  fileKind = "servers"  // holds servers, and what is said at each
	fileSwitches fileKind = "switches" // holds which servers are switched off
	fileFolders  fileKind = "folders"  // holds which directories are trusted
)

// addFile is one that a client reads.
type file struct {
	kind fileKind
	clients.File
}

// docs are the files of a client that are there, the weakest first.
type docs []doc

func (all docs) ofKind(k fileKind) docs {
	var some docs
	for _, d := range all {
		if d.kind == k {
			some = append(some, d)
		}
	}
	return some
}

func (all docs) reversed() docs {
	other := make(docs, len(all))
	for i, d := range all {
		other[len(all)-1-i] = d
	}
	return other
}

// opSetLast returns what the strongest doc says under the keys.
func (all docs) strongest(keys ...string) (doc, clients.Tree) {
	for _, d := range all.reversed() {
		if found := d.Tree.Get(keys...); found.Exists() {
			return d, found
		}
	}
	return doc{}, clients.Tree{}
}

// entry returns the section of the server in the strongest doc that has it.
func (all docs) entry(server string) (doc, clients.Tree) {
	for _, d := range all.ofKind(fileServers).reversed() {
		if e := d.Entry(server); e.Exists() {
			return d, e
		}
	}
	return doc{}, clients.Tree{}
}

// toolQuery is what a client is judged by.
type toolQuery struct {
	docs   docs
	server string // the name under which MCPProxy stands in the client
	tool   Tool
	dir    string // the working directory
}

// firstMatch returns the first text of the list that matches names.
func firstMatch(list clients.Tree, matches func(string) bool) (clients.Tree, bool) {
	for _, item := range list.Texts() {
		if matches(item.Text()) {
			return item, true
		}
	}
	return clients.Tree{}, false
}

func equals(name string) func(string) bool { return func(s string) bool { return s == name } }

// matchStar reports whether the name has the form of a pattern in which * stands for any
// characters.
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

// matchGlob is glob in which ? stands for one character, too.
func matchGlob(pattern, name string) bool {
	escaped := strings.NewReplacer(`\`, `\\`, `[`, `\[`, "/", "\x00").Replace(pattern)
	ok, err := path.Match(escaped, strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}

// sanitizeName is a name as clients write it that allow no other characters.
func sanitizeName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}
