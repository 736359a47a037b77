package classify

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpproxy/internal/gate/policy"
)

// maxCommands and maxWords limit the commands and words of one text. A reviewer would not read more in an approval,
// either.
const maxCommands, maxWords = 20, 120

// tooMany is the verdict above that limit.
var tooMany = verdict{Operation: policy.Destructive, Word: fmt.Sprintf("more than %d commands or %d words", maxCommands, maxWords), Unread: true}

// hasTooManyCommands reports whether a text has too many separators of commands or words, outside of comments and
// here-documents. A quoted text, a variable and a redirection count as a word each, because parsing them takes as
// long. It is a byte scan: after a character that only looks like a quote it may count too few words, but the text is
// still parsed.
func hasTooManyCommands(text string) bool {
	commands, words, quoted := 0, 0, false
	for i := 0; i < len(text) && commands < maxCommands && words < maxWords; i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"':
			if quoted = !quoted; quoted {
				words++
			}
		case c == '(', c == '`', c == '[' && i > 0 && text[i-1] == '$':
			commands++
		case c == '$':
			words++
		case c == '<' && strings.HasPrefix(text[i:], "<<"):
			words++
			i += hereDocumentLength(text[i:])
		case quoted:
		case c == '\'':
			words++
			i += 1 + lengthBefore(text[i+1:], '\'')
		case c == '#' && (i == 0 || strings.IndexByte(" \t\n;|&(", text[i-1]) >= 0):
			i += lengthBefore(text[i+1:], '\n')
		case c == ' ', c == '\t':
			if i > 0 && !isBlank(text[i-1]) {
				words++
			}
		case c == '<', c == '>':
			words++
		case i > 0 && (text[i-1] == c || text[i-1] == '>'): // && and 2>&1
		case c == '\n', c == ';', c == '|', c == '&', c == '{' && i+1 < len(text) && isBlank(text[i+1]):
			commands++
		}
	}
	return commands >= maxCommands || words >= maxWords
}

// hasOddCharacter reports whether a text contains a character that ends a line or a word only in some shells and
// terminals, such as a lone carriage return or a non-ASCII space.
func hasOddCharacter(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; ' ' <= c && c < 0x7f || c == '\t' || c == '\n' {
			continue
		}
		c, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case c == '\r' && (i+1 == len(text) || text[i+1] != '\n' || i > 0 && text[i-1] == '\\'):
			return true
		case c < ' ' && c != '\r', c == 0x7f, unicode.IsSpace(c) && c != '\r', unicode.Is(unicode.Cf, c):
			return true
		}
		i += size - 1
	}
	return false
}

// lengthBefore returns the length of the text before a character.
func lengthBefore(text string, c byte) int {
	if n := strings.IndexByte(text, c); n >= 0 {
		return n
	}
	return len(text)
}

// hereDocumentLength returns the length of the here-document at the start of a text, or the length of the text if the
// end is missing.
func hereDocumentLength(text string) int {
	if strings.HasPrefix(text, "<<<") {
		return 2
	}
	first, _, _ := strings.Cut(text, "\n")
	name := strings.TrimLeft(first[2:], "- \t")
	if end := strings.IndexAny(name, " \t;|&<>()"); end >= 0 {
		name = name[:end]
	}
	name = "\n" + strings.Trim(name, "'\"\\") + "\n"
	if end := strings.Index(text, name); end >= 0 {
		return end + len(name) - 2 // at the end of its last line
	}
	return len(text)
}
