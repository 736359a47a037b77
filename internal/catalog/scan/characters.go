package scan

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"

	"mcpproxy/internal/sectionfile"
)

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHexDigit(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

func isBinaryDigit(c byte) bool { return c == '0' || c == '1' }

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c >= utf8.RuneSelf
}

// isPrintableASCII reports whether text is printable ASCII.
func isPrintableASCII(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

func lowerASCIIInPlace(text []byte) {
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			text[i] = c + 'a' - 'A'
		}
	}
}

func rot13Letter(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z':
		return 'a' + (c-'a'+13)%26
	case 'A' <= c && c <= 'Z':
		return 'A' + (c-'A'+13)%26
	}
	return c
}

// keepAlphanumeric returns the letters and digits of a text.
func keepAlphanumeric(text string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && isWordByte(byte(r)) {
			return r
		}
		return -1
	}, text)
}

func isWordSeparator(c byte) bool { return c == '+' || c == '-' || c == '_' || c == '|' }

//go:embed confusables.txt
var confusablesText string

var confusables = sync.OnceValue(func() map[rune]rune {
	table := map[rune]rune{}
	for _, s := range sectionfile.Parse(confusablesText) {
		for _, line := range s.Lines {
			plain, others, _ := strings.Cut(line, " ")
			for _, r := range others {
				table[r], _ = utf8.DecodeRuneInString(plain)
			}
		}
	}
	return table
})

// latinLookAlike returns the Latin letter or sign that a character looks like, or 0.
func latinLookAlike(r rune) rune { return confusables()[r] }
