package clients

// Bounds per file.
const (
	maxServers = 256
	maxNotes   = 200
)

// importReader collects the servers of a file.
type importReader struct {
	file  *ServersFile
	taken ServerNames
	notes int
}

// note adds a note, up to the maximum number.
func (r *importReader) note(to *[]Note, at position, key, message, hint string) {
	if r.notes == maxNotes {
		r.file.OmittedNotes++
		return
	}
	r.notes++
	*to = append(*to, Note{at.line, at.column, key, message, hint})
}
