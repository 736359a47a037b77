package clientfile

import "mcpproxy/internal/config"

// Bounds on what is read of a file.
const (
	maxServers = 256
	maxNotes   = 200
)

// reader gathers the servers of a file.
type reader struct {
	file  *File
	taken map[string]string // names, by what they look like
	notes int
}

// note adds a note to some, within the bound on all.
func (r *reader) note(to *[]Note, at place, key, message, hint string) {
	if r.notes == maxNotes {
		r.file.More++
		return
	}
	r.notes++
	*to = append(*to, Note{at.line, at.column, key, message, hint})
}

// name is a name for a server that no other one has, or seems to have.
func (r *reader) name(called string) string {
	base := validName(called)
	name := base
	for n := 2; r.isTaken(name); n++ {
		name = numbered(base, n)
	}
	return name
}

func (r *reader) isTaken(name string) bool {
	for _, look := range config.Looks(name) {
		if r.taken[look] != "" {
			return true
		}
	}
	return false
}
