package search

// nameSimilarityScorer computes how well names match a query. Each query word is compared with the most similar word of
// the name, and weighted by its rarity.
type nameSimilarityScorer struct {
	view  *View
	asked []queryStem
	cache map[int32][]float32 // row of a name's word → its similarity to each query word
}

// scoreName returns the share of the query that matches a tool's name.
func (n *nameSimilarityScorer) scoreName(doc uint32) float32 {
	ix := n.view.ix
	part := ix.partOf[doc]
	p, stems := ix.parts[part], ix.stemsOf[part]
	said, all := float32(0), float32(0)
	for i := range n.asked {
		a := &n.asked[i]
		most := float32(0)
		for _, st := range p.nameStems[doc-ix.first[part]] {
			if a.known && stems[st] == a.stem {
				most = 1
				break
			}
			if a.row >= 0 && p.rows[st] >= 0 {
				most = max(most, n.wordSimilarities(p.rows[st])[i])
			}
		}
		said += a.rare * most
		all += a.rare
	}
	if all == 0 {
		return 0
	}
	return said / all
}

// wordSimilarities returns the similarity of a name's word to each query word.
func (n *nameSimilarityScorer) wordSimilarities(row int32) []float32 {
	if likes, ok := n.cache[row]; ok {
		return likes
	}
	likes := make([]float32, len(n.asked))
	for i := range n.asked {
		if other := n.asked[i].row; other >= 0 {
			likes[i] = n.view.ix.ranking.Vectors.rowSimilarity(int(other), int(row))
		}
	}
	if n.cache == nil {
		n.cache = make(map[int32][]float32)
	}
	n.cache[row] = likes
	return likes
}
