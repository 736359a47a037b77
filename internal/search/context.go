package search

import "strings"

// tellsCircumstances says whether a sentence tells who asks and why, and asks
// for nothing: "I'm planning a trip to Rome." Its words count less.
func tellsCircumstances(sentence string) bool {
	sentence = strings.ToLower(strings.TrimSpace(sentence))
	for _, beginning := range wordFile().Of("circumstances").Lines {
		if strings.HasPrefix(sentence, beginning+" ") {
			for _, word := range strings.Fields(sentence) {
				if asking()[strings.Trim(word, ",;:\"'")] {
					return false
				}
			}
			return true
		}
	}
	return false
}
