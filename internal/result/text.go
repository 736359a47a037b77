package result

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// cutWritten gives as much of a string as it is written in JSON (between the
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

// writtenCharacter gives the length of the first character of s.
func writtenCharacter(s []byte) int {
	if s[0] != '\\' {
		_, size := utf8.DecodeRune(s)
		return size
	}
	if len(s) < 6 || s[1] != 'u' {
		return min(2, len(s))
	}
	if r := hex4(s[2:]); utf16.IsSurrogate(r) && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' &&
		utf16.DecodeRune(r, hex4(s[8:])) != utf8.RuneError {
		return 12
	}
	return 6
}

// hex4 gives the number of four hexadecimal digits, or -1.
func hex4(s []byte) rune {
	r := rune(0)
	for _, c := range s[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescape gives the content of a string as it is written.
func unescape(s []byte) []byte {
	first := bytes.IndexByte(s, '\\')
	if first < 0 {
		return s
	}
	out := make([]byte, len(s)) // no escape is shorter than what it means
	n := copy(out, s[:first])
	for i := first; i < len(s); n++ {
		switch {
		case s[i] != '\\':
			out[n] = s[i]
			i++
		case i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'): // by far the most frequent
			out[n] = s[i+1]
			i += 2
		default:
			size := writtenCharacter(s[i:])
			n = len(appendEscaped(out[:n], s[i:i+size])) - 1
			i += size
		}
	}
	return out[:n]
}

const escapes, escaped = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

// appendEscaped appends the character that an escape means.
func appendEscaped(out, s []byte) []byte {
	switch len(s) {
	case 12:
		return utf8.AppendRune(out, utf16.DecodeRune(hex4(s[2:]), hex4(s[8:])))
	case 6:
		return utf8.AppendRune(out, hex4(s[2:]))
	case 2:
		if i := bytes.IndexByte([]byte(escapes), s[1]); i >= 0 {
			return append(out, escaped[i])
		}
	}
	return append(out, s...)
}

// appendWritten appends s as it is written between the quotes of a JSON
// string. Bytes that are no UTF-8 become U+FFFD.
func appendWritten(out, s []byte) []byte {
	const hex = "0123456789abcdef"
	start := 0
	flush := func(i, size int, with ...byte) {
		out = append(append(out, s[start:i]...), with...)
		start = i + size
	}
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(s[i:])
			if r == utf8.RuneError && size == 1 {
				flush(i, 1, []byte("\uFFFD")...)
			}
			i += size
			continue
		}
		switch {
		case c == '"' || c == '\\':
			flush(i, 1, '\\', c)
		case c >= ' ':
		case bytes.IndexByte([]byte(escaped), c) >= 0:
			flush(i, 1, '\\', escapes[bytes.IndexByte([]byte(escaped), c)])
		default:
			flush(i, 1, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
	}
	return append(out, s[start:]...)
}

// writtenSize gives how long JSON text becomes inside a JSON string.
func writtenSize(s []byte) int {
	n := len(s)
	for _, c := range []byte("\"\\\n\r\t") {
		n += bytes.Count(s, []byte{c})
	}
	return n
}
