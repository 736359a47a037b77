package activity

import (
	"encoding/json"
	"unicode/utf8"

	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/redact"
)

// cutMargin is how much more than the limit is masked before the cut, so that a
// secret that the cut would split is still recognised.
const cutMargin = 4 << 10

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
	text = rawjson.Clip(text, max)
	return rawjson.AppendString(make([]byte, 0, len(text)+len(text)/8+2), text)
}

// closeJSON makes the beginning of a JSON text a JSON text: it ends what is open
// where the beginning stops. Masking needs the structure, since what a value is
// depends on its name. What is no JSON comes out as some bytes, never a panic.
func closeJSON(cut []byte) []byte {
	s := cutScanner{}
	for i := 0; i < len(cut); i++ {
		s.step(cut[i], i)
	}
	out := append(make([]byte, 0, len(cut)+len(s.open)+16), cut[:s.keep(len(cut))]...)
	if s.inString {
		out = append(trimRune(out), '"')
	}
	switch {
	case s.inString && s.wantsName():
		out = append(out, `:null`...)
	case s.inString || s.after == 0:
	case s.after == ':' || s.after == 'v':
		out = append(out, `null`...)
	case s.after == ',' && s.wantsName():
		out = append(out, `"":null`...)
	case s.after == ',':
		out = append(out, `null`...)
	case s.after == 'n': // a name without its value
		out = append(out, `:null`...)
	}
	for i := len(s.open) - 1; i >= 0; i-- {
		out = append(out, s.open[i])
	}
	return out
}

// cutScanner follows a JSON text byte by byte, just closely enough to know how
// to end it.
type cutScanner struct {
	open     []byte // the closing brackets that are missing
	names    []bool // per open bracket: an object in which a name comes next
	inString bool
	escape   int  // where the running escape began, plus one; 0 = none
	literal  int  // where the running number or word began, plus one; 0 = none
	after    byte // the last thing outside strings: ':' ',' 'n' (a name), 0
	hex      int  // digits of a \u escape that are missing
}

func (s *cutScanner) wantsName() bool { return len(s.names) > 0 && s.names[len(s.names)-1] }

func (s *cutScanner) step(c byte, i int) {
	if s.inString {
		s.stepString(c, i)
		return
	}
	switch c {
	case ' ', '\t', '\r', '\n':
		s.endLiteral()
	case '"':
		s.inString = true
	case '{', '[':
		s.open = append(s.open, c+2) // '}' and ']' stand two behind
		s.names = append(s.names, c == '{')
		s.after = 0
	case '}', ']':
		s.endLiteral()
		if n := len(s.open); n > 0 {
			s.open, s.names = s.open[:n-1], s.names[:n-1]
		}
		s.after = 0
	case ':':
		s.after = ':'
		if n := len(s.names); n > 0 {
			s.names[n-1] = false
		}
	case ',':
		s.endLiteral()
		s.after = ','
		if n := len(s.open); n > 0 {
			s.names[n-1] = s.open[n-1] == '}'
		}
	default:
		if s.literal == 0 {
			s.literal = i + 1
		}
	}
}

func (s *cutScanner) stepString(c byte, i int) {
	switch {
	case s.hex > 0:
		if s.hex--; s.hex == 0 {
			s.escape = 0
		}
	case s.escape > 0:
		if c == 'u' {
			s.hex = 4
		} else {
			s.escape = 0
		}
	case c == '\\':
		s.escape = i + 1
	case c == '"':
		s.inString = false
		s.after = 0
		if s.wantsName() {
			s.after = 'n'
		}
	}
}

func (s *cutScanner) endLiteral() {
	if s.literal > 0 {
		s.literal, s.after = 0, 0
	}
}

// keep returns how much of the cut text stays: not half an escape, number or
// word.
func (s *cutScanner) keep(n int) int {
	if s.inString && s.escape > 0 {
		return s.escape - 1
	}
	if s.literal > 0 {
		if s.after == 0 {
			s.after = 'v' // a number or word at the very beginning, or after '['
		}
		return s.literal - 1
	}
	return n
}

// trimRune takes half a character off the end.
func trimRune(b []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		c := b[len(b)-i]
		if c < utf8.RuneSelf {
			return b
		}
		if utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}
