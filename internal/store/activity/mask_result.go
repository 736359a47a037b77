package activity

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/redact"
)

// cutMargin is the number of bytes beyond the limit that are masked before the cut, so that a secret that
// the cut would split is recognized.
const cutMargin = 4 << 10

// MaskAndCutJSON returns JSON as records keep it: masked, and if it is longer than max bytes, its
// beginning as a JSON string.
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
	if !json.Valid(masked) { // the server did not write valid JSON
		masked = []byte(redact.Text(string(whole)))
	}
	return clipToJSONString(masked, max), true
}

// clipToJSONString returns the first max bytes of text as a JSON string, without splitting a character.
func clipToJSONString(text []byte, max int) json.RawMessage {
	text = wirejson.ClipText(text, max)
	return wirejson.AppendString(make([]byte, 0, len(text)+len(text)/8+2), text)
}

// completeTruncatedJSON turns the beginning of a JSON text into valid JSON. A string value ends where the text was
// cut, other incomplete parts are removed, and open brackets are closed. Masking needs this structure,
// because the meaning of a value depends on its name. For a text that is not JSON the result is arbitrary,
// but never a panic.
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

// truncatedJSONScanner scans JSON byte by byte, just closely enough to know how to complete it.
type truncatedJSONScanner struct {
	open     []byte // the missing closing brackets
	names    []bool // for each open bracket: whether a member name comes next
	whole    int    // offset up to which the text lacks nothing but the brackets
	inString bool
	literal  bool // inside a number or a word
	escape   int  // offset of the last escape
	missing  int  // missing characters of that escape
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
		s.open = append(s.open, c+2) // '}' and ']' are two after the opening bracket
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

// trimPartialRune removes an incomplete character from the end.
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
