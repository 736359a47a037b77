package main

import (
	"encoding/json"
	"fmt"
	"io"

	"mcpproxy/internal/search"
	"mcpproxy/internal/tool"
)

// index is a set made searchable with a ranking of its own.
type index struct {
	*set
	view *search.View
	ids  []string // by number
}

func (s *set) index(r *search.Ranking) index {
	x := index{set: s}
	var parts []*search.Part
	for _, server := range s.servers {
		parts = append(parts, r.Part(server, s.lists[server]))
		for i := range s.lists[server] {
			x.ids = append(x.ids, s.ids[s.lists[server][i].ID])
		}
	}
	x.view = search.Assemble(parts).View(nil)
	return x
}

// score is recall among five and nDCG among ten, the means over every nth request.
func (x index) score(nth int) (sum [2]float64) {
	n := 0.0
	for i := range x.queries {
		if i%nth != 0 {
			continue
		}
		q := &x.queries[i]
		hits, _ := x.view.Search(nil, q.Text, 10, nil)
		found := make([]string, len(hits))
		for i, h := range hits {
			found[i] = x.ids[h.Doc]
		}
		sum[0] += recall(q, found, 5)
		sum[1] += ndcg(q, found, 10)
		n++
	}
	return [2]float64{sum[0] / n, sum[1] / n}
}

// try prints the figures of variants of the ranking, a JSON a line.
func try(w io.Writer, sets []*set, variants []string, most int) error {
	var base [][2]float64
	for _, v := range variants {
		r := search.Default()
		if testVectors != nil {
			r.Vectors = testVectors
		}
		if err := json.Unmarshal([]byte(v), r); err != nil {
			return err
		}
		var mean [2]float64
		var row [][2]float64
		for _, s := range sets {
			f := s.index(r).score(max(1, len(s.queries)/most))
			row = append(row, f)
			mean[0] += f[0] / float64(len(sets))
			mean[1] += f[1] / float64(len(sets))
		}
		if base == nil {
			base = row
		}
		fmt.Fprintf(w, "%.2f %.2f |", 100*mean[0], 100*mean[1])
		for i, f := range row {
			fmt.Fprintf(w, " %+.1f/%+.1f", 100*(f[0]-base[i][0]), 100*(f[1]-base[i][1]))
		}
		fmt.Fprintln(w, " ", v)
	}
	return nil
}

var _ tool.ID
