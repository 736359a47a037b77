package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// Bounds on the file. Nobody writes so much by hand; the bounds keep a wrong
// path (a log, a device) from being read, and the parser's stack small.
const (
	maxFile  = 4 << 20
	maxDepth = 32
)

// source is the text of a file, and finds lines and columns in it.
type source struct {
	data []byte
}

// position returns the line and the column (in characters) of a byte.
func (s source) position(offset int) (line, column int) {
	before := s.data[:min(max(offset, 0), len(s.data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// mistake is a Mistake at a byte of the text.
func (s source) mistake(offset int, path, message, hint string) Mistake {
	line, column := s.position(offset)
	return Mistake{line, column, path, message, hint}
}

// parse returns the syntax tree, or the one mistake that keeps it from being
// read.
func (s source) parse() (hujson.Value, *Mistake) {
	at := func(offset int, message, hint string) (hujson.Value, *Mistake) {
		m := s.mistake(offset, "", message, hint)
		return hujson.Value{}, &m
	}
	if len(s.data) > maxFile {
		return at(0, fmt.Sprintf("the file is larger than %d bytes", maxFile), "is this the right file?")
	}
	if i := invalidUTF8(s.data); i >= 0 {
		return at(i, "the file is not valid UTF-8", "save it with the encoding UTF-8")
	}
	outline := s.outline()
	if outline.deep >= 0 {
		return at(outline.deep, fmt.Sprintf("brackets are nested deeper than %d", maxDepth), "")
	}
	if outline.empty {
		return at(0, "the file is empty", "write {} to have the defaults")
	}
	// The parser wants a line comment to end with a newline, also the last one.
	v, err := hujson.Parse(append(bytes.Clone(s.data), '\n'))
	if err == nil {
		return v, nil
	}
	offset, message, hint := s.syntax(err)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return at(len(s.data), "the file ends too early", s.unclosed(outline.open))
	}
	return at(offset, message, hint)
}

// unclosed returns what the end of the file leaves open.
func (s source) unclosed(offset int) string {
	if offset < 0 {
		return ""
	}
	what := map[byte]string{'"': "the string", '/': "the comment"}[s.data[offset]]
	if what == "" {
		what = "the " + string(s.data[offset])
	}
	line, column := s.position(offset)
	return fmt.Sprintf("%s at %d:%d is not closed", what, line, column)
}

// syntax returns the place and the text of a parser's error. A text of the file
// is not repeated when it is a string: it may be a secret.
func (s source) syntax(err error) (offset int, message, hint string) {
	var line, column int
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scanErr != nil {
		return 0, "invalid JSON", ""
	}
	for range line - 1 {
		offset += bytes.IndexByte(s.data[offset:], '\n') + 1
	}
	offset += column - 1
	message = errors.Unwrap(err).Error()
	literal, isLiteral := strings.CutPrefix(message, "invalid literal: ")
	switch {
	case isLiteral && strings.HasPrefix(literal, `"`):
		return offset, "the string holds a line break, a control character or an unknown escape", `write \n for a line break and \\ for a backslash`
	case isLiteral:
		return offset, "invalid value " + clip(literal), "text stands in double quotes; true, false and null do not"
	case strings.Contains(message, "(expecting ','"):
		return offset, message, "is a comma missing before it?"
	}
	return offset, message, ""
}

// invalidUTF8 finds the first byte that is not UTF-8, or returns -1.
func invalidUTF8(data []byte) int {
	for i, r := range string(data) {
		if r == utf8.RuneError && !bytes.HasPrefix(data[i:], []byte("\uFFFD")) {
			return i
		}
	}
	return -1
}

// outline is what the brackets of a text say before it is parsed. The offsets
// are -1 when there is none.
type outline struct {
	deep  int // the first bracket that is nested too deep
	open  int // the innermost bracket, quote or comment that is never closed
	empty bool
}

func (s source) outline() outline {
	out := outline{deep: -1, open: -1, empty: true}
	var opened []int
	for i := 0; i < len(s.data); {
		n := extent(s.data[i:])
		if n < 0 { // a string or a comment without an end
			out.open, out.empty = i, false
			return out
		}
		switch c := s.data[i]; c {
		case '{', '[':
			opened = append(opened, i)
			if len(opened) > maxDepth {
				out.deep, out.empty = i, false
				return out
			}
		case '}', ']':
			opened = opened[:max(len(opened)-1, 0)]
		}
		out.empty = out.empty && (n > 1 && s.data[i] == '/' || strings.IndexByte(" \t\r\n", s.data[i]) >= 0)
		i += n
	}
	if len(opened) > 0 {
		out.open = opened[len(opened)-1]
	}
	return out
}

// extent is the length of the string or comment at the start of b, 1 when
// there is neither, -1 when it has no end.
func extent(b []byte) int {
	switch {
	case b[0] == '"':
		for i := 1; i < len(b); i++ {
			switch b[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return -1
	case bytes.HasPrefix(b, []byte("//")):
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return i
		}
		return len(b)
	case bytes.HasPrefix(b, []byte("/*")):
		if i := bytes.Index(b[2:], []byte("*/")); i >= 0 {
			return i + 4
		}
		return -1
	}
	return 1
}
