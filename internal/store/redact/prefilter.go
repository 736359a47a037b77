package redact

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"mcpproxy/internal/mcp/wirejson"
)

// minCredential is the minimum length of a string that can contain a credential without a name before it.
const minCredential = 8

// mayHoldCredential is the first quick test. It reports whether a text, JSON or plain, could contain a credential. It
// reads the raw bytes, with escapes, eight at a time. At a character that joins a name and a value, it checks the name.
// In a word that is long enough for a token, it checks the offsets at which a token could begin.
func mayHoldCredential(b []byte) bool { return mayHoldCredentialAtDepth(b, 0) }

// mayHoldCredentialAtDepth does the same for text in a URL that was decoded depth times.
func mayHoldCredentialAtDepth(b []byte, depth int) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
		third = 0x80000080000080 // every third byte
	)
	decoded := 0      // the escapes of URLs that end before this offset were examined
	covered := 0      // the long words that end before this offset were examined
	last := uint64(0) // the byte before x
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		below := (x - ones*'+') &^ x & highs
		if below == 0 && i >= covered { // no byte below '+': all are in one word
			var found bool
			if covered, found = checkLongWord(b, i, depth); found {
				return true
			}
		}
		if below == third || below == third<<8 || below == third>>8 { // pairs with a separator between them
			pair, found := i+bits.TrailingZeros64(below)/8+1, false
			if b[pair-1] == '%' && pair > decoded {
				decoded, found = checkPercentEscape(b, pair-1, depth)
			}
			if found || hexDumpEnd(b, pair, minToken/2) > 0 {
				return true
			}
		}
		// m contains the high bit of each byte that is one of , - = : > \ or the w in password, and of a few others
		// that isSuspiciousChar rejects.
		x &^= highs
		commas, colons := (x|ones*0x11)^ones*'=', (x|ones*4)^ones*'>'
		slashes, sw := x^ones*'\\', (x^ones*'w')|((x<<8|last)^ones*'s')
		last = x >> 56
		m := ((highs - commas) | (highs - colons) | (highs - slashes) | (highs - sw)) & highs
		for ; m != 0; m &= m - 1 {
			if j := i + bits.TrailingZeros64(m)/8; isCandidateChar(b, j) && isSuspiciousChar(b, j) {
				return true
			}
		}
	}
	for ; i < len(b); i++ {
		if isSuspiciousChar(b, i) {
			return true
		}
	}
	return false
}

// isCandidateChar is a quick test before isSuspiciousChar. It uses only the character and its neighbors, and rejects
// most characters of ordinary JSON.
func isCandidateChar(b []byte, i int) bool {
	if i < 2 || i+1 >= len(b) {
		return true
	}
	switch before := b[i-1]; b[i] {
	case ',':
		return inCharSet(before, quoted|space) && (before != '"' || b[i-2] == '\\' || !looksLikeJSON(b))
	case '-':
		return b[i+1] == '-' || b[i+1] == 'u' || inCharSet(before, space|quoted) || b[i-2] == '\\'
	case '\\':
		return b[i+1] == 'u' || b[i+1] == 'x'
	case 'w':
		return before == 's' && (b[i+1] == 'o' || b[i+1] == 'd')
	case ':':
		return before != '"' || !inCharSet(b[i-2], lower) || mayEndCredentialName(b, i-1) || b[i+1] == '/' || b[i+1] == '\\'
	}
	return true
}

// isSuspiciousChar reports whether the full scan must examine the text because of the character at i.
func isSuspiciousChar(b []byte, i int) bool {
	switch b[i] {
	case ':', '=', '>', ',':
		return isSecretJoiner(b, i)
	case '-':
		return i+2 < len(b) && ((b[i+1] == '-' || b[i+1] == 'u' && b[i+2] == ' ') && isCredentialDash(b, i) || mailchimpKeyEnd(b, i) > 0 || flagPasswordStart(b, i) > 0)
	case '\\':
		return i+5 < len(b) && (b[i+1] == 'u' && b[i+2] == '0' && b[i+3] == '0' && isHidingEscape(b, i) || b[i+1] == 'x' && hexEscapesEnd(b, i)-i >= 4*minToken)
	case 'w':
		return i > 0 && b[i-1] == 's' && isSecretInJSONSentence(b, runEnd(b, i, alnum))
	}
	return false
}

