package clients

import (
	"sort"
	"unicode/utf8"
)

// lineIndex converts byte offsets to positions.
type lineIndex struct {
	data   []byte
	starts []int
}

func newLineIndex(data []byte) *lineIndex {
	l := &lineIndex{data, []int{0}}
	for i, c := range data {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// position returns the position of a byte. The column counts characters, or bytes in a very long line.
func (l *lineIndex) position(offset int) position {
	line := sort.SearchInts(l.starts, offset+1)
	start := l.starts[line-1]
	if offset-start > 1000 {
		return position{line, offset - start + 1}
	}
	return position{line, utf8.RuneCount(l.data[start:offset]) + 1}
}
