package result

import (
	"bytes"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// cutWritten returns as much of a string as it is written in JSON (between the
// quotes) as fits into n bytes, cut between characters: neither within an
// escape nor within a pair of surrogates.
func cutWritten(s []byte, n int) []byte {
	if len(s) <= n {
		return s
	}
	end := 0
	for end < len(s) {
		size := writtenCharacter(s[end:])
		if end+size > n {
			break
		}
		end += size
	}
	return s[:end]
}

// writtenCharacter returns the length of the first character of s.
func writtenCharacter(s []byte) (size int) {
	if s[0] == '\\' {
		_, size = wirejson.Escape(s)
	} else {
		_, size = utf8.DecodeRune(s)
	}
	return size
}

// escape returns text as it is written between the quotes of a JSON string.
func escape(text []byte) []byte {
	quoted := wirejson.AppendString(make([]byte, 0, len(text)+len(text)/4), text)
	return quoted[1 : len(quoted)-1]
}

// writtenSize returns how long JSON text becomes inside a JSON string.
func writtenSize(s []byte) int {
	n := len(s)
	for _, c := range []byte("\"\\\n\r\t") {
		n += bytes.Count(s, []byte{c})
	}
	return n
}

func appendTextBlock(out, text []byte) []byte {
	out = wirejson.AppendString(append(out, `{"type":"text","text":`...), text)
	return append(out, '}')
}

func appendName(out, name []byte) []byte { return append(append(append(out, '"'), name...), `":`...) }

// head returns the first characters of a string as it is written.
func head(written []byte) []byte {
	return wirejson.Unescape(cutWritten(written, 64))
}

// looksLikeJSON reports whether text may be an object or an array.
func looksLikeJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// characters returns how many characters a string has, as it is written.
func characters(s []byte) (n int) {
	for {
		plain := bytes.IndexByte(s, '\\')
		if plain < 0 {
			return n + utf8.RuneCount(s)
		}
		n += utf8.RuneCount(s[:plain]) + 1
		_, size := wirejson.Escape(s[plain:])
		s = s[plain+size:]
	}
}

// jsonText returns the object or array that a string is, as it is written; nil
// when it is none.
func jsonText(written []byte) []byte {
	if !looksLikeJSON(head(written)) {
		return nil
	}
	return whole(wirejson.Unescape(written))
}

// boundary returns the start of the character that is at i.
func boundary(text []byte, i int) int {
	if i >= len(text) {
		return len(text)
	}
	for j := i; j >= 0 && i-j < utf8.UTFMax; j-- {
		if utf8.RuneStart(text[j]) {
			if _, size := utf8.DecodeRune(text[j:]); j+size > i {
				return j
			}
			break
		}
	}
	return i
}
