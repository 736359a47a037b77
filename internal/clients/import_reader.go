package clients

// Limits per file.
const (
	maxServers = 256
	maxNotes   = 200
)

// importReader collects the servers of a file.
type importReader struct {
	file  *ImportedServers
	taken UsedServerNames
	notes int
}

// addNote adds a note unless the maximum number is reached.
func (r *importReader) addNote(to *[]Note, at position, key, message, hint string) {
	if r.notes == maxNotes {
		r.file.OmittedNotes++
		return
	}
	r.notes++
	*to = append(*to, Note{at.line, at.column, key, message, hint})
}
