package ops

import (
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
)

// what begins the name of a change in the journal; the client's id follows.
const what = "import "

// remove takes those out of their files that are here now.
func (h *ImportSet) remove(j *clients.Journal, chosen []int, results []Result) {
	for at, i := range chosen {
		r := &results[at]
		switch c := h.all[i]; {
		case c.stays(), r.Problem != nil:
		case c.Have && !c.here:
			r.Problem = troubleOf(problem.New(problem.Conflict, "It is not certain that "+c.Name+" is the same server, since its secrets cannot be compared: "+c.Called+" stays in "+c.Path+".", "Take it out by hand."))
		case c.keys == nil:
			r.Problem = troubleOf(problem.New(problem.Conflict, c.Called+" stands in a list in "+c.Path+", and stays there.", "Take it out by hand."))
		}
	}
	run := j.WithGroup(time.Now().UTC().Format("20060102T150405.000000000"))
	for at, i := range chosen {
		if h.leaves(i, results[at]) {
			h.removeFrom(run, h.all[i], chosen, results)
		}
	}
}

// leaves reports whether a candidate is yet to be taken out of its file.
func (h *ImportSet) leaves(i int, r Result) bool {
	return !h.all[i].stays() && r.Problem == nil && !r.Removed
}

// stays reports whether a server is of a file that is not the user's alone: a project's
// is for others, too, and a text is nobody's.
func (c candidate) stays() bool { return c.Client == "" || c.Scope == clients.Project }

// removeFrom takes all that is chosen of one file out of it, in one change.
func (h *ImportSet) removeFrom(j *clients.Journal, first candidate, chosen []int, results []Result) {
	var mine []int // of results
	fail := func(err error) {
		for _, at := range mine {
			results[at].Problem = troubleOf(err)
		}
	}
	for at, i := range chosen {
		if h.all[i].Path == first.Path && h.leaves(i, results[at]) {
			mine = append(mine, at)
		}
	}
	file, err := clients.ReadUserFile(first.Path, first.file.AllowedRoots(h.account.env)...)
	if err != nil {
		fail(err)
		return
	}
	target := ""
	if file.Target != file.Path {
		target = file.Target
	}
	now, err := h.account.entriesIn(first, file.Text)
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
			err = problem.New(problem.Conflict, c.Path+" leads to another file than before.", "Look where it leads, and try again.")
		case !slices.Contains(now, c.ID):
			err = problem.New(problem.Conflict, c.Called+" was changed in "+c.Path+" meanwhile, and stays there.", "Look at it, and import it again.")
		default:
			next, err = textedit.Remove(text, c.file.Format, c.keys...)
		}
		if err != nil {
			results[at].Problem = troubleOf(err)
			continue
		}
		text, taken, entries = next, append(taken, at), append(entries, c.keys)
	}
	if mine = taken; len(mine) == 0 {
		return
	}
	change, err := j.Write(file, text, what+first.Client, entries...)
	if err != nil {
		fail(err)
		return
	}
	for _, at := range mine {
		results[at].Removed, results[at].Change = true, change.ID
	}
}

// entriesIn are the ids of what stands in a file now.
func (a *ImportAccount) entriesIn(c candidate, text []byte) (ids []string, err error) {
	doc, err := c.file.Parse(text)
	if err != nil {
		return nil, err
	}
	client, err := clients.FindImportSource(c.Client)
	if err != nil {
		return nil, err
	}
	s := fileScan{account: a, seen: map[string]bool{}}
	s.doc(client, doc, c.file.Scope, c.Target)
	for _, one := range s.all {
		ids = append(ids, one.ID)
	}
	return ids, nil
}

// Undo puts back what the last import that took servers out of clients' files took
// out: of one client, or with "" of all. The files are what they were, byte for byte; in
// one that was changed since, what was taken out is there again beside what is new. What
// cannot be put back does not keep the rest from it; the error is then a
// *problem.Problem.
func (a *ImportAccount) Undo(client string) ([]clients.Change, error) {
	j, err := a.open()
	if err != nil {
		return nil, err
	}
	wanted := what
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
		return c.Undone != nil || !strings.HasPrefix(c.What, what) || client != "" && c.What != wanted
	})
	if len(all) == 0 {
		return nil, problem.New(problem.NotFound, "There is no import to undo: nothing was taken out of a client's file.", "Only what `mcpproxy upstream import --remove` took out can be put back.")
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
