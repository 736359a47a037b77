package permission

import (
	"slices"
	"strings"

	"mcpproxy/internal/clients"
)

// Lane describes how a client handles one of MCPProxy's tools.
type Lane struct {
	Tool    string  `json:"tool" doc:"A tool of MCPProxy, ENTRY:* for all tools of one of its entries, or ENTRY:TOOL for a tool with its own rule."`
	Lane    string  `json:"lane,omitempty" doc:"The lane of calls through the tool. Absent for tools that call nothing." enum:"read,write,destructive"`
	Verdict Verdict `json:"verdict" doc:"The current behavior of the client." enum:"runs,asks,denied,unknown"`
	Wanted  Verdict `json:"wanted" doc:"The recommended behavior." enum:"runs,asks"`
	Right   bool    `json:"right" doc:"Whether verdict and wanted are equal."`
	Rule    Rule    `json:"rule" doc:"The rule that decides."`
	Why     string  `json:"why,omitempty" doc:"An explanation, if the rule alone does not explain the verdict."`
}

// Report describes how a client handles all of MCPProxy's tools.
type Report struct {
	Client    string   `json:"client"`
	Name      string   `json:"name"`
	Server    string   `json:"server" doc:"The name of MCPProxy in the client."`
	Surface   string   `json:"surface" doc:"The surface of the client, or the surface that it would get if it were connected." enum:"search,lanes,all,server"`
	Connected bool     `json:"connected" doc:"Whether one of the client's files has an entry for MCPProxy."`
	Right     bool     `json:"right" doc:"Whether every lane has the recommended behavior."`
	Lanes     []Lane   `json:"lanes"`
	Files     []string `json:"files" doc:"The files that were read."`
	Broken    []string `json:"broken" doc:"The files that could not be read, each with the reason."`
	Ignored   []Rule   `json:"ignored" doc:"Rules that seem to be about MCPProxy, but that the client ignores."`
	Basis     string   `json:"basis" doc:"The source of this information: the vendor's documentation or code, or third parties." enum:"documented,source,unverified"`
	Notes     []string `json:"notes" doc:"Facts that no file contains."`
	ByHand    string   `json:"by_hand,omitempty" doc:"The actions that the user must take in the client."`
}

// CheckClient returns how a client currently handles the tools. word is the client's id, name or alias. For an unknown
// client, the error is a *problem.Problem NOT_FOUND.
func CheckClient(e clients.Env, word string, tools []ProxyTool) (Report, error) {
	c, err := findClient(word)
	if err != nil {
		return Report{}, err
	}
	return c.newReport(readClientFiles(c.allFiles(e)), e, tools), nil
}

func (c clientPermissions) newReport(all clientDocs, e clients.Env, tools []ProxyTool) Report {
	target, connected := c.findTarget(all)
	r := Report{Client: c.ID, Name: c.Name, Server: target.serverName(), Surface: string(target.Surface), Connected: connected, Right: true, Basis: c.basis,
		Lanes: []Lane{}, Files: []string{}, Broken: []string{}, Ignored: []Rule{}, Notes: c.notesFor(target), ByHand: c.manualStepsText(target, tools)}
	for _, d := range all {
		r.addFile(d)
	}
	if !connected {
		r.Notes = append([]string{"The client is not connected, so this is a prediction. To connect it, run `mcpproxy connect " + c.ID + "`."}, r.Notes...)
	}
	if c.fileNotes != nil && connected {
		r.Notes = append(c.fileNotes(all, e.Dir), r.Notes...)
	}
	for _, p := range target.probes(tools) {
		of := c.newLane(all, p, e.Dir, r.Broken)
		r.addLane(of)
		if target.Surface != clients.SurfaceLanes || of.Verdict == Unknown {
			continue
		}
		for _, name := range all.possibleTools(p.server) {
			one := p
			one.label, one.tool.Name, one.cautious = p.server+":"+name, name, true
			if single := c.newLane(all, one, e.Dir, r.Broken); single.Verdict != of.Verdict {
				r.addLane(single)
			}
		}
	}
	if c.ignored != nil {
		for _, server := range target.serverNames() {
			for _, skipped := range c.ignored(toolQuery{all, server, ProxyTool{}, e.Dir}) {
				if !slices.Contains(r.Ignored, skipped) {
					r.Ignored = append(r.Ignored, skipped)
				}
			}
		}
	}
	return r
}

