package redact

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// shortest is shorter than any string in which something could be found
// without a telling name before it.
const shortest = 8

// suspicious is the quick test in front of everything: whether a text, JSON or
// plain, could hold a credential. It looks at the bytes as they are, escapes
// and all, eight at a time, and stops at two things: at what joins a name and a
// value, to look at the name, and at a word long enough to be a token, to look
// at the places in it where one could begin.
func suspicious(b []byte) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	covered := 0 // long words that end before here have been looked at
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if (x-ones*'+')&^x&highs == 0 && i >= covered { // no byte below '+': all in one word
			var found bool
			if covered, found = longWord(b, i); found {
				return true
			}
		}
		// The high bit of each byte that is one of , - : > = \ (and of a few
		// others, which halt sorts out).
		commas, colons := (x|ones)^ones*'-', (x|ones*4)^ones*'>'
		equals, slashes := x^ones*'=', x^ones*'\\'
		m := ((commas-ones)&^commas | (colons-ones)&^colons | (equals-ones)&^equals | (slashes-ones)&^slashes) & highs
		for ; m != 0; m &= m - 1 {
			if halt(b, i+bits.TrailingZeros64(m)/8) {
				return true
			}
		}
	}
	for ; i < len(b); i++ {
		if halt(b, i) {
			return true
		}
	}
	return false
}

// halt says whether the character i gives reason to look at the text closely.
func halt(b []byte, i int) bool {
	switch b[i] {
	case ':', '=', '>', ',':
		return joins(b, i)
	case '-':
		return i+2 < len(b) && (b[i+1] == '-' || b[i+1] == 'u' && b[i+2] == ' ') && dashes(b, i)
	case '\\':
		return i+5 < len(b) && b[i+1] == 'u' && b[i+2] == '0' && b[i+3] == '0' && escapedLetter(b, i)
	}
	return false
}

// longWord looks at the word that holds the eight bytes from i. It gives the
// end of the word, and whether something in it could be a credential.
func longWord(b []byte, i int) (end int, found bool) {
	begin := i
	for begin > 0 && b[begin-1] >= '+' {
		begin--
	}
	end = i + 8
	for end < len(b) && b[end] >= '+' {
		end++
	}
	if end-begin < minToken {
		return end, false
	}
	if begin > 0 && b[begin-1] == ' ' && isScheme(b[:begin-1]) {
		return end, true
	}
	for p := begin; p+minToken <= end; {
		if has(b[p], alnum) {
			if startsToken(b, p) || startsToken(b, p+pastEscape(b[:end], p)) {
				return end, true
			}
			p = runEnd(b[:end], p, alnum)
			continue
		}
		if p++; b[p-1] == '\\' && startsToken(b, p+1) { // as in \n
			return end, true
		}
	}
	return end, false
}

func startsToken(b []byte, p int) bool {
	if !mayBeToken(b, p) {
		return false
	}
	end, _ := matchToken(b, p)
	return end > 0
}

// pastEscape gives the length of the rest of an escape that looks like a part
// of the word at p: the digits of %3D, the parameters of \x1b[31m.
func pastEscape(b []byte, p int) int {
	switch {
	case p == 0:
		return 0
	case b[p-1] == '%':
		return 2
	case b[p-1] == '[' || b[p-1] == ';':
		return runEnd(b, p, digit) + 1 - p
	}
	return 0
}

// isScheme says whether text ends with a scheme of authorization.
func isScheme(text []byte) bool {
	n := len(text)
	return n >= 6 && hasFoldPrefix(text[n-6:], "bearer") || n >= 5 && hasFoldPrefix(text[n-5:], "basic")
}

// joins says whether the character i joins a telling name and a value that may
// be secret, or begins a URL with a password.
func joins(b []byte, i int) bool {
	if i == 0 {
		return false
	}
	before := b[i-1]
	switch b[i] {
	case ',': // within text only: after a quote that JSON would escape
		if before != '\'' && before != '`' && (before != '"' || i >= 2 && b[i-2] != '\\' && inJSON(b)) {
			return false
		}
	case '>':
		if !has(before, ident) {
			return false
		}
	case ':':
		if i+2 < len(b) && (b[i+1] == '/' || b[i+1] == '\\') && userinfoFollows(b, i+1) {
			return true
		}
	}
	end := nameEnd(b, i)
	if !mayBeCredential(b, end) {
		return false
	}
	return telling(b, i, end)
}

