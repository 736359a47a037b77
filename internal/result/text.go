package result

import (
	"bytes"
	"unicode/utf8"

	"mcpproxy/internal/rawjson"
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
		_, size = rawjson.Escape(s)
	} else {
		_, size = utf8.DecodeRune(s)
	}
	return size
}

// escape returns text as it is written between the quotes of a JSON string.
func escape(text []byte) []byte {
	quoted := rawjson.AppendString(make([]byte, 0, len(text)+len(text)/4), text)
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
	out = rawjson.AppendString(append(out, `{"type":"text","text":`...), text)
	return append(out, '}')
}

func appendName(out, name []byte) []byte { return append(append(append(out, '"'), name...), `":`...) }
