package permission

// operation is what an edit does.
type operation uint8

const (
	opSet         operation = iota // a value in place of any other
	opSetLast                      // as set, after everything that stands beside it
	opAppend                       // a text to a list
	opDrop                         // a text from a list
	opEnsureList                   // a list, be it empty
	opReplaceFile                  // the whole file
)

// edit is one change of a file.
type edit struct {
	op     operation
	path   []string
	text   string
	unless string // a value that stays: a denial
}
