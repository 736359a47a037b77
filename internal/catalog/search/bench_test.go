package search

import (
	"cmp"
	"fmt"

	"runtime"
	"slices"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/testutil/cputime"
)

// scaleTools returns n real tools on servers with a hundred tools each. It repeats the tools if there are fewer than n.
func scaleTools(tb testing.TB, n int) []tool.Definition {
	real := definitions(tb, "scale/tools.jsonl.gz")
	slices.SortStableFunc(real, func(a, b tool.Definition) int { // tools with a schema come first, about a third
		return cmp.Compare(len(b.InputSchema), 0) - cmp.Compare(len(a.InputSchema), 0)
	})
	out := make([]tool.Definition, n)
	for i := range out {
		d := real[i%len(real)]
		d.ID.Server = fmt.Sprintf("%s-%d", d.ID.Server, i/len(real))
		if i < len(real) {
			d.ID.Server = real[i].ID.Server
		}
		out[i] = d
	}
	return out
}

// hundreds returns parts with a hundred tools each.
func hundreds(defs []tool.Definition) (parts []*ServerIndexPart) {
	for i, list := range slices.Collect(slices.Chunk(defs, 100)) {
		parts = append(parts, NewServerIndexPart(fmt.Sprint("server ", i), pointers(list)))
	}
	return parts
}

func scaleQueries(tb testing.TB) (queries []string) {
	for _, set := range []string{"ref065", "metatool", "bfcl", "stabletoolbench", "livemcp_agentq", "livemcp_tasks", "sealtools"} {
		for i, q := range readQueries(tb, set) {
			if i%5 == 0 {
				queries = append(queries, q.Query)
			}
		}
	}
	return queries
}

var sizes = []int{10_000, 40_000}

// BenchmarkBuild builds a searchable view from definitions.
func BenchmarkBuild(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			defs := scaleTools(b, n)
			b.ReportAllocs()
			before := cputime.Process()
			for b.Loop() {
				NewIndex(hundreds(defs)).View(nil)
			}
			b.ReportMetric(float64((cputime.Process()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkChange rebuilds the part of a server that lists other tools, and combines it with the other parts.
func BenchmarkChange(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			defs := scaleTools(b, n)
			parts := hundreds(defs)
			b.ReportAllocs()
			for b.Loop() {
				parts[len(parts)/2] = NewServerIndexPart("changed", pointers(defs[:100]))
				NewIndex(parts).View(nil)
			}
		})
	}
}

// BenchmarkSwitch shows or hides one tool.
func BenchmarkSwitch(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ix := NewIndex(hundreds(scaleTools(b, n)))
			b.ReportAllocs()
			for b.Loop() {
				ix.View(func(doc int) bool { return doc != 4711 })
				ix.View(func(doc int) bool { return doc == 4711 })
			}
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			view := NewIndex(hundreds(scaleTools(b, n))).View(func(doc int) bool { return doc%50 != 0 })
			queries := scaleQueries(b)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var times []time.Duration
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				start := cputime.Thread()
				view.Search(nil, queries[i%len(queries)], 10, nil)
				times = append(times, cputime.Thread()-start)
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
			b.ReportMetric(float64(times[len(times)-1].Microseconds()), "max-µs")
		})
	}
}

// BenchmarkOdd searches with queries that no client should send.
func BenchmarkOdd(b *testing.B) {
	ix := build(scaleTools(b, 10_000))
	for name, query := range oddQueries() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ix.Search(nil, query, 10, nil)
			}
		})
	}
}

// BenchmarkMemory reports the memory of an index and its parts.
func BenchmarkMemory(b *testing.B) {
	defs := scaleTools(b, 10_000)
	for b.Loop() {
		before := heap()
		parts := hundreds(defs)
		analysed := heap()
		view := NewIndex(parts).View(nil)
		b.ReportMetric(float64(analysed-before)/(1<<20), "MiB-parts")
		b.ReportMetric(float64(heap()-analysed)/(1<<20), "MiB-index")
		runtime.KeepAlive(view)
	}
	runtime.KeepAlive(defs)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
