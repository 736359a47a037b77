package cli

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"mcpproxy/internal/ops"
)

// toPrintable makes external text safe for a terminal. It removes escape sequences, control characters (except line
// ends and tabs), and invisible characters that reorder or hide text. All text from servers and clients is passed to it
// or to toOneLine.
func toPrintable(s string) string {
	if isPlainASCII(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for len(s) > 0 {
		if n := escapeSequenceLength(s); n > 0 {
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
		case !isHiddenRune(r):
			out.WriteRune(r)
		}
		s = s[size:]
	}
	return out.String()
}

// toOneLine is like toPrintable, but returns one line, for table cells.
func toOneLine(s string) string {
	return strings.Join(strings.Fields(toPrintable(s)), " ")
}

// isPlainASCII reports whether s is ASCII that needs no change.
func isPlainASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// isHiddenRune reports whether r is invisible or changes how other characters are shown. It allows joiners, because
// some scripts and emoji need them.
func isHiddenRune(r rune) bool {
	if r == '\u200c' || r == '\u200d' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

const (
	esc = '\x1b'
	csi = '\u009b'
)

// maxEscapeSequence limits the length of an escape sequence. Only the start of a longer sequence is removed, so that it
// cannot hide the text after it.
const maxEscapeSequence = 4096

// escapeSequenceLength returns the length of the escape sequence at the start of s.
func escapeSequenceLength(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	switch r {
	case csi:
		return size + controlSequenceLength(s[size:])
	case '\u0090', '\u0098', '\u009d', '\u009e', '\u009f':
		return size + controlStringLength(s[size:])
	case esc:
	default:
		return 0
	}
	if size == len(s) {
		return size
	}
	switch s[size] {
	case '[':
		return size + 1 + controlSequenceLength(s[size+1:])
	case 'P', 'X', ']', '^', '_':
		return size + 1 + controlStringLength(s[size+1:])
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

// controlSequenceLength returns the length of the rest of a control sequence: the parameters and one final byte. It
// returns 0 if s does not start with one.
func controlSequenceLength(s string) int {
	for i := 0; i < len(s) && i < maxEscapeSequence; i++ {
		switch c := s[i]; {
		case 0x40 <= c && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x7e:
			return 0
		}
	}
	return 0
}

// controlStringLength returns the length of the rest of a control string (DCS, SOS, OSC, PM or APC), including its end.
func controlStringLength(s string) int {
	for i := 0; i < len(s) && i < maxEscapeSequence; i++ {
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

// escapeHiddenInJSON escapes the characters of a JSON text that could control a terminal. In valid JSON, they occur
// only in strings.
func escapeHiddenInJSON(raw []byte) []byte {
	if isPlainASCII(string(raw)) {
		return raw
	}
	var out bytes.Buffer
	for _, r := range string(raw) {
		switch {
		case r == '\n' || !isHiddenRune(r):
			out.WriteRune(r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		}
	}
	return out.Bytes()
}

// escapeInvisible makes an external text fully visible for a user who decides about it. It writes invisible characters,
// and characters that reorder others, as code points such as <U+202E>.
func escapeInvisible(s string) string {
	if isPlainASCII(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, "<%02X>", s[i])
		case r == '\n' || r == '\t' || !isInvisibleOrMisleading(r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, "<U+%04X>", r)
		}
		i += size
	}
	return out.String()
}

// escapeInvisibleLine is like escapeInvisible, but returns one line.
func escapeInvisibleLine(s string) string {
	return strings.NewReplacer("\n", "<U+000A>", "\t", "<U+0009>").Replace(escapeInvisible(s))
}

// isInvisibleOrMisleading reports whether r is invisible, looks like a plain space, or changes how others are shown.
// Unlike isHiddenRune it includes joiners, because a user who decides must see them.
func isInvisibleOrMisleading(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) ||
		r != ' ' && unicode.Is(unicode.Zs, r) || r == '\u2800'
}

// shellQuoteWords quotes words for a shell, for commands that users copy and for command lines that users review.
func shellQuoteWords(words ...string) string {
	return strings.Join(mapSlice(words, shellQuoteWord), " ")
}

func shellQuoteWord(s string) string { return ops.ShellQuote(escapeInvisibleLine(s)) }
