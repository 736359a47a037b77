package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpproxy/internal/ops"
)

// escapeInvisible makes an external text fully visible for a user who decides about it. It writes invisible characters,
// and characters that reorder others, as code points such as <U+202E>.
func escapeInvisible(s string) string {
	if isPlainASCII(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, "<%02X>", s[i])
		case r == '\n' || r == '\t' || !isInvisibleOrMisleading(r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, "<U+%04X>", r)
		}
		i += size
	}
	return out.String()
}

// escapeInvisibleLine is like escapeInvisible, but returns one line.
func escapeInvisibleLine(s string) string {
	return strings.NewReplacer("\n", "<U+000A>", "\t", "<U+0009>").Replace(escapeInvisible(s))
}

// isInvisibleOrMisleading reports whether r is invisible, looks like a plain space, or changes how others are shown.
// Unlike isHiddenRune it includes joiners, because a user who decides must see them.
func isInvisibleOrMisleading(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) ||
		r != ' ' && unicode.Is(unicode.Zs, r) || r == '\u2800'
}

// shellQuoteWords quotes words for a shell, for commands that users copy and for command lines that users review.
func shellQuoteWords(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellQuoteWord(w)
	}
	return strings.Join(quoted, " ")
}

func shellQuoteWord(s string) string { return ops.ShellQuote(escapeInvisibleLine(s)) }
