// Package wordlist reads the text files in which packages keep their words and
// patterns: what people edit, beside the code that knows what it means.
//
// A file has sections: a line at the margin is the head of one, the lines below
// it that begin with a tab are what it has. Lines that begin with # are comments.
// What is in a line is the business of the package that has the file.
//
// It guarantees that nothing is skipped: what has no head, and a section that is
// asked for and missing, is a panic, for the files are part of the program. It
// keeps nothing: whoever has a file reads it once.
package wordlist

import (
	"fmt"
	"strings"
)

// File is the sections of a file, in their order.
type File []Section

// Section is what stands under one head.
type Section struct {
	Head  string
	Lines []string
}

// Read reads a file.
func Read(text string) File {
	var f File
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		entry, indented := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || line[0] == '#':
		case !indented:
			f = append(f, Section{Head: line})
		case len(f) == 0:
			panic(fmt.Sprintf("wordlist: %q stands under no head", entry))
		default:
			last := &f[len(f)-1]
			last.Lines = append(last.Lines, entry)
		}
	}
	return f
}

// Of returns the section with this head.
func (f File) Of(head string) Section {
	for _, s := range f {
		if s.Head == head {
			return s
		}
	}
	panic(fmt.Sprintf("wordlist: no section is named %q", head))
}

// Words are the words of all lines.
func (s Section) Words() []string { return strings.Fields(strings.Join(s.Lines, " ")) }

// Set is Words as a set.
func (s Section) Set() map[string]bool {
	set := make(map[string]bool, 8*len(s.Lines))
	for _, w := range s.Words() {
		set[w] = true
	}
	return set
}
