package permission

import (
	"slices"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
)

// SurfaceChange is a change of a client's entries together with the matching change of its rules.
type SurfaceChange struct {
	from, to Target
	client   clientPermissions
	tools    []ProxyTool
	// write reports that the rules for the new entries are written. Otherwise, the rules for the old entries are only
	// removed.
	write bool
}

// NewSurfaceChange returns the change of rules for a change of entries from the current ones, if any, to others. Rules
// for lanes are always written, because the surface depends on them. Other rules are written only if the client has
// rules for its current surface.
func NewSurfaceChange(e clients.Env, word string, to Target, tools []ProxyTool) (SurfaceChange, error) {
	c, err := findClient(word)
	if err != nil {
		return SurfaceChange{}, err
	}
	from, connected := c.findTarget(readClientFiles(c.allFiles(e)))
	s := SurfaceChange{to: to, client: c, tools: tools, write: to.Surface == clients.SurfaceLanes}
	if !connected || from.Surface == clients.SurfaceServer {
		return s, nil
	}
	if s.isSwitch(from) {
		s.from = from
		s.write = s.write || s.hasRules(e)
	}
	return s, nil
}

// isSwitch reports whether the new entries differ from the current ones.
func (s SurfaceChange) isSwitch(from Target) bool {
	return from.Surface != s.to.Surface || !slices.Equal(from.serverNames(), s.to.serverNames())
}

// hasRules reports whether the file for the rules contains rules for the current entries.
func (s SurfaceChange) hasRules(e clients.Env) bool {
	d, there := s.client.targetFile(e).Read()
	if !there || d.Broken != "" {
		return false
	}
	without, err := withoutEdits(d.Text, d.Format, s.client.editsFor(s.from, s.tools))
	return err == nil && string(without) != string(d.Text)
}

// textWithRules returns the text of the file for the rules after the change.
func (s SurfaceChange) textWithRules(text []byte, f textedit.Format) (_ []byte, err error) {
	if len(s.from.Entries) > 0 {
		if text, err = withoutEdits(text, f, s.client.editsFor(s.from, s.tools)); err != nil {
			return nil, err
		}
	}
	if edits := s.client.editsFor(s.to, s.tools); s.write {
		return applyEdits(text, f, edits, false)
	}
	return text, nil
}

// EntryRules returns the text of the client's file with servers, after a change of its entries, with the rules in the
// entries. If the client's rules are elsewhere, it returns the text unchanged.
func (s SurfaceChange) EntryRules(d clients.ClientDoc) ([]byte, error) {
	if !s.client.atEntry {
		return d.Text, nil
	}
	text := d.Text
	if s.to.serverName() == "" {
		return text, nil
	}
	for _, name := range s.from.serverNames() { // rules of other entries were removed with them
		if !slices.Contains(s.to.serverNames(), name) {
			s.from = Target{}
			break
		}
	}
	return s.textWithRules(text, d.Format)
}

// Prepare prepares the change of the rules that are not in the entries. after is the future content of the file with
// servers. If its path is empty, the file does not change. Changed is false if there is nothing to change.
func (s SurfaceChange) Prepare(e clients.Env, after clients.ClientDoc) (Plan, error) {
	c := s.client
	r, err := c.rulesFor(e, s.to, s.tools)
	if err != nil || c.edits == nil || c.atEntry {
		return Plan{Preview: Preview{Rules: r, Warnings: []string{}}, env: e, all: s.tools}, err
	}
	p, f, err := c.newPlan(e, r, s.tools)
	p.Path = f.Path
	if err != nil {
		return p, err
	}
	planned := []clientDoc{}
	if after.Path != "" {
		planned = append(planned, clientDoc{fileServers, after})
	}
	if after.Path == f.Path {
		p.from.Text = after.Text
	}
	before, err := parseDoc(f, p.from.Text)
	if err != nil {
		return p, err
	}
	if p.text, err = s.textWithRules(p.from.Text, f.Format); err != nil {
		return p, err
	}
	if s.write {
		p.entries = restorablePaths(append(c.editsFor(s.from, s.tools), c.editsFor(s.to, s.tools)...))
	}
	p.describeChange(c, before)
	if d, err := parseDoc(f, p.text); err == nil {
		if after.Path == f.Path {
			planned = nil
		}
		planned = append(planned, d)
	}
	p.After = c.newReport(readClientFiles(c.allFiles(e), planned...), e, s.tools)
	return p, nil
}

// withoutEdits removes the values that the edits wrote, if they are unchanged, and the objects and lists that become
// empty. It does not restore values that the edits removed.
func withoutEdits(text []byte, f textedit.Format, edits []fileEdit) ([]byte, error) {
	var written []fileEdit
	for _, one := range edits {
		switch one.op {
		case opReplaceFile:
			if string(text) == one.text {
				return nil, nil
			}
		case opSet, opSetLast, opAppend:
			written = append(written, one)
		}
	}
	own, err := applyEdits(nil, f, written, false)
	if err != nil {
		return nil, err
	}
	return textedit.SubtractChanges(text, nil, own, f)
}
