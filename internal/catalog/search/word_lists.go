package search

import (
	_ "embed"
	"math"
	"strings"
	"sync"

	"github.com/kljensen/snowball/english"

	"mcpproxy/internal/sectionfile"
)

//go:embed words.txt
var wordsText string

// The sections of words.txt.
var (
	wordFile         = sync.OnceValue(func() sectionfile.Sections { return sectionfile.Parse(wordsText) })
	stopWords        = sync.OnceValue(func() map[string]bool { return wordFile().SectionByHead("stop words").WordSet() })
	fillers          = sync.OnceValue(func() map[string]bool { return wordFile().SectionByHead("fillers").WordSet() })
	foreignStopWords = sync.OnceValue(func() (languages []map[string]bool) {
		for _, line := range wordFile().SectionByHead("other stop words").Lines {
			set := make(map[string]bool)
			for _, word := range strings.Fields(line) {
				set[word] = true
			}
			languages = append(languages, set)
		}
		return languages
	})
	verbs       = sync.OnceValue(func() map[string]bool { return wordFile().SectionByHead("verbs").WordSet() })
	actionStems = sync.OnceValue(func() map[string]bool {
		set := make(map[string]bool)
		for word := range verbs() {
			set[toStem(word)] = true
		}
		return set
	})
	particles      = sync.OnceValue(func() map[string]bool { return wordFile().SectionByHead("particles").WordSet() })
	compounds      = sync.OnceValue(func() map[string]bool { return wordFile().SectionByHead("compounds").WordSet() })
	countQuestions = sync.OnceValue(func() map[string]bool { return wordFile().SectionByHead("asking").WordSet() })
)

// wordCosts contains the cost of each common word in a segmentation: the logarithm of its rank, by Zipf's law.
var wordCosts = sync.OnceValue(func() map[string]float32 {
	list := wordFile().SectionByHead("common words").Words()
	costs := make(map[string]float32, len(list))
	for i, w := range list {
		costs[w] = float32(math.Log(float64(i+2) * math.Log(float64(len(list)))))
	}
	return costs
})

// stemFamilies maps the stems of a word family to the stem of its first word.
var stemFamilies = sync.OnceValue(func() map[string]string {
	out := make(map[string]string)
	for _, line := range wordFile().SectionByHead("families").Lines {
		family := strings.Fields(line)
		head := english.Stem(family[0], true)
		for _, word := range family[1:] {
			if root := english.Stem(word, true); root != head {
				out[root] = head
			}
		}
	}
	return out
})

// synonymStems contains the groups of synonyms, as stems.
var synonymStems = sync.OnceValue(func() (groups [][]string) {
	for _, line := range wordFile().SectionByHead("synonyms").Lines {
		group := strings.Fields(line)
		for i := range group {
			group[i] = toStem(group[i])
		}
		groups = append(groups, group)
	}
	return groups
})

// stemMeanings maps each stem of a group to the first stem of its first group.
var stemMeanings = sync.OnceValue(func() map[string]string {
	out := make(map[string]string)
	for _, group := range synonymStems() {
		for _, root := range group {
			if out[root] == "" {
				out[root] = group[0]
			}
		}
	}
	return out
})

// synonymsInVocabulary maps each stem to the other stems of its groups that are in the vocabulary.
func synonymsInVocabulary(stems map[string]uint32) map[string][]uint32 {
	out := make(map[string][]uint32)
	for _, group := range synonymStems() {
		for _, of := range group {
			for _, other := range group {
				if id, ok := stems[other]; ok && other != of {
					out[of] = append(out[of], id)
				}
			}
		}
	}
	return out
}

// toStem returns the stem of an English word. Other words stay unchanged.
func toStem(word string) string {
	if !isLowerASCIILetters(word) {
		if head, ok := stemFamilies()[word]; ok {
			return head
		}
		return word
	}
	if short, ok := singularAbbreviation(word); ok {
		word = short
	}
	return toPlainStem(word)
}

// toPlainStem returns the stem of an English word without expanding abbreviations.
func toPlainStem(word string) string {
	if !isLowerASCIILetters(word) {
		return word
	}
	root := english.Stem(word, true)
	if head, ok := stemFamilies()[root]; ok {
		return head
	}
	return root
}

// shortForms maps each abbreviation, such as "pr", to its words.
var shortForms = sync.OnceValue(func() map[string][]string {
	out := make(map[string][]string)
	for _, line := range wordFile().SectionByHead("short forms").Lines {
		words := strings.Fields(line)
		out[words[0]] = words[1:]
	}
	return out
})

// singularAbbreviation returns the abbreviation for a plural such as "prs", which the stemmer does not handle.
func singularAbbreviation(word string) (short string, ok bool) {
	short, ok = strings.CutSuffix(word, "s")
	if !ok || short == "" {
		return "", false
	}
	_, known := shortForms()[short]
	return short, known
}
