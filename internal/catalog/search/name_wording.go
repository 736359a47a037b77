package search

import (
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// splitWords returns the words of a name or a query, without compounds of them.
func splitWords(text string) (words []string) {
	sp := splitter{plain: true, emit: func(word []byte) { words = append(words, string(word)) }}
	sp.splitText(wirejson.ClipText(text, maxText))
	return words
}

// wording identifies a name by its words: create_issue, createIssue and "creating issues" have the same stems, and
// "make a ticket" has the same meaning.
type wording struct{ stems, meaning string }

func newNameWording(name string) wording { return newWording(expandWords(splitWords(name)), toStem) }

// expandWords splits compounds and expands abbreviations.
func expandWords(words []string) []string {
	out := make([]string, 0, len(words))
	for _, word := range words {
		short := word
		if of, ok := singularAbbreviation(word); ok {
			short = of
		}
		if long, ok := shortForms()[short]; ok {
			out = append(out, long...)
		} else if pieces := splitCompound(word); pieces != nil {
			out = append(out, pieces...)
		} else {
			out = append(out, word)
		}
	}
	return out
}

// newWording returns the wording of words. root returns the stem of a word.
func newWording(words []string, root func(word string) string) wording {
	said := make([]string, 0, len(words))
	for _, word := range words {
		if !stopWords()[word] {
			said = append(said, root(word))
		}
	}
	if len(said) == 0 { // there are only stop words, such as what_is
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
