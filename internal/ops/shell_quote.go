package ops

import "strings"

// ShellQuote quotes a word for a shell.
func ShellQuote(word string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/._-+:@%,=", r) || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
