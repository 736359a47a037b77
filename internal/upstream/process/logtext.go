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

// What a server writes is kept and shown without secrets, and without what
// would steer the terminal of who reads it.

const (
	// maxLogLine is how much of a line is waited for.
	maxLogLine = 64 << 10
	// maxKey is how much is left out after the beginning of a private key.
	maxKey = 32 << 10
)

// colors are the sequences that only change how text looks.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// logText masks and escapes text of a server.
func logText(s string) string {
	if strings.IndexByte(s, '\x1b') >= 0 {
		s = colors.ReplaceAllString(s, "")
	}
	out := escaped(redact.Text(s))
	if strings.HasSuffix(s, "\n") && !strings.HasSuffix(out, "\n") {
		out += "\n" // masked with the end of its line
	}
	return out
}

// escaped shows what moves the cursor, hides or reorders text as an escape, such
// as \x1b.
func escaped(s string) string {
	if harmless(s) {
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

// harmless reports whether s is ASCII that is shown as it is.
func harmless(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// A lineMasker makes whole lines of what comes in pieces, and masks them.
type lineMasker struct {
	own  Masker // the server's own secrets
	rest []byte // the beginning of a line
	key  int    // bytes left out of a private key whose end has not come; 0: none is open
}

// add returns what is complete with b.
func (m *lineMasker) add(b []byte) string {
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
	return m.masked(text)
}

// flush returns what is there of a line that has not ended, as a line.
func (m *lineMasker) flush() string {
	if len(m.rest) == 0 {
		return ""
	}
	text := string(m.rest) + "\n"
	m.rest = nil
	return m.masked(text)
}

// masked masks lines, and the rest of a private key that began in lines before.
func (m *lineMasker) masked(text string) string {
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
	out := logText(m.own.Text(text))
	begun := strings.LastIndex(text, "-----BEGIN ")
	if begun >= 0 && strings.Contains(out, "[masked private-key ") && !strings.Contains(text[begun:], "-----END ") {
		m.key = 1
	}
	return out
}
