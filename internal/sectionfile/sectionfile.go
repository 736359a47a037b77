// Package sectionfile parses text files with sections. Packages keep words and patterns in such files, separate from
// the code that interprets them.
//
// A line without indentation is the head of a section. The lines after it that start with a tab are its content. Lines
// that start with # are comments. The caller interprets the content.
//
//   - Parse panics on content before the first head, and SectionByHead panics if the section is missing, because the
//     files are part of the program.
//   - The package caches nothing, so callers should parse each file once.
package sectionfile

import (
	"fmt"
	"strings"
)

// Sections is the list of sections of a file, in order.
type Sections []Section

// Section is one section: its head and its lines.
type Section struct {
	Head  string
	Lines []string
}

// Parse parses a file.
func Parse(text string) Sections {
	var f Sections
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		entry, indented := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || line[0] == '#':
		case !indented:
			f = append(f, Section{Head: line})
		case len(f) == 0:
			panic(fmt.Sprintf("sectionfile: %q is under no head", entry))
		default:
			last := &f[len(f)-1]
			last.Lines = append(last.Lines, entry)
		}
	}
	return f
}

// SectionByHead returns the section with this head.
func (f Sections) SectionByHead(head string) Section {
	for _, s := range f {
		if s.Head == head {
			return s
		}
	}
	panic(fmt.Sprintf("sectionfile: no section is named %q", head))
}

// Words returns the words of all lines.
func (s Section) Words() []string { return strings.Fields(strings.Join(s.Lines, " ")) }

// WordSet returns the words as a set.
func (s Section) WordSet() map[string]bool {
	set := make(map[string]bool, 8*len(s.Lines))
	for _, w := range s.Words() {
		set[w] = true
	}
	return set
}
