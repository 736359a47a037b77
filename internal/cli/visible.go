package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible is text from outside as a person has to see it who decides about it:
// nothing is left out. What could not be seen, or could move what is seen,
// stands as its code point, such as <U+202E>.
func visible(s string) string {
	if plain(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, "<%02X>", s[i])
		case r == '\n' || r == '\t' || !unseen(r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, "<U+%04X>", r)
		}
		i += size
	}
	return out.String()
}

// visibleLine is visible on one line.
func visibleLine(s string) string {
	return strings.NewReplacer("\n", "<U+000A>", "\t", "<U+0009>").Replace(visible(s))
}

// unseen reports whether r cannot be seen, or not told from a plain space, or whether it
// changes how others are shown. Unlike hidden it counts the joiners: a
// person who decides has to know of them.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) ||
		r != ' ' && unicode.Is(unicode.Zs, r) || r == '\u2800'
}

// quotedWords is words as a shell takes them, for commands that a person may
// copy and for a command line that has to be read exactly.
func quotedWords(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quotedWord(w)
	}
	return strings.Join(quoted, " ")
}

func quotedWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("@%+=:,./-_", r))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(visibleLine(s), "'", `'\''`) + "'"
}
