package main

import (
	"fmt"
	"io"
)

func header(w io.Writer, title string) {
	fmt.Fprintf(w, "%-18s %7s", title, "queries")
	for _, m := range metrics {
		fmt.Fprintf(w, " %15s", m)
	}
	fmt.Fprintln(w)
}

// report prints the figures of each set and their mean over the sets.
func report(w io.Writer, sets []*set, r results) {
	header(w, "set")
	var means figures
	for _, s := range sets {
		fmt.Fprintf(w, "%-18s %7d", s.name, len(s.queries))
		for m := range metrics {
			e := estimateOf(s.column(m, func(q *query) float64 { return r[s.name][q.ID][m] }))
			means[m] += e.mean / float64(len(sets))
			fmt.Fprintf(w, "    %.4f ±%.3f", e.mean, e.half)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%-18s %7s", "mean of sets", "")
	for m := range metrics {
		fmt.Fprintf(w, "    %.4f      ", means[m])
	}
	fmt.Fprintln(w)
}

// compare prints the mean difference of every figure, paired query by query:
// what both builds find equally hard does not count.
func compare(w io.Writer, sets []*set, before, now results) {
	fmt.Fprintln(w)
	header(w, "difference")
	for _, s := range sets {
		old := before[s.name]
		if old == nil {
			fmt.Fprintf(w, "%-18s is not in the file compared with\n", s.name)
			continue
		}
		fmt.Fprintf(w, "%-18s %7d", s.name, len(s.queries))
		for m := range metrics {
			e := estimateOf(s.column(m, func(q *query) float64 { return now[s.name][q.ID][m] - old[q.ID][m] }))
			fmt.Fprintf(w, "   %+.4f ±%.3f", e.mean, e.half)
		}
		fmt.Fprintln(w)
	}
}

func (s *set) column(m int, value func(*query) float64) []float64 {
	out := make([]float64, len(s.queries))
	for i := range s.queries {
		out[i] = value(&s.queries[i])
	}
	return out
}
