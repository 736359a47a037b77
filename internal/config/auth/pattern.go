package auth

// MatchesPattern reports whether a name matches a pattern, in which * matches any text
// and ? exactly one byte. There are no character classes, because tool names may contain
// brackets.
func MatchesPattern(pattern, name string) bool {
	// Two-pointer matching: on a mismatch, the last * matches one more byte.
	p, n, star, taken := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, taken = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			taken++
			p, n = star+1, taken
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
