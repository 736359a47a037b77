package permission

import (
	"fmt"
	"strings"

	"mcpproxy/internal/clients"
)

// Lane is how a client handles one of MCPProxy's tools.
type Lane struct {
	Tool    string  `json:"tool"`
	Verdict Verdict `json:"verdict" doc:"What the client does now" enum:"runs,asks,denied,unknown"`
	Wanted  Verdict `json:"wanted" doc:"What MCPProxy recommends" enum:"runs,asks"`
	Right   bool    `json:"right" doc:"Whether the two are the same"`
	Rule    Rule    `json:"rule" doc:"What decides"`
	Why     string  `json:"why,omitempty" doc:"What the rule alone does not say"`
}

// Report is how a client handles all of them.
type Report struct {
	Client    string   `json:"client"`
	Name      string   `json:"name"`
	Server    string   `json:"server" doc:"The name of MCPProxy in the client"`
	Connected bool     `json:"connected" doc:"Whether one of the client's files has an entry for it"`
	Right     bool     `json:"right" doc:"Whether every lane is as MCPProxy recommends"`
	Lanes     []Lane   `json:"lanes"`
	Files     []string `json:"files" doc:"The files that were read"`
	Broken    []string `json:"broken" doc:"The files that could not be read, and why"`
	Ignored   []Rule   `json:"ignored" doc:"Rules that look as if they were about MCPProxy, and that the client skips"`
	Basis     string   `json:"basis" doc:"How sure it is: by the vendor's documents or source, or by third parties" enum:"documented,source,unverified"`
	Notes     []string `json:"notes" doc:"What files do not say"`
	ByHand    string   `json:"by_hand,omitempty" doc:"What the user must do in the client"`
}

// CheckClient returns how a client handles the tools now. word is its id, name or alias;
// otherwise the error is a *problem.Problem NOT_FOUND.
func CheckClient(e clients.Env, word string, tools []ProxyTool) (Report, error) {
	c, err := findClient(word)
	if err != nil {
		return Report{}, err
	}
	return c.newReport(readClientFiles(c.allFiles(e), nil), e, tools), nil
}

func (c clientPermissions) newReport(all clientDocs, e clients.Env, tools []ProxyTool) Report {
	server, connected := all.findProxyServerName()
	r := Report{Client: c.ID, Name: c.Name, Server: server, Connected: connected, Right: true, Basis: c.basis,
		Lanes: []Lane{}, Files: []string{}, Broken: []string{}, Ignored: []Rule{}, Notes: append([]string{}, c.notes...), ByHand: c.manualStepsText(server, tools)}
	for _, d := range all {
		r.addFile(d)
	}
	if !connected {
		r.Notes = append([]string{"MCPProxy is in none of the files: `mcpproxy connect " + c.ID + "` connects it. This is what would hold then."}, r.Notes...)
	}
	if c.fileNotes != nil && connected {
		r.Notes = append(c.fileNotes(all, e.Dir), r.Notes...)
	}
	for _, t := range tools {
		q := toolQuery{all, server, t, e.Dir}
		said := c.decide(q)
		if len(r.Broken) > 0 && said.verdict != Denied {
			said = toolDecision{Unknown, Rule{Text: r.Broken[0]}, "a file that decides cannot be read"}
		}
		lane := Lane{t.Name, said.verdict, t.RecommendedVerdict(), said.verdict == t.RecommendedVerdict(), said.rule, said.why}
		r.Right = r.Right && lane.Right
		r.Lanes = append(r.Lanes, lane)
	}
	if c.ignored != nil {
		r.Ignored = append(r.Ignored, c.ignored(toolQuery{all, server, ProxyTool{}, e.Dir})...)
	}
	return r
}

// addFile adds a document to the report, once.
func (r *Report) addFile(d clientDoc) {
	for _, path := range r.Files {
		if path == d.Path {
			return
		}
	}
	r.Files = append(r.Files, d.Path)
	if d.Broken != "" {
		r.Broken = append(r.Broken, d.Path+": "+d.Broken)
	}
}

// manualStepsText returns the necessary steps of the user in the client.
func (c clientPermissions) manualStepsText(server string, tools []ProxyTool) string {
	if !strings.Contains(c.manual, "%") {
		return c.manual
	}
	var flags []string
	for _, name := range toolsWithRecommendedVerdict(tools, Runs) {
		flags = append(flags, "--allow-tool '"+server+"("+name+")'")
	}
	text := fmt.Sprintf(c.manual+"%.0[3]s", joinNames(toolsWithRecommendedVerdict(tools, Runs)), joinNames(toolsWithRecommendedVerdict(tools, Asks)), strings.Join(flags, " "))
	return text
}

// joinNames returns names for a sentence.
func joinNames(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// findProxyServerName returns MCPProxy's name in the files, and whether it is there.
func (all clientDocs) findProxyServerName() (name string, found bool) {
	var read []clients.ClientDoc
	for _, d := range all.withKind(fileServers) {
		read = append(read, d.ClientDoc)
	}
	at, found := clients.FindProxyRegistration(read, nil)
	return at.Server, found
}

// readClientFiles reads the existing files, with instead in place of its file.
func readClientFiles(files []clientFile, instead *clientDoc) clientDocs {
	var all clientDocs
	taken := instead == nil
	for _, f := range files {
		if instead != nil && f.Path == instead.Path {
			taken = true
			d := *instead
			d.File = f.File
			all = append(all, clientDoc{f.kind, d.ClientDoc})
			continue
		}
		if d, there := f.Read(); there {
			all = append(all, clientDoc{f.kind, d})
		}
	}
	if !taken {
		all = append(all, *instead)
	}
	return all
}
