package permission

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// Rules contains the recommended rules for a client.
type Rules struct {
	Client  string   `json:"client"`
	Name    string   `json:"name"`
	Server  string   `json:"server" doc:"The name of MCPProxy in the client."`
	Surface string   `json:"surface" doc:"The surface of the client, or the surface that it would get if it were connected." enum:"search,lanes,all,server"`
	Path    string   `json:"path,omitempty" doc:"The file for the rules. Absent if the client stores no permissions in a file."`
	Text    string   `json:"text,omitempty" doc:"The rules as a separate file, to merge into the existing one."`
	Notes   []string `json:"notes" doc:"Facts that no file contains."`
	ByHand  string   `json:"by_hand,omitempty" doc:"The actions that the user must take in the client."`
}

// RecommendRules returns the rules for a client with a surface, ready to paste. "" means the current surface of the
// client.
func RecommendRules(e clients.Env, word string, tools []ProxyTool, surface clients.Surface) (Rules, error) {
	c, err := findClient(word)
	if err != nil {
		return Rules{}, err
	}
	t, _ := c.findTarget(readClientFiles(c.allFiles(e)))
	if surface != "" && surface != t.Surface {
		t = c.newTarget(surface)
	}
	return c.rulesFor(e, t, tools)
}

// rulesFor returns the rules for entries.
func (c clientPermissions) rulesFor(e clients.Env, t Target, tools []ProxyTool) (Rules, error) {
	r := Rules{Client: c.ID, Name: c.Name, Server: t.serverName(), Surface: string(t.Surface), Notes: c.notesFor(t), ByHand: c.manualStepsText(t, tools)}
	edits := c.editsFor(t, tools)
	if !writes(edits) {
		return r, nil
	}
	f := c.targetFile(e)
	text, err := applyEdits(nil, f.Format, edits, false)
	r.Path, r.Text = f.Path, string(text)
	return r, err
}

// Preview describes the effect of a change to a client's file.
type Preview struct {
	Rules
	Target     string   `json:"target,omitempty" doc:"The target of path, if path is a symbolic link."`
	Changed    bool     `json:"changed" doc:"Whether the file would change."`
	Difference string   `json:"difference,omitempty" doc:"The changed lines. Secrets are masked."`
	Warnings   []string `json:"warnings" doc:"Side effects of the change."`
	After      Report   `json:"after" doc:"The behavior of the client after the change."`
}

// Plan is a prepared change of a client's file.
type Plan struct {
	Preview

	from    clients.UserFile
	text    []byte
	entries [][]string // changed paths; nil if strings in lists were changed
	env     clients.Env
	all     []ProxyTool
	edits   []fileEdit
}

// PreparePlan prepares to write the rules into the client's file. Denials are kept, and the lanes of After show them.
// The error is a *problem.Problem: NOT_FOUND if the client is unknown, has no such file or is not connected,
// INVALID_CONFIG if a file cannot be parsed.
func PreparePlan(e clients.Env, word string, tools []ProxyTool) (Plan, error) {
	c, err := findClient(word)
	if err != nil {
		return Plan{}, err
	}
	t, _ := c.findTarget(readClientFiles(c.allFiles(e)))
	r, err := c.rulesFor(e, t, tools)
	if err != nil {
		return Plan{}, err
	}
	switch {
	case c.edits == nil:
		return Plan{}, problem.New(problem.NotFound, "No file contains the permissions of "+c.Name+".", r.ByHand)
	case r.Path == "":
		return Plan{}, problem.New(problem.NotFound, "No rule in a file would make "+c.Name+" do what MCPProxy recommends.", cmp.Or(r.ByHand, strings.Join(r.Notes, " ")))
	}
	p, f, err := c.newPlan(e, r, tools)
	if err != nil {
		return Plan{}, err
	}
	p.edits = c.editsFor(t, tools)
	before, err := parseDoc(f, p.from.Text)
	if err != nil {
		return Plan{}, err
	}
	p.entries = restorablePaths(p.edits)
	if c.atEntry {
		p.entries = nil
		for _, name := range t.serverNames() {
			if !before.ServerEntry(name).IsObject() {
				return Plan{}, problem.New(problem.NotFound, "MCPProxy is not in "+f.Path+", where the rules belong to its entry.", "Run `mcpproxy connect "+c.ID+"` first.")
			}
			p.entries = append(p.entries, append(slices.Clone(before.ServersPath()), name))
		}
	}
	return p, p.computeEffect(c, f, before)
}

