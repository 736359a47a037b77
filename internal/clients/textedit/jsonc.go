package textedit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/mcp/wirejson"
)

// Limits for the file. They protect against a wrong path (a log, a device) and limit the parser's stack.
const (
	MaxSize  = 16 << 20
	maxDepth = 32
)

// ByteOrderMark precedes the text in some editors' files.
const ByteOrderMark = "\uFEFF"

// SyntaxError is the reason why a text cannot be parsed (its syntax, size or encoding), and the position.
type SyntaxError struct {
	Offset        int
	Message, Hint string
}

// LineAndColumn returns the line and the column (in characters) of a byte. Both count from 1.
func LineAndColumn(text []byte, offset int) (line, column int) {
	before := text[:min(max(offset, 0), len(text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// CheckSizeAndEncoding returns an error for a text that is too large or not UTF-8, or nil.
func CheckSizeAndEncoding(text []byte) *SyntaxError {
	if len(text) > MaxSize {
		return &SyntaxError{0, fmt.Sprintf("the file is larger than %d bytes", MaxSize), "is this the right file?"}
	}
	if i := indexInvalidUTF8(text); i >= 0 {
		return &SyntaxError{i, "the file is not valid UTF-8", "save it with the encoding UTF-8"}
	}
	return nil
}

// jsoncSource is a text that is being parsed.
type jsoncSource struct {
	data []byte
}

// ParseJSONC returns the syntax tree of a text without byte order mark, or the syntax error.
func ParseJSONC(text []byte) (hujson.Value, *SyntaxError) {
	s := jsoncSource{text}
	at := func(offset int, message, hint string) (hujson.Value, *SyntaxError) {
		return hujson.Value{}, &SyntaxError{offset, message, hint}
	}
	if mistake := CheckSizeAndEncoding(text); mistake != nil {
		return hujson.Value{}, mistake
	}
	outline := s.scanBrackets()
	if outline.tooDeep >= 0 {
		return at(outline.tooDeep, fmt.Sprintf("brackets are nested deeper than %d", maxDepth), "")
	}
	if outline.empty {
		return at(0, "the file is empty", "write {} to use the defaults")
	}
	// The parser requires a newline after every line comment, even at the end.
	v, err := hujson.Parse(append(bytes.Clone(s.data), '\n'))
	if err == nil {
		return v, nil
	}
	offset, message, hint := s.describeSyntaxError(err)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return at(len(s.data), "the file ends too early", s.unclosedHint(outline.unclosed))
	}
	return at(offset, message, hint)
}

// unclosedHint returns a hint with the structure that is still open at the end of the file.
func (s jsoncSource) unclosedHint(offset int) string {
	if offset < 0 {
		return ""
	}
	what := map[byte]string{'"': "the string", '/': "the comment"}[s.data[offset]]
	if what == "" {
		what = "the " + string(s.data[offset])
	}
	line, column := LineAndColumn(s.data, offset)
	return fmt.Sprintf("%s at %d:%d is not closed", what, line, column)
}

// describeSyntaxError returns the position and the message for a parser's error. The message contains no strings of the
// file, because they may be secrets.
func (s jsoncSource) describeSyntaxError(err error) (offset int, message, hint string) {
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
		return offset, "invalid value " + clipLiteral(literal), "text needs double quotes; true, false and null do not"
	case strings.Contains(message, "(expecting ','"):
		return offset, message, "is a comma missing before it?"
	}
	return offset, message, ""
}

// clipLiteral shortens quoted text in a message.
func clipLiteral(literal string) string {
	if cut := wirejson.ClipText(literal, 60); cut != literal {
		return cut + "…"
	}
	return literal
}

// indexInvalidUTF8 returns the offset of the first invalid byte, or -1.
func indexInvalidUTF8(data []byte) int {
	for i, r := range string(data) {
		if r == utf8.RuneError && !bytes.HasPrefix(data[i:], []byte("\uFFFD")) {
			return i
		}
	}
	return -1
}

// bracketScan is the result of a scan of the brackets before parsing. The offsets are -1
// if there are none.
type bracketScan struct {
	tooDeep  int // the first bracket that is nested too deep
	unclosed int // the innermost unclosed bracket, quote or comment
	empty    bool
}

func (s jsoncSource) scanBrackets() bracketScan {
	out := bracketScan{tooDeep: -1, unclosed: -1, empty: true}
	var opened []int
	for i := 0; i < len(s.data); {
		n := TokenLength(s.data[i:])
		if n < 0 { // an unterminated string or comment
			out.unclosed, out.empty = i, false
			return out
		}
		switch c := s.data[i]; c {
		case '{', '[':
			opened = append(opened, i)
			if len(opened) > maxDepth {
				out.tooDeep, out.empty = i, false
				return out
			}
		case '}', ']':
			opened = opened[:max(len(opened)-1, 0)]
		}
		out.empty = out.empty && (n > 1 && s.data[i] == '/' || strings.IndexByte(" \t\r\n", s.data[i]) >= 0)
		i += n
	}
	if len(opened) > 0 {
		out.unclosed = opened[len(opened)-1]
	}
	return out
}

// TokenLength returns the length of the string or comment at the start of b. It returns -1 if the string or comment is
// unterminated, and 1 for any other token.
func TokenLength(b []byte) int {
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