func inJSON(b []byte) bool { return b[0] == '{' || b[0] == '[' || b[0] == '"' }

// nameEnd goes back from i over what may stand between a name and what joins
// it to its value.
func nameEnd(b []byte, i int) int {
	low := max(0, i-maxName)
	brackets := false
	for end := i; end > low; end-- {
		c := b[end-1]
		switch {
		case c == ']' || c == '[':
			brackets = c == ']'
		case brackets && has(c, digit):
		case c == '.' && end == i && end > 1 && has(b[end-2], space): // .=
		case has(c, ident):
			if end < 2 || b[end-2] != '\\' || c != 'n' && c != 't' && c != 'r' {
				return end
			}
		case !has(c, space|quoted) && c != '\\' && !isOperator(c):
			return end
		}
	}
	return low
}

// telling says whether the name that ends at end, before the character i that
// joins it to its value, may make that value a secret.
func telling(b []byte, i, end int) bool {
	name := identBefore(b, max(0, end-maxName), end)
	begin := end - len(name)
	if begin > 0 && b[begin-1] == '\\' && len(name) > 1 { // the rest of \n
		name = name[1:]
	}
	kind, how := classify(name)
	switch {
	case string(name) == "value" || string(name) == "Value":
		kind, how = classify(pairedName(b, i))
	case isType(name):
		earlier, _ := nameBefore(b, i)
		kind, how = classify(earlier)
	}
	if kind == "" {
		return false
	}
	if b[i] == ':' && b[i-1] == '"' && (i < 2 || b[i-2] != '\\') && inJSON(b) { // a member
		v := skipSpace(b, i+1)
		if v >= len(b) || b[v] != '"' && b[v] != '[' {
			return false
		}
		if how == weak {
			return b[v] == '"' && stringEnd(b, v+1)-v > minToken
		}
		return b[v] == '[' || v+1 >= len(b) || b[v+1] != '"'
	}
	return true
}

// userinfoFollows says whether at i a host follows that has something before
// an @.
func userinfoFollows(b []byte, i int) bool {
	const longest = 1024
	slashes := 0
	for i < len(b) && (b[i] == '/' || b[i] == '\\') && slashes < 2 {
		if b[i] == '/' {
			slashes++
		}
		i++
	}
	if slashes < 2 {
		return false
	}
	for end := min(len(b), i+longest); i < end && !has(b[i], space|quoted) && !isURLEnd(b[i]); i++ {
		if b[i] == '@' {
			return true
		}
	}
	return false
}

// dashes says whether a private key, a telling flag or curl's -u begins with
// the dash i.
func dashes(b []byte, i int) bool {
	if i > 0 && b[i-1] == '-' {
		return false
	}
	from := i
	i = runEnd(b, from, dash)
	switch i - from {
	case 1:
		return bytes.Contains(b, []byte("curl"))
	case 2:
		end := runEnd(b[:min(len(b), i+maxName)], i, word)
		kind, _ := classify(b[i:end])
		return kind != "" || string(b[i:end]) == "user" && bytes.Contains(b, []byte("curl"))
	case 5:
		return bytes.HasPrefix(b[i:], []byte("BEGIN "))
	}
	return false
}

// escapedLetter says whether the escape \u00XX at i is that of a character that
// needs none, and so may hide a name, a token, or what joins a name and a value.
// An escaped > is common, and looked at more closely.
func escapedLetter(b []byte, i int) bool {
	r, ok := hex4(b[i:])
	switch {
	case !ok:
		return false
	case r == '>':
		kind, _ := classify(identBefore(b, max(0, i-maxName), i))
		return kind != ""
	}
	return r < 0x80 && (r == ':' || r == ',' || r == '%' || has(byte(r), ident|slash|equals))
}