// newLane evaluates a probe. A file that cannot be read makes everything unknown that it could decide.
func (c clientPermissions) newLane(all clientDocs, p probe, dir string, broken []string) Lane {
	said := c.decide(toolQuery{all, p.server, p.tool, dir})
	if len(broken) > 0 && said.verdict != Denied {
		said = toolDecision{Unknown, Rule{Text: broken[0]}, "a file that decides cannot be read"}
	}
	lane := Lane{Tool: p.label, Lane: p.lane, Verdict: said.verdict, Wanted: p.wanted, Right: p.isRight(said.verdict), Rule: said.rule, Why: said.why}
	if lane.Right {
		lane.Wanted = lane.Verdict
	}
	return lane
}

func (r *Report) addLane(l Lane) {
	r.Right = r.Right && l.Right
	r.Lanes = append(r.Lanes, l)
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

// notesFor returns the notes about a client, and for an entry with all tools a note about its limits.
func (c clientPermissions) notesFor(t Target) []string {
	notes := append([]string{}, c.notes...)
	if t.Surface == clients.SurfaceAll {
		notes = append(notes, "One entry has tools that read and tools that write. Only the client's own use of hints tells them apart; `mcpproxy connect "+c.ID+" --surface lanes` makes an entry for each lane.")
	}
	return notes
}

// manualStepsText returns the steps that the user must do in the client.
func (c clientPermissions) manualStepsText(t Target, tools []ProxyTool) string {
	var runs, asks, flags []string
	whole, of := "", ""
	if t.Surface == clients.SurfaceSearch {
		of = " of " + t.serverName()
	}
	for _, p := range t.probes(tools) {
		name, flag := p.tool.Name, p.server+"("+p.tool.Name+")"
		if name == anyTool {
			name, flag, whole = p.server, p.server, "the tools of "
		}
		if p.wanted == Asks {
			asks = appendNew(asks, name)
			continue
		}
		runs, flags = append(runs, name), append(flags, "--allow-tool '"+flag+"'")
	}
	manual := c.manual
	if t.Surface != clients.SurfaceSearch && c.wholeEntryManualSteps != "" {
		manual = c.wholeEntryManualSteps
	}
	if len(runs) == 0 && strings.Contains(manual, "{runs}") {
		return "" // there is nothing that the user could allow separately
	}
	return strings.NewReplacer("{runs}", whole+joinNames(runs), "{asks}", whole+joinNames(asks), "{of}", of, "{flags}", strings.Join(flags, " "), "{servers}", joinNames(t.serverNames())).Replace(manual)
}

// appendNew appends a name unless the list already contains it.
func appendNew(list []string, name string) []string {
	if slices.Contains(list, name) {
		return list
	}
	return append(list, name)
}

// joinNames joins names for use in a sentence.
func joinNames(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// readClientFiles reads the existing files. A planned document replaces the file at its path.
func readClientFiles(files []clientFile, planned ...clientDoc) clientDocs {
	var all clientDocs
	taken := make([]bool, len(planned))
	for _, f := range files {
		if i := slices.IndexFunc(planned, func(d clientDoc) bool { return f.Path == d.Path }); i >= 0 {
			taken[i] = true
			d := planned[i]
			d.File = f.File
			all = append(all, clientDoc{f.kind, d.ClientDoc})
			continue
		}
		if d, there := f.Read(); there {
			all = append(all, clientDoc{f.kind, d})
		}
	}
	for i, d := range planned {
		if !taken[i] {
			all = append(all, d)
		}
	}
	return all
}
