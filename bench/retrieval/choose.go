package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"mcpproxy/internal/catalog/search"
)

// rankingChooser evaluates rankings on every set. For each set it selects the ranking that is best for the mean of the
// other sets.
type rankingChooser struct {
	w          io.Writer
	sets       []*evaluationSet
	maxQueries int // approximate maximum number of requests of a set; 0 for all
}

// setGroup is a group of sets that share their tools and are left out together.
func setGroup(set string) string {
	if strings.HasPrefix(set, "livemcp_") {
		return "livemcp"
	}
	return set
}

// recallAndNDCG has recall@5 and nDCG@10.
type recallAndNDCG [2]float64

func (p recallAndNDCG) mean() float64 { return (p[0] + p[1]) / 2 }

// chooseFromFile reads rankings, one per line, as JSON with the differences from the ranking of the product.
func (c *rankingChooser) chooseFromFile(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	all := make([][]recallAndNDCG, len(lines)) // ranking → its figures on the sets
	for i, line := range lines {
		r := search.DefaultRanking()
		if err := json.Unmarshal([]byte(line), r); err != nil {
			return fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		var mean recallAndNDCG
		for _, s := range c.sets {
			f := s.evaluateRanking(r, c.maxQueries)
			all[i] = append(all[i], f)
			mean[0] += f[0] / float64(len(c.sets))
			mean[1] += f[1] / float64(len(c.sets))
		}
		fmt.Fprintf(c.w, "%.4f / %.4f  %s\n", mean[0], mean[1], line)
	}
	var mean recallAndNDCG
	for i, s := range c.sets {
		best := c.bestRankingWithout(setGroup(s.name), all)
		f := all[best][i]
		fmt.Fprintf(c.w, "%-18s %.4f / %.4f  chosen without it: %s\n", s.name, f[0], f[1], lines[best])
		mean[0] += f[0] / float64(len(c.sets))
		mean[1] += f[1] / float64(len(c.sets))
	}
	fmt.Fprintf(c.w, "%-18s %.4f / %.4f\n", "mean", mean[0], mean[1])
	return nil
}

// bestRankingWithout returns the ranking that is best for all sets but those of a group.
func (c *rankingChooser) bestRankingWithout(left string, all [][]recallAndNDCG) (best int) {
	most := 0.0
	for i, figures := range all {
		sum := 0.0
		for j, s := range c.sets {
			if setGroup(s.name) != left {
				sum += figures[j].mean()
			}
		}
		if sum > most {
			best, most = i, sum
		}
	}
	return best
}

// evaluateRanking returns the figures of a set with a ranking.
func (s *evaluationSet) evaluateRanking(r *search.RankingParameters, most int) (sum recallAndNDCG) {
	var parts []*search.ServerIndexPart
	var ids []string
	for _, server := range s.servers {
		parts = append(parts, r.NewServerIndexPart(server, s.lists[server]))
		for i := range s.lists[server] {
			ids = append(ids, s.ids[s.lists[server][i].ID])
		}
	}
	view := search.NewIndex(parts).View(nil)
	step := 1
	if most > 0 {
		step = max(1, len(s.queries)/most)
	}
	n := 0.0
	for i := 0; i < len(s.queries); i += step {
		q := &s.queries[i]
		hits, _ := view.Search(nil, q.Text, 10, nil)
		found := make([]string, len(hits))
		for i, h := range hits {
			found[i] = ids[h.Doc]
		}
		sum[0] += recallAt(q, found, 5)
		sum[1] += ndcgAt(q, found, 10)
		n++
	}
	return recallAndNDCG{sum[0] / n, sum[1] / n}
}
