package cli

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// printable is text from outside as it may be written to a terminal: without
// escape sequences, control characters (but for line ends and tabs) and the
// invisible characters that reorder or hide text. Every text that a server or a
// client said goes through it or through oneLine.
func printable(s string) string {
	if plain(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for len(s) > 0 {
		if n := escapeLength(s); n > 0 {
			s = s[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r == '\r':
			if !strings.HasPrefix(s[size:], "\n") {
				out.WriteByte('\n')
			}
		case r == '\u2028' || r == '\u2029':
			out.WriteByte('\n')
		case !hidden(r):
			out.WriteRune(r)
		}
		s = s[size:]
	}
	return out.String()
}

// oneLine is printable on one line, for cells of a table.
func oneLine(s string) string {
	return strings.Join(strings.Fields(printable(s)), " ")
}

// plain reports whether s is ASCII that needs nothing done.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// hidden reports whether r is not shown, or changes how others are shown.
// The joiners are kept: scripts and emoji need them, and they hide nothing.
func hidden(r rune) bool {
	if r == '\u200c' || r == '\u200d' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

const (
	esc = '\x1b'
	csi = '\u009b'
)

// maxEscape bounds a sequence, so that one that never ends hides nothing: then
// its beginning alone is left out.
const maxEscape = 4096

// escapeLength is how many bytes of the start of s are an escape sequence.
func escapeLength(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	switch r {
	case csi:
		return size + controlLength(s[size:])
	case '\u0090', '\u0098', '\u009d', '\u009e', '\u009f':
		return size + stringLength(s[size:])
	case esc:
	default:
		return 0
	}
	if size == len(s) {
		return size
	}
	switch s[size] {
	case '[':
		return size + 1 + controlLength(s[size+1:])
	case 'P', 'X', ']', '^', '_':
		return size + 1 + stringLength(s[size+1:])
	}
	n := size
	for n < len(s) && 0x20 <= s[n] && s[n] <= 0x2f {
		n++
	}
	if n < len(s) && 0x30 <= s[n] && s[n] <= 0x7e {
		n++
	}
	return n
}

// controlLength is the length of the rest of a control sequence: parameters
// and one final byte. What is not one stays.
func controlLength(s string) int {
	for i := 0; i < len(s) && i < maxEscape; i++ {
		switch c := s[i]; {
		case 0x40 <= c && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x7e:
			return 0
		}
	}
	return 0
}

// stringLength is the length of the rest of a command string, up to its end.
func stringLength(s string) int {
	for i := 0; i < len(s) && i < maxEscape; i++ {
		switch {
		case s[i] == '\a':
			return i + 1
		case s[i] == esc && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case s[i] == '\n':
			return 0
		case strings.HasPrefix(s[i:], "\u009c"):
			return i + 2
		}
	}
	return 0
}

// escapeHidden writes the characters of a JSON text that could steer a terminal
// as their escapes, which mean the same. They can only be inside strings.
func escapeHidden(raw []byte) []byte {
	if plain(string(raw)) {
		return raw
	}
	var out bytes.Buffer
	for _, r := range string(raw) {
		switch {
		case r == '\n' || !hidden(r):
			out.WriteRune(r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		}
	}
	return out.Bytes()
}
