package search

import (
	"strings"
	"sync"
)

// measures has for a word behind "how" the names of what is asked for: "how large" asks
// for a size.
var measures = sync.OnceValue(func() map[string][]string {
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
	changing = sync.OnceValue(func() map[string]bool {
		set := wordFile().Of("changing").Set()
		for word := range wordFile().Of("changing").Set() {
			set[stem(word)] = true
		}
		return set
	})
	looking = sync.OnceValue(func() map[string]bool { return wordFile().Of("looking").Set() })
)

// changes reports whether the words of a tool's name say that it changes something.
func changes(name []string) (does bool) {
	for _, word := range name {
		if looking()[word] {
			return false
		}
		does = does || changing()[word]
	}
	return does
}
