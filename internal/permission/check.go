package permission

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mcpproxy/internal/clientfile"
	"mcpproxy/internal/jsonc"
	"mcpproxy/internal/problem"
)

// Lane is what a client does with one of MCPProxy's tools.
type Lane struct {
	Tool    string  `json:"tool"`
	Verdict Verdict `json:"verdict" doc:"What the client does now" enum:"runs,asks,denied,unknown"`
	Wanted  Verdict `json:"wanted" doc:"What MCPProxy recommends" enum:"runs,asks"`
	Right   bool    `json:"right" doc:"Whether the two are the same"`
	Rule    Rule    `json:"rule" doc:"What decides"`
	Why     string  `json:"why,omitempty" doc:"What the rule alone does not say"`
}

// Report is what a client does with all of them.
type Report struct {
	Client    string   `json:"client"`
	Name      string   `json:"name"`
	Server    string   `json:"server" doc:"The name under which MCPProxy stands in the client"`
	Connected bool     `json:"connected" doc:"Whether it stands in one of the client's files"`
	Right     bool     `json:"right" doc:"Whether every lane is as MCPProxy recommends"`
	Lanes     []Lane   `json:"lanes"`
	Files     []string `json:"files" doc:"The files that were read"`
	Broken    []string `json:"broken" doc:"The files that could not be read, and why"`
	Ignored   []Rule   `json:"ignored" doc:"Rules that look as if they were about MCPProxy, and that the client skips"`
	Basis     string   `json:"basis" doc:"How sure it is: by the vendor's documents or source, or by third parties" enum:"documented,source,unverified"`
	Notes     []string `json:"notes" doc:"What files do not say"`
	ByHand    string   `json:"by_hand,omitempty" doc:"What a person has to do in the client"`
}

// Check says what a client does with the tools now. The client is its id, its name or
// a usual word for it; anything else is a *problem.Problem NOT_FOUND.
func Check(e Env, word string, tools []Tool) (Report, error) {
	c, err := find(word)
	if err != nil {
		return Report{}, err
	}
	return c.check(read(c.files(e), nil), e, tools), nil
}

func (c client) check(all docs, e Env, tools []Tool) Report {
	server, connected := serverName(all)
	r := Report{Client: c.id, Name: c.name, Server: server, Connected: connected, Right: true, Basis: c.basis,
		Lanes: []Lane{}, Files: []string{}, Broken: []string{}, Ignored: []Rule{}, Notes: append([]string{}, c.notes...), ByHand: c.byHand(server, tools)}
	for _, d := range all {
		r.file(d)
	}
	if !connected {
		r.Notes = append([]string{"MCPProxy is in none of the files: `mcpproxy connect " + c.id + "` connects it. This is what would hold then."}, r.Notes...)
	}
	for _, t := range tools {
		q := question{all, server, t, e.Dir}
		said := c.judge(q)
		if len(r.Broken) > 0 && said.verdict != Denied {
			said = decision{Unknown, Rule{Text: r.Broken[0]}, "a file that decides cannot be read"}
		}
		lane := Lane{t.Name, said.verdict, t.Wanted(), said.verdict == t.Wanted(), said.rule, said.why}
		r.Right = r.Right && lane.Right
		r.Lanes = append(r.Lanes, lane)
	}
	if c.ignored != nil {
		r.Ignored = append(r.Ignored, c.ignored(question{all, server, Tool{}, e.Dir})...)
	}
	return r
}

// file says that a doc was read, once.
func (r *Report) file(d doc) {
	for _, path := range r.Files {
		if path == d.path {
			return
		}
	}
	r.Files = append(r.Files, d.path)
	if d.broken != "" {
		r.Broken = append(r.Broken, d.path+": "+d.broken)
	}
}

// byHand fills in what to do in the client.
func (c client) byHand(server string, tools []Tool) string {
	if !strings.Contains(c.hand, "%") {
		return c.hand
	}
	var flags []string
	for _, name := range those(tools, Runs) {
		flags = append(flags, "--allow-tool '"+server+"("+name+")'")
	}
	text := fmt.Sprintf(c.hand+"%.0[3]s", list(those(tools, Runs)), list(those(tools, Asks)), strings.Join(flags, " "))
	return text
}

// list is names in a sentence.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// serverName is the name under which MCPProxy stands in the files, and whether it
// does: mcpproxy, or the first that starts our program.
func serverName(all docs) (name string, found bool) {
	const usual = "mcpproxy"
	other := ""
	for _, d := range all.of(servers) {
		for _, key := range [][]string{d.key, append(append([]string{}, d.key...), "servers")} {
			for name, entry := range d.tree.Get(key...).Members() {
				if name == usual && entry.IsObject() {
					return usual, true
				}
				if other == "" && startsOurs(entry) {
					other = name
				}
			}
		}
	}
	if other != "" {
		return other, true
	}
	return usual, false
}

// startsOurs reports whether an entry has the command mcpproxy.
func startsOurs(entry clientfile.Tree) bool {
	command := entry.Get("command").Text()
	if command == "" {
		command = entry.Get("cmd").Text()
	}
	if items := entry.Get("command").Texts(); command == "" && len(items) > 0 {
		command = items[0].Text()
	}
	base := command[strings.LastIndexAny(command, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(base), ".exe") == "mcpproxy"
}

// read reads the files that are there, but takes instead for the one that it is to
// be.
func read(files []file, instead *doc) docs {
	var all docs
	taken := instead == nil
	for _, f := range files {
		d := doc{file: f}
		if instead != nil && f.path == instead.path {
			taken, d.text, d.tree = true, instead.text, instead.tree
			all = append(all, d)
			continue
		}
		text, err := load(f.path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNowhere) {
			continue
		}
		if err == nil {
			d.text = text
			d.tree, err = clientfile.ParseTree(text, f.syntax)
		}
		if err != nil {
			d.broken = reason(err)
		}
		all = append(all, d)
	}
	if !taken {
		all = append(all, *instead)
	}
	return all
}

// errNowhere is for a file that has no path on this system.
var errNowhere = errors.New("no path")

// load reads a regular file within bounds.
func load(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		return nil, errNowhere
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, jsonc.MaxSize+1))
}

// reason is why a file cannot be read, without its path.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return problem.From(err).Message
}
