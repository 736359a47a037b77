package process

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpproxy/internal/store/redact"
)

// Server output is stored and shown without secrets and terminal control sequences.

const (
	// maxLogLine bounds the wait for the end of a line.
	maxLogLine = 64 << 10
	// maxKey bounds what is dropped after the beginning of a private key.
	maxKey = 32 << 10
)

// colors matches sequences that only change colors and styles.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// maskAndEscape masks secrets and escapes control sequences in server output.
func maskAndEscape(s string) string {
	if strings.IndexByte(s, '\x1b') >= 0 {
		s = colors.ReplaceAllString(s, "")
	}
	out := escapeControls(redact.Text(s))
	if strings.HasSuffix(s, "\n") && !strings.HasSuffix(out, "\n") {
		out += "\n" // masked with the end of its line
	}
	return out
}

// escapeControls writes characters that move the cursor, hide or reorder text as escapes, such
// as \x1b.
func escapeControls(s string) string {
	if isPrintableASCII(s) {
		return s
	}
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	var out strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			out.WriteString(`\x` + strconv.FormatUint(uint64(s[0])|0x100, 16)[1:])
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d' || !unicode.In(r, unicode.C, unicode.Zl, unicode.Zp):
			out.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return out.String()
}

// isPrintableASCII reports whether s needs no escapes.
func isPrintableASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// A lineMasker assembles whole lines and masks them.
type lineMasker struct {
	own  Masker // the server's own secrets
	rest []byte // the incomplete line
	key  int    // bytes dropped of an incomplete private key; 0: none
}

// addBytes returns the lines that b completes.
func (m *lineMasker) addBytes(b []byte) string {
	m.rest = append(m.rest, b...)
	end := bytes.LastIndexByte(m.rest, '\n') + 1
	if end == 0 && len(m.rest) <= maxLogLine {
		return ""
	}
	if end == 0 {
		end = len(m.rest)
	}
	text := string(m.rest[:end])
	m.rest = append(m.rest[:0], m.rest[end:]...)
	return m.maskLines(text)
}

// flush returns the incomplete line as a line.
func (m *lineMasker) flush() string {
	if len(m.rest) == 0 {
		return ""
	}
	text := string(m.rest) + "\n"
	m.rest = nil
	return m.maskLines(text)
}

// maskLines masks lines, and the rest of a private key that began earlier.
func (m *lineMasker) maskLines(text string) string {
	if m.key > 0 {
		_, after, ended := strings.Cut(text, "-----END ")
		if m.key += len(text); !ended && m.key < maxKey {
			return ""
		}
		m.key = 0
		if ended {
			_, text, _ = strings.Cut(after, "\n")
		}
	}
	out := maskAndEscape(m.own.MaskText(text))
	begun := strings.LastIndex(text, "-----BEGIN ")
	if begun >= 0 && strings.Contains(out, "[masked private-key ") && !strings.Contains(text[begun:], "-----END ") {
		m.key = 1
	}
	return out
}
