package auth

// MatchesPattern reports whether a name fits a pattern: a name, in which * stands
// for any characters (none, too) and ? for exactly one byte. There are no
// character classes, since tool names may hold brackets.
func MatchesPattern(pattern, name string) bool {
	// The classic two-pointer walk: on a mismatch the last * takes one more.
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
