package search

import (
	"strings"
)

// stopWordsOfTextLanguage returns the stop words of the query's language. It returns nil for English and for languages
// without a list.
func stopWordsOfTextLanguage(text string) (stops map[string]bool) {
	words := splitWords(text)
	most := 1
	for _, language := range foreignStopWords() {
		n := 0
		for _, w := range words {
			switch {
			case language[w] && !stopWords()[w]:
				n++
			case stopWords()[w] && !language[w]:
				n--
			}
		}
		if n > most {
			most, stops = n, language
		}
	}
	return stops
}

// cutClause cuts the text after the first sentence, or before the next request.
func cutClause(text string, list bool) (clause, rest string) {
	for i := 0; i+1 < len(text); i++ {
		switch text[i] {
		case '.', '?', '!', ';', '\n':
			if text[i+1] == ' ' || text[i+1] == '\n' {
				return text[:i], text[i+1:]
			}
		case ',', ' ':
			for _, then := range [...]string{", and ", ", then ", " and then ", " and also "} {
				if strings.HasPrefix(text[i:], then) {
					return text[:i], text[i+len(then):]
				}
			}
			if strings.Contains(text[:i], " ") {
				for _, mark := range [...]string{", ", " + ", " and ", " or "} {
					if rest, ok := strings.CutPrefix(text[i:], mark); ok && isRequestStart(mark, rest, list) {
						return text[:i], rest
					}
				}
			}
		}
	}
	return text, ""
}

// isRequestStart reports whether a new request begins after the mark: several words after a list separator, or a verb
// after another mark.
func isRequestStart(mark, text string, list bool) bool {
	word, rest, more := strings.Cut(text, " ")
	return list && more && rest != "" && (mark == ", " || mark == " + ") || verbs()[strings.ToLower(word)]
}

// isContextSentence reports whether a sentence only gives context and requests nothing, such as "I'm planning a trip to
// Rome." Its words have less weight.
func isContextSentence(sentence string) bool {
	sentence = strings.ToLower(strings.TrimSpace(sentence))
	for _, beginning := range wordFile().SectionByHead("circumstances").Lines {
		if strings.HasPrefix(sentence, beginning+" ") {
			for _, word := range strings.Fields(sentence) {
				if countQuestions()[strings.Trim(word, ",;:\"'")] {
					return false
				}
			}
			return true
		}
	}
	return false
}
