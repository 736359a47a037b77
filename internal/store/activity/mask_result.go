package activity

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/redact"
)

// cutMargin is the number of bytes beyond the limit that are also masked before the cut. It allows recognizing a secret
// that the cut would split.
const cutMargin = 4 << 10

// MaskAndCutJSON returns JSON as records store it: with masked secrets. If it is longer than max bytes, the result is a
// JSON string with its beginning.
func MaskAndCutJSON(raw json.RawMessage, max int) (kept json.RawMessage, truncated bool) {
	if len(raw) <= max {
		masked := redact.JSON(raw)
		if len(masked) <= max {
			return masked, false
		}
		return clipToJSONString(masked, max), true
	}
	whole := raw
	if len(raw) > max+cutMargin {
		whole = completeTruncatedJSON(raw[:max+cutMargin])
	}
	masked := redact.JSON(whole)
	if !json.Valid(masked) { // the server sent invalid JSON
		masked = []byte(redact.Text(string(whole)))
	}
	return clipToJSONString(masked, max), true
}

// clipToJSONString returns the first max bytes of text as a JSON string, without splitting a character.
func clipToJSONString(text []byte, max int) json.RawMessage {
	text = wirejson.ClipText(text, max)
	return wirejson.AppendString(make([]byte, 0, len(text)+len(text)/8+2), text)
}

// completeTruncatedJSON converts the beginning of a JSON text into valid JSON. It closes an unfinished string value and
// open brackets, and removes other incomplete parts. Masking needs this structure, because the name of a value
// determines its meaning. For a text that is not JSON, the result is arbitrary, but the function does not panic.
func completeTruncatedJSON(cut []byte) []byte {
	s := truncatedJSONScanner{}
	for i, c := range cut {
		s.scanByte(c, i)
	}
	end, closing := s.whole, ""
	switch {
	case s.inString && !s.expectsName():
		end, closing = len(cut), `"`
		if s.missing > 0 {
			end = s.escape
		}
		end = len(trimPartialRune(cut[:end]))
	case end == 0:
		closing = "null"
	}
	out := append(append(make([]byte, 0, end+len(s.open)+len("null")), cut[:end]...), closing...)
	slices.Reverse(s.open)
	return append(out, s.open...)
}

// truncatedJSONScanner scans JSON byte by byte. It keeps only the state that is needed to complete the JSON.
type truncatedJSONScanner struct {
	open     []byte // the missing closing brackets
	names    []bool // for each open bracket: whether the next string is a member name
	whole    int    // offset up to which the text needs only closing brackets to be complete
	inString bool
	literal  bool // inside a number or a word
	escape   int  // offset of the last escape sequence
	missing  int  // number of missing characters in that escape sequence
}

func (s *truncatedJSONScanner) expectsName() bool { return len(s.names) > 0 && s.names[len(s.names)-1] }

func (s *truncatedJSONScanner) scanByte(c byte, i int) {
	if s.inString {
		s.scanStringByte(c, i)
		return
	}
	switch c {
	case ' ', '\t', '\r', '\n', ',', '}', ']':
		if s.literal {
			s.literal, s.whole = false, i
		}
	}
	switch n := len(s.open); c {
	case ' ', '\t', '\r', '\n':
	case '"':
		s.inString = true
	case '{', '[':
		s.open = append(s.open, c+2) // in ASCII, '}' and ']' are two after their opening brackets
		s.names = append(s.names, c == '{')
		s.whole = i + 1
	case '}', ']':
		if n > 0 {
			s.open, s.names = s.open[:n-1], s.names[:n-1]
		}
		s.whole = i + 1
	case ':':
		if n > 0 {
			s.names[n-1] = false
		}
	case ',':
		if n > 0 {
			s.names[n-1] = s.open[n-1] == '}'
		}
	default:
		s.literal = true
	}
}

func (s *truncatedJSONScanner) scanStringByte(c byte, i int) {
	switch {
	case s.missing > 0:
		if s.missing--; s.escape == i-1 && c == 'u' {
			s.missing = len("0000")
		}
	case c == '\\':
		s.escape, s.missing = i, 1
	case c == '"':
		if s.inString = false; !s.expectsName() {
			s.whole = i + 1
		}
	}
}

// trimPartialRune removes an incomplete character from the end of b.
func trimPartialRune(b []byte) []byte {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}
