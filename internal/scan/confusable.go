package scan

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"

	"mcpproxy/internal/wordlist"
)

//go:embed confusables.txt
var confusablesText string

var confusables = sync.OnceValue(func() map[rune]rune {
	table := map[rune]rune{}
	for _, s := range wordlist.Read(confusablesText) {
		for _, line := range s.Lines {
			plain, others, _ := strings.Cut(line, " ")
			for _, r := range others {
				table[r], _ = utf8.DecodeRuneInString(plain)
			}
		}
	}
	return table
})

// confusable gives the Latin letter or plain sign that a character is taken
// for; 0 when it is none.
func confusable(r rune) rune { return confusables()[r] }
