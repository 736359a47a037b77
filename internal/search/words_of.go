package search

import "mcpproxy/internal/tool"

// Word is a stem of a definition, for what learns from definitions.
type Word struct {
	Stem                       string
	Weight                     float32 // in the tool, however rare the word is
	InName, InSummary, InOther bool
}

// Words returns the distinct stems of a definition as the ranking reads it.
func (r *Ranking) Words(d *tool.Definition) []Word {
	b := newPartBuilder(r, d.ID.Server, 1)
	terms, lengths := b.analyzer.read(d)
	b.intern()
	at := make(map[uint32]int)
	var words []Word
	for i := range terms {
		t := &terms[i]
		st := b.part.stemOf[t.word]
		n, ok := at[st]
		if !ok {
			n = len(words)
			at[st] = n
			words = append(words, Word{Stem: b.part.stems[st]})
		}
		w := &words[n]
		w.Weight += r.weigh(&t.count, lengths)
		w.InName = w.InName || t.count[inName]|t.count[inTitle] > 0
		w.InSummary = w.InSummary || t.count[inSummary] > 0
		w.InOther = w.InOther || t.count[inDescription] > 0
	}
	for i := range words {
		words[i].Weight = r.saturated(words[i].Weight)
	}
	return words
}
