package main

import (
	"fmt"
	"io"
)

func printHeader(w io.Writer, title string) {
	fmt.Fprintf(w, "%-18s %7s", title, "queries")
	for _, m := range metricNames {
		fmt.Fprintf(w, " %15s", m)
	}
	fmt.Fprintln(w)
}

// printMetrics prints the figures of each set and their mean over the sets.
func printMetrics(w io.Writer, sets []*evaluationSet, r resultsBySet) {
	printHeader(w, "set")
	var means queryMetrics
	for _, s := range sets {
		fmt.Fprintf(w, "%-18s %7d", s.name, len(s.queries))
		for m := range metricNames {
			e := estimateMean(s.metricColumn(m, func(q *labelledQuery) float64 { return r[s.name][q.ID][m] }))
			means[m] += e.mean / float64(len(sets))
			fmt.Fprintf(w, "    %.4f ±%.3f", e.mean, e.half)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%-18s %7s", "mean of sets", "")
	for m := range metricNames {
		fmt.Fprintf(w, "    %.4f      ", means[m])
	}
	fmt.Fprintln(w)
}

// printDifferences prints the mean difference of every figure, paired by query,
// which removes the variance between queries.
func printDifferences(w io.Writer, sets []*evaluationSet, before, now resultsBySet) {
	fmt.Fprintln(w)
	printHeader(w, "difference")
	for _, s := range sets {
		old := before[s.name]
		if old == nil {
			fmt.Fprintf(w, "%-18s is not in the file compared with\n", s.name)
			continue
		}
		fmt.Fprintf(w, "%-18s %7d", s.name, len(s.queries))
		for m := range metricNames {
			e := estimateMean(s.metricColumn(m, func(q *labelledQuery) float64 { return now[s.name][q.ID][m] - old[q.ID][m] }))
			fmt.Fprintf(w, "   %+.4f ±%.3f", e.mean, e.half)
		}
		fmt.Fprintln(w)
	}
}

func (s *evaluationSet) metricColumn(m int, value func(*labelledQuery) float64) []float64 {
	out := make([]float64, len(s.queries))
	for i := range s.queries {
		out[i] = value(&s.queries[i])
	}
	return out
}
