package clients

// Bounds on what is read of a file.
const (
	maxServers = 256
	maxNotes   = 200
)

// reader gathers the servers of a file.
type reader struct {
	file  *ServersFile
	taken Names
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
