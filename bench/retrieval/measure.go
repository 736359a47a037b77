package main

import (
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"

	"cmp"
	"math"
	"slices"
)

// metrics names the figures, in the order of figures.
var metrics = [...]string{"R@1", "R@3", "R@5", "R@10", "all@5", "nDCG@10", "MRR"}

// figures are those of one query.
type figures [len(metrics)]float64

// results are the figures of every query of every set.
type results map[string]map[string]figures

// deep is how many hits are asked for: more than any figure but MRR looks at.
const deep = 100

// measure puts every request to the catalogue, without any filter, as
// retrieve_tools does.
func (s *set) measure() map[string]figures {
	return s.measureUsed(func(int) *search.Habits { return nil })
}

// folds is into how many parts the requests are divided to learn from use.
const folds = 5

// measureLearned is measure with a prior from use. Each request is put to
// habits that were learned from the other four parts of the requests and their
// labels, so never from itself.
func (s *set) measureLearned() map[string]figures {
	tools := make(map[string]tool.ID, len(s.ids))
	for id, label := range s.ids {
		tools[label] = id
	}
	var habits [folds]*search.Habits
	for fold := range habits {
		var uses []search.QueryUse
		for i, q := range s.queries {
			if i%folds == fold {
				continue
			}
			for _, label := range q.Relevant {
				uses = append(uses, search.QueryUse{Query: q.Text, Tool: tools[label]})
			}
		}
		habits[fold] = search.LearnHabits(uses)
	}
	return s.measureUsed(func(i int) *search.Habits { return habits[i%folds] })
}

func (s *set) measureUsed(habits func(query int) *search.Habits) map[string]figures {
	out := make(map[string]figures, len(s.queries))
	for i, q := range s.queries {
		hits, _ := s.catalog().Search(habits(i), q.Text, deep, nil)
		found := make([]string, len(hits))
		for i, h := range hits {
			found[i] = s.ids[h.Tool.ID]
		}
		out[q.ID] = judge(&q, found)
	}
	return out
}

// judge returns the figures of one answer.
func judge(q *query, found []string) figures {
	all5 := 0.0
	if recall(q, found, 5) == 1 {
		all5 = 1
	}
	return figures{
		recall(q, found, 1), recall(q, found, 3), recall(q, found, 5), recall(q, found, 10),
		all5, ndcg(q, found, 10), reciprocal(q, found),
	}
}

// recall is the part of the labelled tools that is among the first k.
func recall(q *query, found []string, k int) float64 {
	n := 0
	for _, id := range found[:min(k, len(found))] {
		if slices.Contains(q.Relevant, id) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(q.Relevant)))
}

// ndcg is the discounted gain of the first k, as a part of the best possible.
func ndcg(q *query, found []string, k int) float64 {
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

// reciprocal is one by the place of the first labelled tool.
func reciprocal(q *query, found []string) float64 {
	for i, id := range found {
		if slices.Contains(q.Relevant, id) {
			return 1 / float64(i+1)
		}
	}
	return 0
}

// estimate is a mean and the half-width of its 95 % interval.
type estimate struct{ mean, half float64 }

func estimateOf(values []float64) estimate {
	n := float64(len(values))
	if n == 0 {
		return estimate{}
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
		return estimate{mean: mean}
	}
	return estimate{mean, 1.96 * math.Sqrt(squares/(n-1)/n)}
}