// newPlan returns a plan for the rules without their change, after it has read the file for the rules.
func (c clientPermissions) newPlan(e clients.Env, r Rules, tools []ProxyTool) (p Plan, f clientFile, err error) {
	f = c.targetFile(e)
	p = Plan{Preview: Preview{Rules: r, Warnings: []string{}}, env: e, all: tools}
	if p.from, err = clients.ReadUserFile(f.Path, f.AllowedLinkRoots(e)...); err == nil && p.from.Target != f.Path {
		p.Target = p.from.Target
	}
	return p, f, err
}

// restorablePaths returns the paths of the edits, which an undo may restore. It returns nil if other programs write to
// one of these paths too.
func restorablePaths(edits []fileEdit) (places [][]string) {
	for _, one := range edits {
		if one.op != opSet && one.op != opSetLast {
			return nil
		}
		places = append(places, one.path)
	}
	return places
}

// computeEffect computes the new text and its effect.
func (p *Plan) computeEffect(c clientPermissions, f clientFile, before clientDoc) (err error) {
	for _, behind := range []bool{false, true} {
		if p.text, err = applyEdits(p.from.Text, f.Format, p.edits, behind); err != nil {
			return err
		}
		after, err := parseDoc(f, p.text)
		if err != nil {
			return err
		}
		if p.After = c.newReport(readClientFiles(c.allFiles(p.env), after), p.env, p.all); p.After.Right {
			break
		}
	}
	p.describeChange(c, before)
	return nil
}

// describeChange shows how the new text differs from the current one.
func (p *Plan) describeChange(c clientPermissions, before clientDoc) {
	p.Changed = string(p.text) != string(p.from.Text)
	p.Difference = textedit.Diff(p.from.Text, p.text)
	p.warnOfNewList(c, before)
}

// warnOfNewList adds a warning if a new list will replace another one.
func (p *Plan) warnOfNewList(c clientPermissions, before clientDoc) {
	if c.ID == "cursor" && !before.Value.Get("mcpAllowlist").Exists() && bytes.Contains(p.text, []byte("mcpAllowlist")) {
		p.Warnings = append(p.Warnings, "The file has no mcpAllowlist yet. After this change, the list in the file replaces the list in Cursor's settings, which MCPProxy cannot read. Copy the entries for your other servers from the settings to the file. If you undo the change, the list in the settings applies again.")
	}
}

// parseDoc parses a text as the file.
func parseDoc(f clientFile, text []byte) (clientDoc, error) {
	d, err := f.Parse(text)
	return clientDoc{f.kind, d}, err
}

// applyEdits applies the edits. If behind is set, it moves values that must be the last among their siblings.
func applyEdits(text []byte, f textedit.Format, edits []fileEdit, behind bool) ([]byte, error) {
	var err error
	for _, one := range edits {
		if text, err = one.applyEdit(text, f, behind); err != nil {
			return nil, err
		}
	}
	return text, nil
}

func (o fileEdit) applyEdit(text []byte, f textedit.Format, behind bool) ([]byte, error) {
	switch o.op {
	case opReplaceFile:
		return []byte(o.text), nil
	case opAppend:
		return textedit.AppendToList(text, f, o.text, o.path...)
	case opDrop, opEnsureList:
		_, there, err := textedit.GetValue(text, f, o.path...)
		switch {
		case err != nil:
			return nil, err
		case o.op == opDrop && there:
			return textedit.RemoveFromList(text, f, o.text, o.path...)
		case o.op == opEnsureList && !there:
			return textedit.SetValue(text, f, json.RawMessage("[]"), o.path...)
		}
		return text, nil
	}
	return o.setUnlessDenied(text, f, behind)
}

// setUnlessDenied sets a value, unless the current value is a denial.
func (o fileEdit) setUnlessDenied(text []byte, f textedit.Format, behind bool) ([]byte, error) {
	now, there, err := textedit.GetValue(text, f, o.path...)
	if err != nil {
		return nil, err
	}
	value, err := wirejson.MarshalWithoutHTMLEscape(o.text)
	said, _ := wirejson.String(now)
	if err != nil || there && o.unless != "" && said == o.unless {
		return text, err
	}
	if o.op == opSetLast {
		if text, err = expandShorthand(text, f, o.path[:len(o.path)-1]); err != nil {
			return nil, err
		}
		if there && behind {
			if text, err = textedit.RemoveValue(text, f, o.path...); err != nil {
				return nil, err
			}
		}
	}
	return textedit.SetValue(text, f, value, o.path...)
}

