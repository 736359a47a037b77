package search

import (
	"strings"
	"sync"
)

// measureNouns maps a word after "how" to the nouns that it asks for: "how large" asks for a size.
var measureNouns = sync.OnceValue(func() map[string][]string {
	out := make(map[string][]string)
	for _, line := range wordFile().SectionByHead("measures").Lines {
		words := strings.Fields(line)
		out[words[0]] = words[1:]
	}
	return out
})

// mutatingVerbs contains the verbs for changes, and their stems. readingVerbs contains the verbs for reading only.
var (
	mutatingVerbs = sync.OnceValue(func() map[string]bool {
		set := wordFile().SectionByHead("changing").WordSet()
		for word := range wordFile().SectionByHead("changing").WordSet() {
			set[toStem(word)] = true
		}
		return set
	})
	readingVerbs = sync.OnceValue(func() map[string]bool { return wordFile().SectionByHead("looking").WordSet() })
)

// isMutatingName reports whether a tool's name contains a verb for changes, and no verb for reading.
func isMutatingName(name []string) (does bool) {
	for _, word := range name {
		if readingVerbs()[word] {
			return false
		}
		does = does || mutatingVerbs()[word]
	}
	return does
}
