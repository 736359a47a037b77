package activity

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/redact"
)

// cutMargin is how much more than the limit is masked before the cut, so that a
// secret that the cut would split is still recognised.
const cutMargin = 4 << 10

// Shown returns JSON as records keep it: masked, and where it is longer than most bytes,
// its beginning as a JSON string.
func Shown(raw json.RawMessage, most int) (shown json.RawMessage, cut bool) {
	return keptJSON(raw, most)
}

// keptJSON is the part of a response, or of arguments, that the record keeps:
// masked, and where it is longer than max, its beginning as a JSON string.
func keptJSON(raw json.RawMessage, max int) (kept json.RawMessage, truncated bool) {
	if len(raw) <= max {
		masked := redact.JSON(raw)
		if len(masked) <= max {
			return masked, false
		}
		return beginning(masked, max), true
	}
	whole := raw
	if len(raw) > max+cutMargin {
		whole = closeJSON(raw[:max+cutMargin])
	}
	masked := redact.JSON(whole)
	if !json.Valid(masked) { // an upstream that does not write JSON
		masked = []byte(redact.Text(string(whole)))
	}
	return beginning(masked, max), true
}

// beginning returns the first max bytes of text, not splitting a character, as a
// JSON string.
func beginning(text []byte, max int) json.RawMessage {
	text = wirejson.ClipText(text, max)
	return wirejson.AppendString(make([]byte, 0, len(text)+len(text)/8+2), text)
}

// closeJSON makes the beginning of a JSON text a JSON text: a string that is a
// value ends where the beginning stops, what else is not complete is left out, and
// what is open is closed. Masking needs the structure, since what a value is
// depends on its name. What is no JSON comes out as some bytes, never a panic.
func closeJSON(cut []byte) []byte {
	s := cutScanner{}
	for i, c := range cut {
		s.step(c, i)
	}
	end, closing := s.whole, ""
	switch {
	case s.inString && !s.wantsName():
		end, closing = len(cut), `"`
		if s.missing > 0 {
			end = s.escape
		}
		end = len(trimRune(cut[:end]))
	case end == 0:
		closing = "null"
	}
	out := append(append(make([]byte, 0, end+len(s.open)+len("null")), cut[:end]...), closing...)
	slices.Reverse(s.open)
	return append(out, s.open...)
}

// cutScanner follows a JSON text byte by byte, just closely enough to know how
// to end it.
type cutScanner struct {
	open     []byte // the closing brackets that are missing
	names    []bool // per open bracket: an object in which a name comes next
	whole    int    // up to here the text needs nothing but these brackets
	inString bool
	literal  bool // in a number or a word
	escape   int  // where the last escape began
	missing  int  // characters that are missing of it
}

func (s *cutScanner) wantsName() bool { return len(s.names) > 0 && s.names[len(s.names)-1] }

func (s *cutScanner) step(c byte, i int) {
	if s.inString {
		s.stepString(c, i)
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
		s.open = append(s.open, c+2) // '}' and ']' stand two behind
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

func (s *cutScanner) stepString(c byte, i int) {
	switch {
	case s.missing > 0:
		if s.missing--; s.escape == i-1 && c == 'u' {
			s.missing = len("0000")
		}
	case c == '\\':
		s.escape, s.missing = i, 1
	case c == '"':
		if s.inString = false; !s.wantsName() {
			s.whole = i + 1
		}
	}
}

// trimRune takes half a character off the end.
func trimRune(b []byte) []byte {
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