// expandShorthand replaces a single value for all tools by an equivalent object.
func expandShorthand(text []byte, f textedit.Format, path []string) ([]byte, error) {
	now, _, err := textedit.GetValue(text, f, path...)
	if err != nil || wirejson.Kind(now) != '"' {
		return text, err
	}
	return textedit.SetValue(text, f, json.RawMessage(`{"*":`+string(now)+`}`), path...)
}

// journalLabel returns the label of a client's changes in the journal.
func journalLabel(id string) string { return "permissions " + id }

// Apply writes the change. It returns the effect as read from the files after the write.
func (p Plan) Apply(j *clients.Journal) (Outcome, error) {
	change, err := j.WriteFileKeepingText(p.from, p.text, journalLabel(p.Client), p.entries...)
	if err != nil {
		return Outcome{}, err
	}
	p.After, err = CheckClient(p.env, p.Client, p.all)
	return Outcome{p.Preview, true, change.ID, change.Backup}, err
}

// Outcome describes a change of a client's file, written or not.
type Outcome struct {
	Preview
	Written bool   `json:"written" doc:"Whether the file was changed."`
	Change  string `json:"change,omitempty" doc:"The id of the change, for an undo."`
	Backup  string `json:"backup,omitempty" doc:"The path of the backup of the file."`
}

// UndoLastChange undoes the latest change of a client's permissions that is not yet undone, byte for byte. If the file
// has changed since, it removes only the rules, and only if no other program writes to the same paths.
func UndoLastChange(j *clients.Journal, e clients.Env, word string) (clients.Change, error) {
	c, err := findClient(word)
	if err != nil {
		return clients.Change{}, err
	}
	changes, err := j.Changes()
	if err != nil {
		return clients.Change{}, err
	}
	for _, change := range changes {
		if change.What == journalLabel(c.ID) && change.Undone == nil {
			return j.Undo(change.ID, e.RestoreEntries)
		}
	}
	return clients.Change{}, problem.New(problem.NotFound, "No change of the permissions of "+c.Name+" is left to undo.", "Only what `mcpproxy permissions "+c.ID+" --write` wrote can be undone.")
}

// NotUndoneRuleChanges returns the changes that wrote rules into a client's file and are not undone, newest first. It
// omits rules in the client's entry, because these are removed with the entry.
func NotUndoneRuleChanges(j *clients.Journal, e clients.Env, word string) ([]clients.Change, error) {
	c, err := findClient(word)
	if err != nil || c.edits == nil || c.atEntry { // rules in an entry are removed with it
		return nil, err
	}
	changes, err := j.Changes()
	f := c.targetFile(e)
	return slices.DeleteFunc(changes, func(change clients.Change) bool {
		return change.What != journalLabel(c.ID) || change.Undone != nil || change.Path != f.Path
	}), err
}

// RemovedRules reports whether the disconnect of a client removed rules that MCPProxy wrote.
func RemovedRules(j *clients.Journal, disconnect clients.Change) (bool, error) {
	changes, err := j.Changes()
	_, client, _ := strings.Cut(disconnect.What, " ")
	var before time.Time // of the disconnect before
	for _, c := range changes {
		if c.What == disconnect.What && c.At.Before(disconnect.At) {
			before = c.At
			break
		}
	}
	return slices.ContainsFunc(changes, func(c clients.Change) bool {
		return c.What == journalLabel(client) && c.Withdrawn && c.Undone.After(before) && !c.Undone.After(disconnect.At)
	}), err
}

// RemoveOwnRules removes all rules that MCPProxy wrote into a client's file, and keeps all others.
func RemoveOwnRules(j *clients.Journal, e clients.Env, word, server string, tools []ProxyTool) (withdrawn []clients.Change, err error) {
	changes, err := NotUndoneRuleChanges(j, e, word)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	c, err := findClient(word)
	if err != nil {
		return nil, err
	}
	f := c.targetFile(e)
	for _, change := range changes {
		back := func(_ string, _ [][]string, now, before []byte) ([]byte, error) {
			after, found := change.WrittenText()
			if !found { // a change of an earlier release
				var err error
				if after, err = applyEdits(before, f.Format, c.edits(toolRules(server, tools)), false); err != nil {
					return nil, err
				}
			}
			return textedit.SubtractChanges(now, before, after, f.Format)
		}
		done, err := j.UndoEvenWithoutEntries(change.ID, back)
		if err != nil {
			return withdrawn, err
		}
		withdrawn = append(withdrawn, done)
	}
	return withdrawn, nil
}
