package result

import (
	"bytes"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// cutRawString returns as much of a raw JSON string as fits into n bytes. It cuts between characters, never within an
// escape or a surrogate pair.
func cutRawString(s []byte, n int) []byte {
	if len(s) <= n {
		return s
	}
	end := 0
	for end < len(s) {
		size := rawCharacterSize(s[end:])
		if end+size > n {
			break
		}
		end += size
	}
	return s[:end]
}

// rawCharacterSize returns the raw length of the first character.
func rawCharacterSize(s []byte) (size int) {
	if s[0] == '\\' {
		_, size = wirejson.DecodeEscape(s)
	} else {
		_, size = utf8.DecodeRune(s)
	}
	return size
}

// escapeText escapes text for a JSON string.
func escapeText(text []byte) []byte {
	quoted := wirejson.AppendString(make([]byte, 0, len(text)+len(text)/4), text)
	return quoted[1 : len(quoted)-1]
}

// escapedSize returns the size of JSON text inside a JSON string.
func escapedSize(s []byte) int {
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

func appendMemberName(out, name []byte) []byte {
	return append(append(append(out, '"'), name...), `":`...)
}

// headText returns the first characters of a raw string.
func headText(written []byte) []byte {
	return wirejson.Unescape(cutRawString(written, 64))
}

// looksLikeJSON reports whether text may be an object or an array.
func looksLikeJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// countCharacters counts the characters of a raw string.
func countCharacters(s []byte) (n int) {
	for {
		plain := bytes.IndexByte(s, '\\')
		if plain < 0 {
			return n + utf8.RuneCount(s)
		}
		n += utf8.RuneCount(s[:plain]) + 1
		_, size := wirejson.DecodeEscape(s[plain:])
		s = s[plain+size:]
	}
}

// jsonInRawString returns the raw object or array in a raw string, or nil.
func jsonInRawString(written []byte) []byte {
	if !looksLikeJSON(headText(written)) {
		return nil
	}
	return onlyValue(wirejson.Unescape(written))
}

// characterStart returns the start of the character at i.
func characterStart(text []byte, i int) int {
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
