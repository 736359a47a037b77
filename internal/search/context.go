package search

import "strings"

// circumstances are how sentences begin that tell who asks and why; asking
// are words by which they ask for something all the same.
var (
	circumstances = []string{"i'm ", "i am ", "i've ", "i have been ", "my ", "we ", "we're ", "our ", "as a ", "as an ", "let's say "}
	asking        = words(`need want like looking help how what which find show get give tell fetch provide please can could`)
)

// tellsCircumstances says whether a sentence tells who asks and why, and asks
// for nothing: "I'm planning a trip to Rome." Its words count less.
func tellsCircumstances(sentence string) bool {
	sentence = strings.ToLower(strings.TrimSpace(sentence))
	for _, beginning := range circumstances {
		if strings.HasPrefix(sentence, beginning) {
			for _, word := range strings.Fields(sentence) {
				if asking[strings.Trim(word, ",;:\"'")] {
					return false
				}
			}
			return true
		}
	}
	return false
}
