package permission

// operation is the operation of an edit.
type operation uint8

const (
	opSet         operation = iota // replace a value
	opSetLast                      // replace a value and move it behind its siblings
	opAppend                       // append a string to a list
	opDrop                         // remove a string from a list
	opEnsureList                   // create a list if it is missing
	opReplaceFile                  // replace the whole file
)

// edit is one change of a file.
type edit struct {
	op     operation
	path   []string
	text   string
	unless string // a value to keep: a denial
}
