package permission

// editOperation is the operation of an edit.
type editOperation uint8

const (
	opSet         editOperation = iota // replace a value
	opSetLast                          // replace a value and move it after its siblings
	opAppend                           // append a string to a list
	opDrop                             // remove a string from a list
	opEnsureList                       // create a list if it is missing
	opReplaceFile                      // replace the whole file
)

// fileEdit is one change of a file.
type fileEdit struct {
	op     editOperation
	path   []string
	text   string
	unless string // a value that is kept: a denial
}
