package clients

import (
	"sort"
	"unicode/utf8"
)

// lines finds the places of bytes in a text, for many at a time.
type lines struct {
	data   []byte
	starts []int
}

func newLines(data []byte) *lines {
	l := &lines{data, []int{0}}
	for i, c := range data {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// at returns the place of a byte. The column counts characters, and in a very long
// line, bytes.
func (l *lines) at(offset int) place {
	line := sort.SearchInts(l.starts, offset+1)
	start := l.starts[line-1]
	if offset-start > 1000 {
		return place{line, offset - start + 1}
	}
	return place{line, utf8.RuneCount(l.data[start:offset]) + 1}
}