// checkLongWord checks the word around the eight bytes at i. It returns the end of the word, and whether
// it could contain a credential.
func checkLongWord(b []byte, i, depth int) (end int, found bool) {
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
		if b[begin-1] == ' ' && endsWithAuthScheme(b[:begin-1]) || inCharSet(b[begin-1], space|quoted) && (isSecretInSentence(b, begin, end) || isSplitTokenPiece(b, begin)) {
			return end, true
		}
	}
	covered := end
	if begin > 0 && b[begin-1] == '%' {
		if covered, found = checkPercentEscape(b, begin-1, depth); found {
			return end, true
		}
		covered = max(covered, end)
	}
	for p := begin; p+minToken <= end; {
		if inCharSet(b[p], alnum) {
			if isTokenStart(b, p) {
				return end, true
			}
			if n := escapeRestLength(b[:end], p); n > 0 && isTokenStart(b, p+n) {
				return end, true
			}
			from := p
			p = runEnd(b[:end], p, alnum)
			if p-from >= minBase64 && holdsBase64Text(b[from:p]) {
				return end, true
			}
			if p-from >= minHex {
				if _, to := findHexText(b[from:p]); to > 0 {
					return end, true
				}
			}
			continue
		}
		p++
	}
	return covered, false
}

func isTokenStart(b []byte, p int) bool {
	if !mayBeTokenAt(b, p) {
		return false
	}
	if end, _ := matchToken(b, p); end > 0 {
		return true
	}
	_, ok := findSplitToken(b, p)
	return ok
}

// endsWithAuthScheme reports whether text ends with an authorization scheme.
func endsWithAuthScheme(text []byte) bool {
	n := len(text)
	return n >= 6 && hasFoldPrefix(text[n-6:], "bearer") || n >= 5 && hasFoldPrefix(text[n-5:], "basic")
}

// isSecretJoiner reports whether the character at i joins a credential name and a value that may be secret, or begins a
// URL with a password.
func isSecretJoiner(b []byte, i int) bool {
	if b[i] == ':' && i+2 < len(b) && (b[i+1] == '/' || b[i+1] == '\\') && hasUserinfo(b, i+1) {
		return true
	}
	if i == 0 {
		return false
	}
	if b[i] == '=' && (b[i-1] == '=' || b[i-1] == '!') {
		if _, kind := credentialNameAfterComparison(b, i); kind != "" {
			return true
		}
	}
	switch before := b[i-1]; {
	case b[i] == ',' && before != '\'' && before != '`' && (before != '"' || i >= 2 && b[i-2] != '\\' && looksLikeJSON(b)):
		return false // in plain text, a comma matters only after a quote, and JSON escapes quotes
	case b[i] == '>' && !inCharSet(before, ident):
		return false
	}
	end := nameEndBefore(b, i)
	if !mayEndCredentialName(b, end) {
		return false
	}
	return isSecretName(b, i, end)
}

func looksLikeJSON(b []byte) bool { return b[0] == '{' || b[0] == '[' || b[0] == '"' }

// nameEndBefore returns the offset at which the name before i ends. It skips everything that may be between a name and the
// character that joins it to its value.
func nameEndBefore(b []byte, i int) int {
	low := max(0, i-maxName)
	brackets := false
	for end := i; end > low; end-- {
		c := b[end-1]
		switch {
		case c == ']' || c == '[':
			brackets = c == ']'
		case brackets && inCharSet(c, digit):
		case c == '.' && end == i && end > 1 && b[end-2] == ' ': // .=
		case end >= 6 && b[end-6] == '\\' && b[end-5] == 'u':
			end -= 5
		case inCharSet(c, ident):
			if end < 2 || b[end-2] != '\\' || c != 'n' && c != 't' && c != 'r' {
				return end
			}
		case !inCharSet(c, space|quoted) && c != '\\' && !isOperatorChar(c):
			return end
		}
	}
	return low
}

