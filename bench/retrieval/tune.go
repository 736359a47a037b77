package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/search"
)

// tuner chooses the numbers of the ranking, for each set without that set.
type tuner struct {
	w       io.Writer
	sets    []*set
	most    int    // requests of a set that are looked at, about
	vectors string // the table of a set's own, learned without it; %s is the set
	tables  map[string]*search.Vectors
	mu      sync.Mutex
	known   map[string][][2]float64 // ranking → figures of the sets
}

// group is what is left out together: sets that share their tools.
func group(set string) string {
	if strings.HasPrefix(set, "livemcp_") {
		return "livemcp"
	}
	return set
}

// figures returns the figures of a ranking on every set.
func (t *tuner) figures(r *search.Ranking) [][2]float64 {
	key, _ := json.Marshal(r)
	if f, ok := t.known[string(key)]; ok {
		return f
	}
	out := make([][2]float64, len(t.sets))
	for i, s := range t.sets {
		r := *r
		if t.vectors != "" {
			r.Vectors = t.tables[group(s.name)]
		}
		out[i] = s.index(&r).score(max(1, len(s.queries)/t.most))
	}
	t.known[string(key)] = out
	return out
}

// mean is that of both figures over the sets that are not left out.
func (t *tuner) mean(r *search.Ranking, without string) (sum float64) {
	n := 0.0
	for i, f := range t.figures(r) {
		if group(t.sets[i].name) != without {
			sum += (f[0] + f[1]) / 2
			n++
		}
	}
	return sum / n
}

// numbers are the places of all numbers of a ranking.
func numbers(r *search.Ranking) (names []string, at []*float32) {
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Float32:
			names, at = append(names, v.Type().Field(i).Name), append(at, f.Addr().Interface().(*float32))
		case reflect.Array:
			for j := range f.Len() {
				names, at = append(names, fmt.Sprintf("%s[%d]", v.Type().Field(i).Name, j)), append(at, f.Index(j).Addr().Interface().(*float32))
			}
		}
	}
	return names, at
}

// step is one number multiplied.
type step struct {
	number int
	by     float32
}

func (s step) apply(r *search.Ranking) *search.Ranking {
	next := *r
	_, at := numbers(&next)
	*at[s.number] *= s.by
	return &next
}

// least is what a step has to gain to be taken: a twentieth of a point.
const least = 0.0005

// tune starts at the ranking of the product, tries every number a half more and a third less, and
// takes, the best first, what still gains beside what is taken.
func (t *tuner) tune(rounds int) {
	at := map[string]*search.Ranking{}
	groups := []string{""}
	for _, s := range t.sets {
		if !slices.Contains(groups, group(s.name)) {
			groups = append(groups, group(s.name))
		}
	}
	for _, g := range groups {
		at[g] = search.Default()
	}
	names, _ := numbers(search.Default())
	for range rounds {
		for _, g := range groups {
			here := at[g]
			base := t.mean(here, g)
			type gain struct {
				step
				by float64
			}
			var gains []gain
			for i := range names {
				for _, by := range [...]float32{1.5, 0.667} {
					s := step{i, by}
					if d := t.mean(s.apply(here), g) - base; d > least/2 {
						gains = append(gains, gain{s, d})
					}
				}
			}
			slices.SortFunc(gains, func(a, b gain) int { return cmp.Compare(b.by, a.by) })
			for _, s := range gains[:min(10, len(gains))] {
				next := s.apply(here)
				if m := t.mean(next, g); m > base+least {
					fmt.Fprintf(t.w, "without %-16s %s × %.2f: %+.4f\n", g, names[s.number], s.step.by, m-base)
					here, base = next, m
				}
			}
			at[g] = here
		}
		t.report(at)
	}
}

// report prints what each set has by the ranking that was chosen without it.
func (t *tuner) report(at map[string]*search.Ranking) {
	start := t.figures(search.Default())
	var mean, before [2]float64
	for i, s := range t.sets {
		f := t.figures(at[group(s.name)])[i]
		fmt.Fprintf(t.w, "%-18s %.4f / %.4f  at the start %.4f / %.4f\n", s.name, f[0], f[1], start[i][0], start[i][1])
		for k := range mean {
			mean[k] += f[k] / float64(len(t.sets))
			before[k] += start[i][k] / float64(len(t.sets))
		}
	}
	fmt.Fprintf(t.w, "%-18s %.4f / %.4f  at the start %.4f / %.4f\n", "mean", mean[0], mean[1], before[0], before[1])
	chosen, _ := json.Marshal(at[""])
	fmt.Fprintf(t.w, "with all: %.4f %s\n", t.mean(at[""], ""), chosen)
}

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
		if os.Getenv("SHOW") == x.name && recall(q, found, 5) < 1 {
			fmt.Println("Q:", q.Text, "\n   WANT", q.Relevant, "\n   GOT", found[:min(7, len(found))])
		}
		sum[0] += recall(q, found, 5)
		sum[1] += ndcg(q, found, 10)
		n++
	}
	return [2]float64{sum[0] / n, sum[1] / n}
}

// try prints the figures of variants of the ranking, a JSON a line.
func (t *tuner) try(variants []string) error {
	for _, v := range variants {
		r := search.Default()
		if err := json.Unmarshal([]byte(v), r); err != nil {
			return err
		}
		var mean [2]float64
		row := t.figures(r)
		line := ""
		for _, f := range row {
			mean[0] += f[0] / float64(len(t.sets))
			mean[1] += f[1] / float64(len(t.sets))
			line += fmt.Sprintf(" %.1f/%.1f", 100*f[0], 100*f[1])
		}
		fmt.Fprintf(t.w, "%.2f %.2f |%s  %s\n", 100*mean[0], 100*mean[1], line, v)
	}
	return nil
}

func (t *tuner) load() error {
	t.tables, t.known = map[string]*search.Vectors{}, map[string][][2]float64{}
	if t.vectors == "" {
		return nil
	}
	for _, s := range t.sets {
		g := group(s.name)
		table, err := os.ReadFile(strings.ReplaceAll(t.vectors, "%s", g))
		if err != nil {
			return err
		}
		if t.tables[g], err = search.ReadVectors(string(table)); err != nil {
			return err
		}
	}
	return nil
}
