package wirejson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendString appends text as a JSON string with the fewest escapes, as in ECMAScript and RFC 8785.
// Invalid UTF-8 becomes U+FFFD.
func AppendString[T ~string | ~[]byte](dst []byte, text T) []byte {
	return append(appendEscapedText(append(dst, '"'), []byte(text)), '"')
}

// appendEscapedText appends the content of a string without its quotes.
func appendEscapedText(dst, s []byte) []byte {
	start := 0
	for i := skipPlainBytes(s, 0); i < len(s); {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += n
		case c < ' ' || c == '"' || c == '\\':
			dst = appendEscapedChar(append(dst, s[start:i]...), rune(c))
			i++
			start = i
		case i-start < 8: // with frequent escapes, looking ahead is not faster
			i++
		default:
			i = skipPlainBytes(s, i+1)
		}
	}
	return append(dst, s[start:]...)
}

// skipPlainBytes returns the offset of the next byte that may need an escape.
func skipPlainBytes(s []byte, i int) int {
	for ; i+8 <= len(s); i += 8 {
		if m := markSpecialBytes(binary.LittleEndian.Uint64(s[i:]), high); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(s) && plain[s[i]] {
		i++
	}
	return i
}

// plain is the set of bytes that need no escape.
var plain = func() (t [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// AppendStringRune appends a rune of a JSON string. A lone surrogate is escaped.
func AppendStringRune(dst []byte, r rune) []byte {
	if r < ' ' || r == '"' || r == '\\' || utf16.IsSurrogate(r) {
		return appendEscapedChar(dst, r)
	}
	return utf8.AppendRune(dst, r)
}

func appendEscapedChar(dst []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	switch r {
	case '\b':
		r = 'b'
	case '\f':
		r = 'f'
	case '\n':
		r = 'n'
	case '\r':
		r = 'r'
	case '\t':
		r = 't'
	case '"', '\\':
	default:
		return append(dst, '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
	}
	return append(dst, '\\', byte(r))
}

// Unescape decodes the raw content of a string. It returns raw itself if nothing is escaped. A lone surrogate becomes
// U+FFFD.
func Unescape(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return appendUnescaped(make([]byte, 0, len(raw)), raw)
}

// appendUnescaped appends the decoded text. Escapes often occur close together, and most are of quotes. So it copies
// single bytes for a while, then blocks.
func appendUnescaped(dst, raw []byte) []byte {
	n := len(dst)
	dst = slices.Grow(dst, len(raw))[:n+len(raw)] // no escape is shorter than its character
	for last, i := 0, 0; i < len(raw); {
		switch {
		case raw[i] != '\\' && i-last < 16:
			dst[n] = raw[i]
			n++
			i++
		case raw[i] != '\\':
			k := bytes.IndexByte(raw[i:], '\\')
			if k < 0 {
				k = len(raw) - i
			}
			n += copy(dst[n:], raw[i:i+k])
			i += k
		case i+1 < len(raw) && (raw[i+1] == '"' || raw[i+1] == '\\'):
			dst[n] = raw[i+1]
			n++
			i += 2
			last = i
		default:
			r, size := DecodeEscape(raw[i:])
			n += utf8.EncodeRune(dst[n:], r)
			i += size
			last = i
		}
	}
	return dst[:n]
}

// DecodeEscape decodes the escape sequence at the start of raw, which has n bytes. A surrogate pair becomes one rune. A
// lone surrogate is returned as it is. An invalid escape becomes a backslash.
func DecodeEscape(raw []byte) (r rune, n int) {
	if len(raw) < 2 {
		return '\\', 1
	}
	switch c := raw[1]; c {
	case '"', '\\', '/':
		return rune(c), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		if r = decodeHex4(raw, 2); r < 0 {
			break
		}
		if utf16.IsSurrogate(r) && len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
			if pair := utf16.DecodeRune(r, decodeHex4(raw, 8)); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return r, 6
	}
	return '\\', 1
}

// ClipText returns the beginning of a text, with at most the given number of bytes and only whole characters.
func ClipText[T ~string | ~[]byte](text T, most int) T {
	if len(text) <= most {
		return text
	}
	for end := most; end >= max(0, most-utf8.UTFMax+1); end-- {
		if utf8.RuneStart(text[end]) {
			return text[:end]
		}
	}
	return text[:most] // invalid UTF-8
}

// AppendAsOneLine appends JSON as one line. Line breaks, which are white space between tokens, become spaces.
func AppendAsOneLine(dst, raw []byte) []byte {
	start := len(dst)
	dst = append(dst, raw...)
	for _, end := range [...]byte{'\n', '\r'} {
		for rest := dst[start:]; ; {
			i := bytes.IndexByte(rest, end)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
	return dst
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// EscapePointerToken escapes a name for a JSON pointer (RFC 6901).
func EscapePointerToken(name string) string { return pointerEscapes.Replace(name) }

// ReplaceLoneSurrogates returns a JSON text in which escapes of lone surrogates are replaced. They occur in text that
// was cut in the middle of a character, and some parsers reject them. If there are none, it returns data itself.
func ReplaceLoneSurrogates(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	half := func(at int) byte { // 'h' for the first half of a pair, 'l' for the second half, otherwise 0
		if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' || data[at+2]|0x20 != 'd' {
			return 0
		}
		switch c := data[at+3] | 0x20; {
		case data[at+3] == '8' || data[at+3] == '9' || c == 'a' || c == 'b':
			return 'h'
		case 'c' <= c && c <= 'f':
			return 'l'
		}
		return 0
	}
	out := data
	for i := 0; i+1 < len(data); {
		next := bytes.IndexByte(data[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		switch first := half(i); {
		case first == 0:
			i += 2
		case first == 'h' && half(i+6) == 'l':
			i += 12
		default:
			if &out[0] == &data[0] {
				out = bytes.Clone(data)
			}
			copy(out[i:], `\ufffd`)
			i += 6
		}
	}
	return out
}
