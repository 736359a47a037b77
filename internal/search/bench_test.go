package search

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"mcpproxy/internal/tool"
)

const scale = 10_000

func scaleDefinitions(tb testing.TB) []tool.Definition {
	defs := definitions(tb, "scale/tools.jsonl.gz")
	var with []tool.Definition // a third of them have a schema; those first
	for _, d := range defs {
		if d.InputSchema != nil {
			with = append(with, d)
		}
	}
	for _, d := range defs {
		if d.InputSchema == nil {
			with = append(with, d)
		}
	}
	return with[:scale]
}

func analyzeAll(defs []tool.Definition) []Document {
	docs := make([]Document, len(defs))
	for i, d := range defs {
		docs[i] = Analyze(d)
	}
	return docs
}

func scaleQueries(tb testing.TB) (queries []string) {
	for _, set := range []string{"ref065", "metatool", "bfcl", "stabletoolbench"} {
		for i, q := range readQueries(tb, set) {
			if i%5 == 0 {
				queries = append(queries, q.Query)
			}
		}
	}
	return queries
}

func BenchmarkAnalyze10000(b *testing.B) {
	defs := scaleDefinitions(b)
	b.ReportAllocs()
	for b.Loop() {
		analyzeAll(defs)
	}
}

func BenchmarkBuild10000(b *testing.B) {
	docs := analyzeAll(scaleDefinitions(b))
	b.ReportAllocs()
	for b.Loop() {
		Build(docs)
	}
}

func BenchmarkSearch10000(b *testing.B) {
	ix := Build(analyzeAll(scaleDefinitions(b)))
	queries := scaleQueries(b)
	var times []time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		ix.Search(queries[i%len(queries)], 10, nil)
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
	b.ReportMetric(float64(times[len(times)-1].Microseconds()), "max-µs")
}

// BenchmarkMemory10000 reports what the documents and the index hold.
func BenchmarkMemory10000(b *testing.B) {
	defs := scaleDefinitions(b)
	for b.Loop() {
		base := heap()
		docs := analyzeAll(defs)
		analysed := heap()
		ix := Build(docs)
		built := heap()
		b.ReportMetric(float64(analysed-base)/(1<<20), "MiB-documents")
		b.ReportMetric(float64(built-analysed)/(1<<20), "MiB-index")
		runtime.KeepAlive(ix)
	}
	runtime.KeepAlive(defs)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
