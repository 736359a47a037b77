package search

import (
	"strings"
	"sync"
)

// longForms has for the stems of what short forms are short for, with a blank between
// them, the short form.
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
		roots[i] = stem(word)
	}
	return strings.Join(roots, " ")
}

// maxLongFormWords is how many words a short form is short for, at most.
const maxLongFormWords = 4

// shortFormOf returns the short form of the last of the words.
func shortFormOf(words []string) (short string, ok bool) {
	for n := 2; n <= min(maxLongFormWords, len(words)); n++ {
		if short, ok = longForms()[joinStems(words[len(words)-n:])]; ok {
			return short, true
		}
	}
	return "", false
}
