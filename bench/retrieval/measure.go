package main

import (
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"

	"cmp"
	"math"
	"slices"
)

// metricNames are the names of the figures, in their order.
var metricNames = [...]string{"R@1", "R@3", "R@5", "R@10", "all@5", "nDCG@10", "MRR"}

// queryMetrics are the figures of one query.
type queryMetrics [len(metricNames)]float64

// resultsBySet are the figures of every query of every set.
type resultsBySet map[string]map[string]queryMetrics

// maxHits is the number of requested hits: more than any figure except MRR needs.
const maxHits = 100

// measure searches the catalog for every request, without a filter, like
// retrieve_tools.
func (s *evaluationSet) measure() map[string]queryMetrics {
	return s.measureWithHabits(func(int) *search.Habits { return nil })
}

// foldCount is the number of parts into which requests are split for learning from use.
const foldCount = 5

// measureWithLearnedHabits is like measure, but with learning from use. Each request is evaluated with
// data from the other four parts of the requests and their labels, never from itself.
func (s *evaluationSet) measureWithLearnedHabits() map[string]queryMetrics {
	tools := make(map[string]tool.ID, len(s.ids))
	for id, label := range s.ids {
		tools[label] = id
	}
	var habits [foldCount]*search.Habits
	for fold := range habits {
		var uses []search.ToolCallAfterQuery
		for i, q := range s.queries {
			if i%foldCount == fold {
				continue
			}
			for _, label := range q.Relevant {
				uses = append(uses, search.ToolCallAfterQuery{Query: q.Text, Tool: tools[label]})
			}
		}
		habits[fold] = search.LearnHabits(uses)
	}
	return s.measureWithHabits(func(i int) *search.Habits { return habits[i%foldCount] })
}

func (s *evaluationSet) measureWithHabits(habits func(query int) *search.Habits) map[string]queryMetrics {
	out := make(map[string]queryMetrics, len(s.queries))
	for i, q := range s.queries {
		hits, _ := s.catalog().Search(habits(i), q.Text, maxHits, nil)
		found := make([]string, len(hits))
		for i, h := range hits {
			found[i] = s.ids[h.Tool.ID]
		}
		out[q.ID] = computeMetrics(&q, found)
	}
	return out
}

// computeMetrics returns the figures of one result list.
func computeMetrics(q *labelledQuery, found []string) queryMetrics {
	all5 := 0.0
	if recallAt(q, found, 5) == 1 {
		all5 = 1
	}
	return queryMetrics{
		recallAt(q, found, 1), recallAt(q, found, 3), recallAt(q, found, 5), recallAt(q, found, 10),
		all5, ndcgAt(q, found, 10), reciprocalRank(q, found),
	}
}

// recallAt returns the share of the labeled tools that are among the first k hits.
func recallAt(q *labelledQuery, found []string, k int) float64 {
	n := 0
	for _, id := range found[:min(k, len(found))] {
		if slices.Contains(q.Relevant, id) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(q.Relevant)))
}

// ndcgAt returns the discounted gain of the first k hits, relative to the best possible one.
func ndcgAt(q *labelledQuery, found []string, k int) float64 {
	gains := make([]float64, len(q.Relevant))
	for i, id := range q.Relevant {
		gains[i] = q.gain(id)
	}
	slices.SortFunc(gains, func(a, b float64) int { return cmp.Compare(b, a) })
	ideal, sum := 0.0, 0.0
	for i, g := range gains[:min(k, len(gains))] {
		ideal += g / math.Log2(float64(i)+2)
	}
	for i, id := range found[:min(k, len(found))] {
		sum += q.gain(id) / math.Log2(float64(i)+2)
	}
	if ideal == 0 {
		return 0
	}
	return sum / ideal
}

// reciprocalRank returns 1 divided by the rank of the first labeled tool.
func reciprocalRank(q *labelledQuery, found []string) float64 {
	for i, id := range found {
		if slices.Contains(q.Relevant, id) {
			return 1 / float64(i+1)
		}
	}
	return 0
}

// meanWithInterval is a mean and the half-width of its 95 % interval.
type meanWithInterval struct{ mean, half float64 }

func estimateMean(values []float64) meanWithInterval {
	n := float64(len(values))
	if n == 0 {
		return meanWithInterval{}
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	mean, squares := sum/n, 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	if n < 2 {
		return meanWithInterval{mean: mean}
	}
	return meanWithInterval{mean, 1.96 * math.Sqrt(squares/(n-1)/n)}
}
