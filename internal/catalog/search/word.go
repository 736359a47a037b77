package search

import (
	"math"

	"mcpproxy/internal/catalog/tool"
)

// Word is a stem of a definition, for training.
type Word struct {
	Stem                             string
	Weight                           float32 // its weight in the tool's vector
	InName, InSummary, InDescription bool
}

// Words returns the distinct stems of a definition as the ranking reads them.
func (r *Ranking) Words(d *tool.Definition) (words []Word) {
	a, at := newAnalyzer(r.lexicon), make(map[string]int)
	terms, lengths := a.read(d)
	for i := range terms {
		t := &terms[i]
		root := stemWord(r.lexicon, a.words[t.word]).root
		n, ok := at[root]
		if !ok {
			n = len(words)
			at[root] = n
			words = append(words, Word{Stem: root})
		}
		w := &words[n]
		w.Weight += r.rawWeight(&t.count, lengths)
		w.InName = w.InName || t.count[inName]|t.count[inTitle] > 0
		w.InSummary = w.InSummary || t.count[inSummary] > 0
		w.InDescription = w.InDescription || t.count[inDescription] > 0
	}
	for i := range words {
		words[i].Weight = vectorWeight(r.saturated(words[i].Weight))
	}
	return words
}

// vectorWeight returns the weight of a word in its tool's vector.
func vectorWeight(weight float32) float32 { return float32(math.Sqrt(float64(weight))) }
