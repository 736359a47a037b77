package permission

// operation is what an edit does.
type operation uint8

const (
	set    operation = iota // a value in place of any other
	last                    // as set, after everything that stands beside it
	add                     // a text to a list
	drop                    // a text from a list
	ensure                  // a list, be it empty
	whole                   // the whole file
)

// edit is one change of a file.
type edit struct {
	op     operation
	path   []string
	text   string
	unless string // a value that stays: a denial
}
