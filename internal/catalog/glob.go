package catalog

import (
	"slices"

	"mcpproxy/internal/config"
)

// matches reports whether a tool name fits a pattern: a name, in which * stands
// for any characters (none, too) and ? for exactly one byte. There are no
// character classes, since tool names may hold brackets.
func matches(pattern, name string) bool {
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

// denied reports whether the operator's lists rule the tool out.
func denied(server config.Server, name string) bool {
	fits := func(pattern string) bool { return matches(pattern, name) }
	if len(server.EnabledTools) > 0 {
		return !slices.ContainsFunc(server.EnabledTools, fits)
	}
	return slices.ContainsFunc(server.DisabledTools, fits)
}
