package search

import (
	"strings"
	"sync"
)

// longForms maps the space-separated stems of an expansion to its abbreviation.
var longForms = sync.OnceValue(func() map[string]string {
	out := make(map[string]string)
	for short, words := range shortForms() {
		if len(words) > 1 {
			out[joinStems(words)] = short
		}
	}
	return out
})

func joinStems(words []string) string {
	roots := make([]string, len(words))
	for i, word := range words {
		roots[i] = toStem(word)
	}
	return strings.Join(roots, " ")
}

// maxLongFormWords is the maximum number of words of an expansion.
const maxLongFormWords = 4

// findAbbreviation returns the abbreviation of the last words.
func findAbbreviation(words []string) (short string, ok bool) {
	for n := 2; n <= min(maxLongFormWords, len(words)); n++ {
		if short, ok = longForms()[joinStems(words[len(words)-n:])]; ok {
			return short, true
		}
	}
	return "", false
}
