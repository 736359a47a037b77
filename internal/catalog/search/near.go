package search

// nameSimilarity tells how far names say what a query asks for: each of its words by the word of
// the name that lies nearest, by how rare it is.
type nameSimilarity struct {
	view  *View
	asked []queryStem
	cache map[int32][]float32 // vector of a word in names → its likeness to each word of the query
}

// score returns the part of the query that the name of a tool says, or nearly so.
func (n *nameSimilarity) score(doc uint32) float32 {
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
				most = max(most, n.similarities(p.rows[st])[i])
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

// similarities returns how like each word of the query is to a word of a name.
func (n *nameSimilarity) similarities(row int32) []float32 {
	if likes, ok := n.cache[row]; ok {
		return likes
	}
	likes := make([]float32, len(n.asked))
	for i := range n.asked {
		if other := n.asked[i].row; other >= 0 {
			likes[i] = n.view.ix.ranking.Vectors.cosine(int(other), int(row))
		}
	}
	if n.cache == nil {
		n.cache = make(map[int32][]float32)
	}
	n.cache[row] = likes
	return likes
}
