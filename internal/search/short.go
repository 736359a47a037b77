package search

import (
	"slices"
	"strings"
	"sync"
)

// shortForms has for every short form, such as "pr", the words that it is short for.
var shortForms = sync.OnceValue(func() map[string][]string {
	out := make(map[string][]string)
	for _, line := range wordFile().Of("short forms").Lines {
		words := strings.Fields(line)
		out[words[0]] = words[1:]
	}
	return out
})

// longForms has for the stems of what short forms are short for, with a blank between
// them, the short form.
var longForms = sync.OnceValue(func() map[string]string {
	out := make(map[string]string)
	for short, words := range shortForms() {
		if len(words) > 1 {
			out[stems(words)] = short
		}
	}
	return out
})

func stems(words []string) string {
	roots := make([]string, len(words))
	for i, word := range words {
		roots[i] = stem(word)
	}
	return strings.Join(roots, " ")
}

// maxLong is how many words a short form is short for, at most.
const maxLong = 4

// shortOf returns the short form of the last of the words.
func shortOf(words []string) (short string, ok bool) {
	for n := 2; n <= min(maxLong, len(words)); n++ {
		if short, ok = longForms()[stems(words[len(words)-n:])]; ok {
			return short, true
		}
	}
	return "", false
}

// singular returns the short form of which a word is the plural: no rule of English
// takes the s from "prs" or "vms".
func singular(word string) (short string, ok bool) {
	short, ok = strings.CutSuffix(word, "s")
	if !ok || short == "" {
		return "", false
	}
	_, known := shortForms()[short]
	return short, known
}

// plural reports whether a word is written as the plural of an acronym: PRs, VMs.
func plural(p []rune) bool {
	last := len(p) - 1
	return last >= 2 && p[last] == 's' && !slices.ContainsFunc(p[:last], func(r rune) bool { return !isUpper(r) })
}
