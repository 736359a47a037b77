package redact

import "bytes"

// charSet is a set of character classes.
type charSet uint16

const (
	digit  charSet = 1 << iota
	af             // a to f
	gz             // g to z
	afCap          // A to F
	gzCap          // G to Z
	under          // _
	dash           // -
	dot            // .
	slash          // + and /
	equals         // =
	space          // space, tab, newline, return
	quoted         // the three kinds of quotes
	closer         // characters that end an unquoted value
	atSign         // @

	lower    = af | gz
	upper    = afCap | gzCap
	alnum    = digit | lower | upper
	hexLower = digit | af
	hexAny   = digit | af | afCap
	word     = alnum | under | dash
	base64   = alnum | under | dash | slash | equals
	ident    = alnum | under | dash | dot
)

// charSets contains the classes of each byte.
var charSets = func() (t [256]charSet) {
	for c := range 256 {
		switch {
		case '0' <= c && c <= '9':
			t[c] = digit
		case 'a' <= c && c <= 'f':
			t[c] = af
		case 'g' <= c && c <= 'z':
			t[c] = gz
		case 'A' <= c && c <= 'F':
			t[c] = afCap
		case 'G' <= c && c <= 'Z':
			t[c] = gzCap
		}
	}
	for chars, class := range map[string]charSet{
		"_": under, "-": dash, ".": dot, "+/": slash, "=": equals,
		" \t\n\r": space | closer, "\"'`": quoted | closer, ",;<>()&|[]{}": closer, "@": atSign,
	} {
		for i := range len(chars) {
			t[chars[i]] |= class
		}
	}
	for c := range byte(' ') {
		t[c] |= closer
	}
	return t
}()

// inCharSet reports whether c is in one of the classes of s.
func inCharSet(c byte, s charSet) bool { return charSets[c]&s != 0 }

// runEnd returns the end of the run of characters of s that begins at i.
func runEnd(text []byte, i int, s charSet) int {
	for i < len(text) && charSets[text[i]]&s != 0 {
		i++
	}
	return i
}

// runStart returns the start of the run of characters of s that ends at end, but not before low.
func runStart(text []byte, low, end int, s charSet) int {
	for end > low && charSets[text[end-1]]&s != 0 {
		end--
	}
	return end
}

func skipSpace(text []byte, i int) int { return runEnd(text, i, space) }

// hasFoldPrefix reports whether text begins with prefix, ignoring case. prefix is in lower case.
func hasFoldPrefix(text []byte, prefix string) bool {
	if len(text) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		c := text[i]
		if inCharSet(c, upper) {
			c |= 0x20
		}
		if c != prefix[i] {
			return false
		}
	}
	return true
}

// jsonStringEnd returns the offset of the quote that closes the string whose content begins at from, or
// the end of the text.
func jsonStringEnd(raw []byte, from int) int {
	for i := min(from, len(raw)); ; i++ {
		n := bytes.IndexByte(raw[i:], '"')
		if n < 0 {
			return len(raw)
		}
		i += n
		slashes := i
		for slashes > from && raw[slashes-1] == '\\' {
			slashes--
		}
		if (i-slashes)%2 == 0 {
			return i
		}
	}
}

// isHostEnd reports whether c ends the host of a URL.
func isHostEnd(c byte) bool {
	return c == '/' || c == '?' || c == '#' || c == '<' || c == '>' || c == '\\' || c < ' '
}

// escapeRestLength returns the length of the rest of an escape sequence that looks like part of the word at p: the
// letter of \n, the digits of \u003e and %3D, the parameters of \x1b[31m.
func escapeRestLength(b []byte, p int) int {
	switch {
	case p == 0 || p >= len(b):
		return 0
	case b[p-1] == '\\' && b[p] == 'u':
		return 5
	case b[p-1] == '\\':
		return 1
	case b[p-1] == '%':
		return 2
	case b[p-1] == '[' || b[p-1] == ';':
		return runEnd(b, p, digit) + 1 - p
	}
	return 0
}

// skipEscapeRest returns from, or the offset after the rest of an escape sequence if the word at from begins with one.
func skipEscapeRest(b []byte, from, end int) int {
	if n := escapeRestLength(b[:end], from); n > 0 && from+n <= end {
		return from + n
	}
	return from
}
