package scan

import (
	"os"
	"path/filepath"
	"testing"

	"mcpproxy/bench/corpora"
	"mcpproxy/internal/catalog/tool"
)

func shared() string {
	if dir := os.Getenv("MCPPROXY_SHARED"); dir != "" {
		return dir
	}
	return "../../../../shared"
}

// realTools are tools that servers declare.
func realTools(tb testing.TB, most int) (tools []tool.Definition) {
	samples, err := corpora.ReadLines(filepath.Join(shared(), "retrieval", "scale", "tools.jsonl.gz"))
	if err != nil {
		tb.Skipf("the shared tools are missing, set MCPPROXY_SHARED: %v", err)
	}
	for _, s := range samples[:min(most, len(samples))] {
		tools = append(tools, s.Definition)
	}
	return tools
}

func BenchmarkDefinition(b *testing.B) {
	tools := realTools(b, 2000)
	size := 0
	for _, d := range tools {
		size += len(d.Raw)
	}
	ScanDefinition(tools[0])
	b.SetBytes(int64(size / len(tools)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ScanDefinition(tools[i%len(tools)])
	}
}
