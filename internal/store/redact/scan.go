package redact

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"mcpproxy/internal/mcp/wirejson"
)

// shortest is shorter than any string in which something could be found
// without a telling name before it.
const shortest = 8

// suspicious is the quick test in front of everything: whether a text, JSON or
// plain, could hold a credential. It looks at the bytes as they are, escapes
// and all, eight at a time, and stops at two things: at what joins a name and a
// value, to look at the name, and at a word long enough to be a token, to look
// at the places in it where one could begin.
func suspicious(b []byte) bool { return suspiciousAt(b, 0) }

// suspiciousAt is suspicious for what stands in a URL, which was decoded depth
// times.
func suspiciousAt(b []byte, depth int) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
		third = 0x80000080000080 // each third byte
	)
	decoded := 0      // escapes of URLs that end before here have been looked at
	covered := 0      // long words that end before here have been looked at
	last := uint64(0) // the byte before x
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		below := (x - ones*'+') &^ x & highs
		if below == 0 && i >= covered { // no byte below '+': all in one word
			var found bool
			if covered, found = longWord(b, i, depth); found {
				return true
			}
		}
		if below == third || below == third<<8 || below == third>>8 { // pairs with something between them
			pair, found := i+bits.TrailingZeros64(below)/8+1, false
			if b[pair-1] == '%' && pair > decoded {
				decoded, found = percent(b, pair-1, depth)
			}
			if found || dumped(b, pair, minToken/2) > 0 {
				return true
			}
		}
		// The high bit of each byte that is one of , - = : > \ (and of a few
		// others, which halt sorts out), and of the w in password.
		x &^= highs
		commas, colons := (x|ones*0x11)^ones*'=', (x|ones*4)^ones*'>'
		slashes, sw := x^ones*'\\', (x^ones*'w')|((x<<8|last)^ones*'s')
		last = x >> 56
		m := ((highs - commas) | (highs - colons) | (highs - slashes) | (highs - sw)) & highs
		for ; m != 0; m &= m - 1 {
			if j := i + bits.TrailingZeros64(m)/8; glance(b, j) && halt(b, j) {
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

// glance is the quick test before halt: it settles what is common in JSON, with
// the character itself and its neighbours.
func glance(b []byte, i int) bool {
	if i < 2 || i+1 >= len(b) {
		return true
	}
	switch before := b[i-1]; b[i] {
	case ',':
		return has(before, quoted|space) && (before != '"' || b[i-2] == '\\' || !inJSON(b))
	case '-':
		return b[i+1] == '-' || b[i+1] == 'u' || has(before, space|quoted) || b[i-2] == '\\'
	case '\\':
		return b[i+1] == 'u' || b[i+1] == 'x'
	case 'w':
		return before == 's' && (b[i+1] == 'o' || b[i+1] == 'd')
	case ':':
		return before != '"' || !has(b[i-2], lower) || mayBeCredential(b, i-1) || b[i+1] == '/' || b[i+1] == '\\'
	}
	return true
}

// halt reports whether the character i gives reason to look at the text closely.
func halt(b []byte, i int) bool {
	switch b[i] {
	case ':', '=', '>', ',':
		return joins(b, i)
	case '-':
		return i+2 < len(b) && ((b[i+1] == '-' || b[i+1] == 'u' && b[i+2] == ' ') && dashes(b, i) || mailchimpEnd(b, i) > 0 || afterFlag(b, i) > 0)
	case '\\':
		return i+5 < len(b) && (b[i+1] == 'u' && b[i+2] == '0' && b[i+3] == '0' && escapedLetter(b, i) || b[i+1] == 'x' && escapedBytes(b, i)-i >= 4*minToken)
	case 'w':
		return i > 0 && b[i-1] == 's' && toldRaw(b, runEnd(b, i, alnum))
	}
	return false
}

// longWord looks at the word that holds the eight bytes from i. It returns the
// end of the word, and whether something in it could be a credential.
func longWord(b []byte, i, depth int) (end int, found bool) {
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
	if begin > 1 && (b[begin-1] != '"' || b[begin-2] != ':') { // not the value of a member
		if b[begin-1] == ' ' && isScheme(b[:begin-1]) || has(b[begin-1], space|quoted) && (toldBefore(b, begin, end) || endsJoined(b, begin)) {
			return end, true
		}
	}
	covered := end
	if begin > 0 && b[begin-1] == '%' {
		if covered, found = percent(b, begin-1, depth); found {
			return end, true
		}
		covered = max(covered, end)
	}
	for p := begin; p+minToken <= end; {
		if has(b[p], alnum) {
			if startsToken(b, p) {
				return end, true
			}
			if n := pastEscape(b[:end], p); n > 0 && startsToken(b, p+n) {
				return end, true
			}
			from := p
			p = runEnd(b[:end], p, alnum)
			if p-from >= minEncoded && encodesText(b[from:p]) {
				return end, true
			}
			if p-from >= minHex {
				if _, to := hexText(b[from:p]); to > 0 {
					return end, true
				}
			}
			continue
		}
		p++
	}
	return covered, false
}

func startsToken(b []byte, p int) bool {
	if !mayBeToken(b, p) {
		return false
	}
	if end, _ := matchToken(b, p); end > 0 {
		return true
	}
	_, ok := joined(b, p)
	return ok
}

// isScheme reports whether text ends with a scheme of authorization.
func isScheme(text []byte) bool {
	n := len(text)
	return n >= 6 && hasFoldPrefix(text[n-6:], "bearer") || n >= 5 && hasFoldPrefix(text[n-5:], "basic")
}

// joins reports whether the character i joins a telling name and a value that may
// be secret, or begins a URL with a password.
func joins(b []byte, i int) bool {
	if b[i] == ':' && i+2 < len(b) && (b[i+1] == '/' || b[i+1] == '\\') && userinfoFollows(b, i+1) {
		return true
	}
	if i == 0 {
		return false
	}
	if b[i] == '=' && (b[i-1] == '=' || b[i-1] == '!') {
		if _, kind := comparedName(b, i); kind != "" {
			return true
		}
	}
	switch before := b[i-1]; {
	case b[i] == ',' && before != '\'' && before != '`' && (before != '"' || i >= 2 && b[i-2] != '\\' && inJSON(b)):
		return false // within text it counts after a quote, which JSON escapes
	case b[i] == '>' && !has(before, ident):
		return false
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
		case c == '.' && end == i && end > 1 && b[end-2] == ' ': // .=
		case end >= 6 && b[end-6] == '\\' && b[end-5] == 'u':
			end -= 5
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

// telling reports whether the name that ends at end, before the character i that
// joins it to its value, may make that value a secret.
func telling(b []byte, i, end int) bool {
	name, kind, how := classifyBefore(b, end)
	switch {
	case isValue(name):
		pair := nameEnd(b, end-len(name))
		for pair > 0 && b[pair-1] == ',' {
			pair = nameEnd(b, pair-1)
		}
		_, kind, how = classifyBefore(b, pair)
	case isType(name):
		_, kind, how = classifyBefore(b, nameEnd(b, end-len(name)))
	}
	member := b[i] == ':' && b[i-1] == '"' && (i < 2 || b[i-2] != '\\') && inJSON(b)
	if member {
		whole := memberName(b, i-1)
		if k, h := classify(whole); h > how { // "API Key"
			kind, how = k, h
		}
		if kind != "" && bytes.IndexByte(whole, '\\') >= 0 {
			how = strong // what an escape stands for may make it so
		}
	}
	if kind == "" || !member {
		return kind != ""
	}
	v := skipSpace(b, i+1)
	switch {
	case v+1 >= len(b) || b[v] != '"':
		return v < len(b) && b[v] == '['
	case how == weak:
		return stringEnd(b, v+1)-v > minToken
	}
	return b[v+1] != '"'
}

// classifyBefore classifies the name that ends at end, without the rest of an
// escape that looks like a part of it.
func classifyBefore(b []byte, end int) (name []byte, kind string, how strength) {
	name = identBefore(b, 0, end)
	kind, how = classify(name)
	if n := pastEscape(b[:end], end-len(name)); kind == "" && n > 0 && n < len(name) && !isValue(name) && !isType(name) {
		name = name[n:]
		kind, how = classify(name)
	}
	return name, kind, how
}

// memberName returns the name before the quote i, as far as it can matter.
func memberName(b []byte, i int) []byte {
	low := max(0, i-maxName)
	quote := low + bytes.LastIndexByte(b[low:i], '"')
	if quote > low && b[quote-1] == '\\' {
		return b[low:i] // part of the name
	}
	return b[quote+1 : i]
}

// userinfoFollows reports whether at i a host follows that has something before
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
	for end := min(len(b), i+longest); i+1 < end && !has(b[i], space|quoted) && (!isURLEnd(b[i]) || b[i] == '\\' && b[i+1] == 'u'); i++ {
		if b[i] == '@' {
			return true
		}
	}
	return i < len(b) && b[i] == '@'
}

// dashes reports whether a private key, a telling flag or curl's -u begins with
// the dash i.
func dashes(b []byte, i int) bool {
	if i > 0 && b[i-1] == '-' {
		return false
	}
	from := i
	i = runEnd(b, from, dash)
	switch dashes := i - from; {
	case dashes == 1:
		return bytes.Contains(b, []byte("curl"))
	case dashes == 2:
		end := runEnd(b[:min(len(b), i+maxName)], i, word)
		kind, _ := classify(b[i:end])
		return kind != "" || string(b[i:end]) == "user" && bytes.Contains(b, []byte("curl"))
	case dashes >= 5:
		return bytes.HasPrefix(b[i:], []byte("BEGIN "))
	}
	return false
}

// escapedLetter reports whether the escape \u00XX at i is that of a character that
// needs none, and so may hide a name, a token, or what joins a name and a value.
// An escaped > is common, and looked at more closely.
func escapedLetter(b []byte, i int) bool {
	r, n := wirejson.DecodeEscape(b[i:])
	switch {
	case n != 6:
		return false
	case r == '>':
		_, kind, _ := classifyBefore(b, i)
		return kind != ""
	}
	return r < 0x80 && (r == ':' || r == ',' || r == '%' || has(byte(r), ident|slash|equals))
}

// percent reports whether what stands around the escape of a URL at i hides
// something, and where that ends.
func percent(b []byte, i, depth int) (end int, found bool) {
	const deepest = 4
	if _, ok := percentByte(b, i); !ok {
		return i, false
	}
	var buffer [512]byte
	text, _, end := query(buffer[:0], b, max(0, i-4*maxName), i)
	return end, depth == deepest || suspiciousAt(text, depth+1)
}
