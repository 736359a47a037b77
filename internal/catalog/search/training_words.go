package search

import (
	"math"

	"mcpproxy/internal/catalog/tool"
)

// TrainingWord is a stem of a definition, for training.
type TrainingWord struct {
	Stem                             string
	Weight                           float32 // its weight in the tool's vector
	InName, InSummary, InDescription bool
}

// TrainingWords returns the distinct stems of a definition as the ranking reads them, but with plurals of abbreviations
// ("PRs", "prs") as separate words. The ranking parameters were tuned with vectors for these words. So a new
// abbreviation in words.txt needs no new table of vectors.
func (r *RankingParameters) TrainingWords(d *tool.Definition) (words []TrainingWord) {
	a, at := newDefinitionAnalyzer(r.lexicon), make(map[string]int)
	a.split.plurals = true
	terms, lengths := a.extractTerms(d)
	for i := range terms {
		t := &terms[i]
		root := toPlainStem(a.words[t.word])
		n, ok := at[root]
		if !ok {
			n = len(words)
			at[root] = n
			words = append(words, TrainingWord{Stem: root})
		}
		w := &words[n]
		w.Weight += r.rawWeight(&t.count, lengths)
		w.InName = w.InName || t.count[inName]|t.count[inTitle] > 0
		w.InSummary = w.InSummary || t.count[inSummary] > 0
		w.InDescription = w.InDescription || t.count[inDescription] > 0
	}
	for i := range words {
		words[i].Weight = vectorWeight(r.saturate(words[i].Weight))
	}
	return words
}

// vectorWeight returns the weight of a word in its tool's vector.
func vectorWeight(weight float32) float32 { return float32(math.Sqrt(float64(weight))) }
