package search

import (
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// wordsOf returns the words of a name or a query, each letter once.
func wordsOf(text string) (words []string) {
	sp := splitter{plain: true, emit: func(word []byte) { words = append(words, string(word)) }}
	sp.splitText(wirejson.Clip(text, maxText))
	return words
}

// wording is a name in its words: create_issue, createIssue and "creating
// issues" have the same stems, and "make a ticket" has the same meaning.
type wording struct{ stems, meaning string }

func nameWording(name string) wording { return newWording(expandWords(wordsOf(name)), stem) }

// expandWords returns the words with those parted that are written as one, and short forms
// as what they are short for.
func expandWords(words []string) []string {
	out := make([]string, 0, len(words))
	for _, word := range words {
		short := word
		if of, ok := shortFormOfPlural(word); ok {
			short = of
		}
		if long, ok := shortForms()[short]; ok {
			out = append(out, long...)
		} else if pieces := segments(word); pieces != nil {
			out = append(out, pieces...)
		} else {
			out = append(out, word)
		}
	}
	return out
}

// newWording is the wording of words whose stems root gives.
func newWording(words []string, root func(word string) string) wording {
	said := make([]string, 0, len(words))
	for _, word := range words {
		if !stopWords()[word] {
			said = append(said, root(word))
		}
	}
	if len(said) == 0 { // a name of stop words alone, such as what_is
		said = append(said, words...)
	}
	w := wording{stems: strings.Join(said, " ")}
	for i, s := range said {
		if head, ok := stemMeanings()[s]; ok {
			said[i] = head
		}
	}
	w.meaning = strings.Join(said, " ")
	return w
}