// isSecretName reports whether the name that ends at end may be that of a secret value after the character at i.
func isSecretName(b []byte, i, end int) bool {
	name, kind, how := classifyNameBefore(b, end)
	switch {
	case isCalledValue(name):
		pair := nameEndBefore(b, end-len(name))
		for pair > 0 && b[pair-1] == ',' {
			pair = nameEndBefore(b, pair-1)
		}
		_, kind, how = classifyNameBefore(b, pair)
	case isTypeName(name):
		_, kind, how = classifyNameBefore(b, nameEndBefore(b, end-len(name)))
	}
	member := b[i] == ':' && b[i-1] == '"' && (i < 2 || b[i-2] != '\\') && looksLikeJSON(b)
	if member {
		whole := memberNameBefore(b, i-1)
		if k, h := classifyName(whole); h > how { // "API Key"
			kind, how = k, h
		}
		if kind != "" && bytes.IndexByte(whole, '\\') >= 0 {
			how = strong // the decoded name may be strong
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
		return jsonStringEnd(b, v+1)-v > minToken
	}
	return b[v+1] != '"'
}

// classifyNameBefore classifies the name that ends at end. It ignores the rest of an escape sequence that looks like
// part of the name.
func classifyNameBefore(b []byte, end int) (name []byte, kind string, how credentialNameStrength) {
	name = identifierBefore(b, 0, end)
	kind, how = classifyName(name)
	if n := escapeRestLength(b[:end], end-len(name)); kind == "" && n > 0 && n < len(name) && !isCalledValue(name) && !isTypeName(name) {
		name = name[n:]
		kind, how = classifyName(name)
	}
	return name, kind, how
}

// memberNameBefore returns the member name before the quote at i, or the last part of a long name.
func memberNameBefore(b []byte, i int) []byte {
	low := max(0, i-maxName)
	quote := low + bytes.LastIndexByte(b[low:i], '"')
	if quote > low && b[quote-1] == '\\' {
		return b[low:i] // part of the name
	}
	return b[quote+1 : i]
}

// hasUserinfo reports whether the URL has userinfo, the part before an @, in front of the host. The authority begins at
// i.
func hasUserinfo(b []byte, i int) bool {
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
	for end := min(len(b), i+longest); i+1 < end && !inCharSet(b[i], space|quoted) && (!isHostEnd(b[i]) || b[i] == '\\' && b[i+1] == 'u'); i++ {
		if b[i] == '@' {
			return true
		}
	}
	return i < len(b) && b[i] == '@'
}

// isCredentialDash reports whether the dash at i begins a private key, a credential flag or curl's -u.
func isCredentialDash(b []byte, i int) bool {
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
		kind, _ := classifyName(b[i:end])
		return kind != "" || string(b[i:end]) == "user" && bytes.Contains(b, []byte("curl"))
	case dashes >= 5:
		return bytes.HasPrefix(b[i:], []byte("BEGIN "))
	}
	return false
}

// isHidingEscape reports whether the escape \u00XX at i encodes a character that needs no escape. Such an escape may
// hide a name, a token, or the character that joins a name and a value. An escaped > is common, so it counts only if
// the name before it matters.
func isHidingEscape(b []byte, i int) bool {
	r, n := wirejson.DecodeEscape(b[i:])
	switch {
	case n != 6:
		return false
	case r == '>':
		_, kind, _ := classifyNameBefore(b, i)
		return kind != ""
	}
	return r < 0x80 && (r == ':' || r == ',' || r == '%' || inCharSet(byte(r), ident|slash|equals))
}

// checkPercentEscape reports whether the part of a URL around the escape at i may hide a credential, and returns the
// end of that part.
func checkPercentEscape(b []byte, i, depth int) (end int, found bool) {
	const deepest = 4
	if _, ok := parsePercentEscape(b, i); !ok {
		return i, false
	}
	var buffer [512]byte
	text, _, end := decodeQueryAround(buffer[:0], b, max(0, i-4*maxName), i)
	return end, depth == deepest || mayHoldCredentialAtDepth(text, depth+1)
}
