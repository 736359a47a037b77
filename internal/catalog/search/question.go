package search

import (
	"strings"
	"sync"
)

// measureNouns has for a word behind "how" the names of what is asked for: "how large" asks
// for a size.
var measureNouns = sync.OnceValue(func() map[string][]string {
	out := make(map[string][]string)
	for _, line := range wordFile().Of("measures").Lines {
		words := strings.Fields(line)
		out[words[0]] = words[1:]
	}
	return out
})

// changing has the verbs of what changes something, and their stems; looking those of
// what only looks.
var (
	mutatingVerbs = sync.OnceValue(func() map[string]bool {
		set := wordFile().Of("changing").Set()
		for word := range wordFile().Of("changing").Set() {
			set[stem(word)] = true
		}
		return set
	})
	readingVerbs = sync.OnceValue(func() map[string]bool { return wordFile().Of("looking").Set() })
)

// isMutatingName reports whether the words of a tool's name say that it changes something.
func isMutatingName(name []string) (does bool) {
	for _, word := range name {
		if readingVerbs()[word] {
			return false
		}
		does = does || mutatingVerbs()[word]
	}
	return does
}
