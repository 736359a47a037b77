package ops

import (
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
)

// importPrefix begins the description of an import in the journal. The client's ID follows it.
const importPrefix = "import "

// removeFromClients removes the imported servers from their clients' files.
func (h *FoundServers) removeFromClients(j *clients.Journal, chosen []int, results []Result) {
	for at, i := range chosen {
		r := &results[at]
		switch c := h.all[i]; {
		case c.isNeverRemovable(), r.Problem != nil:
		case c.AlreadyAdded && !c.exactlyHere:
			r.Problem = toTrouble(problem.New(problem.Conflict, "It is not certain that "+c.Name+" is the same server, since its secrets cannot be compared: "+c.Called+" stays in "+c.Path+".", "Remove it manually."))
		case c.entryPath == nil:
			r.Problem = toTrouble(problem.New(problem.Conflict, c.Called+" is in a list in "+c.Path+", and stays there.", "Remove it manually."))
		}
	}
	run := j.WithGroup(time.Now().UTC().Format("20060102T150405.000000000"))
	for at, i := range chosen {
		if h.canStillRemove(i, results[at]) {
			h.removeFromFile(run, h.all[i], chosen, results)
		}
	}
}

// canStillRemove reports whether a candidate can and should still be removed from its file.
func (h *FoundServers) canStillRemove(i int, r Result) bool {
	return !h.all[i].isNeverRemovable() && r.Problem == nil && !r.Removed
}

// isNeverRemovable reports whether a server is in a text that MCPProxy never edits: a project's file, or a pasted text.
func (c importCandidate) isNeverRemovable() bool { return c.Client == "" || c.Scope == clients.Project }

// removeFromFile removes all selected servers of one file in one change.
func (h *FoundServers) removeFromFile(j *clients.Journal, first importCandidate, chosen []int, results []Result) {
	var mine []int // indexes in results
	fail := func(err error) {
		for _, at := range mine {
			results[at].Problem = toTrouble(err)
		}
	}
	for at, i := range chosen {
		if h.all[i].Path == first.Path && h.canStillRemove(i, results[at]) {
			mine = append(mine, at)
		}
	}
	file, err := clients.ReadUserFile(first.Path, first.file.AllowedLinkRoots(h.account.env)...)
	if err != nil {
		fail(err)
		return
	}
	target := ""
	if file.Target != file.Path {
		target = file.Target
	}
	now, err := h.account.currentEntryIDs(first, file.Text)
	if err != nil {
		fail(err)
		return
	}
	text := file.Text
	taken := mine[:0:0]
	var entries [][]string
	for _, at := range mine {
		c := h.all[chosen[at]]
		next := text
		switch {
		case target != c.Target:
			err = problem.New(problem.Conflict, c.Path+" points to a different file than before.", "Check its target, and try again.")
		case !slices.Contains(now, c.ID):
			err = problem.New(problem.Conflict, c.Called+" was changed in "+c.Path+" since, and stays there.", "Check it, and import it again.")
		default:
			next, err = textedit.RemoveValue(text, c.file.Format, c.entryPath...)
		}
		if err != nil {
			results[at].Problem = toTrouble(err)
			continue
		}
		text, taken, entries = next, append(taken, at), append(entries, c.entryPath)
	}
	if mine = taken; len(mine) == 0 {
		return
	}
	change, err := j.WriteFile(file, text, importPrefix+first.Client, entries...)
	if err != nil {
		fail(err)
		return
	}
	for _, at := range mine {
		results[at].Removed, results[at].Change = true, change.ID
	}
}

// currentEntryIDs returns the IDs of the entries in the current text of a file.
func (a *Importer) currentEntryIDs(c importCandidate, text []byte) (ids []string, err error) {
	doc, err := c.file.Parse(text)
	if err != nil {
		return nil, err
	}
	client, err := clients.FindImportSource(c.Client)
	if err != nil {
		return nil, err
	}
	s := clientFileScan{account: a, seen: map[string]bool{}}
	s.scanDoc(client, doc, c.file.Scope, c.Target)
	return mapSlice(s.all, func(one importCandidate) string { return one.ID }), nil
}

// RestoreClientFiles restores the servers that the last import removed from the files of a client, or of all clients if
// client is "". If a file has not changed since, it is restored byte for byte. Otherwise, the entries are added again.
// RestoreClientFiles continues after failures and returns the last error, a *problem.Problem.
func (a *Importer) RestoreClientFiles(client string) ([]clients.Change, error) {
	j, err := a.open()
	if err != nil {
		return nil, err
	}
	wanted := importPrefix
	if client != "" {
		c, err := clients.FindImportSource(client)
		if err != nil {
			return nil, err
		}
		wanted += c.ID
	}
	all, err := j.Changes()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c clients.Change) bool {
		return c.Undone != nil || !strings.HasPrefix(c.What, importPrefix) || client != "" && c.What != wanted
	})
	if len(all) == 0 {
		return nil, problem.New(problem.NotFound, "No import is left to undo: nothing was removed from a client's file.", "Only servers that `mcpproxy upstream import --remove` removed can be restored.")
	}
	undone := []clients.Change{}
	for _, c := range all {
		if c.Group != all[0].Group {
			continue
		}
		change, wrong := j.Undo(c.ID, a.env.RestoreEntries)
		if wrong != nil {
			err = wrong
			continue
		}
		undone = append(undone, change)
	}
	return undone, err
}
