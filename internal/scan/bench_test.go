package scan

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"mcpproxy/internal/tool"
)

func shared() string {
	if dir := os.Getenv("MCPPROXY_SHARED"); dir != "" {
		return dir
	}
	return "../../../shared"
}

// realTools are tools that servers declare.
func realTools(tb testing.TB, most int) []tool.Definition {
	f, err := os.Open(filepath.Join(shared(), "retrieval", "scale", "tools.jsonl.gz"))
	if err != nil {
		tb.Skipf("the shared tools are missing, set MCPPROXY_SHARED: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 16<<20)
	var tools []tool.Definition
	for lines.Scan() && len(tools) < most {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(lines.Bytes(), &members); err != nil {
			tb.Fatal(err)
		}
		delete(members, "id")
		delete(members, "server")
		raw, err := json.Marshal(members)
		if err != nil {
			tb.Fatal(err)
		}
		if d, err := tool.ParseDefinition("s", raw); err == nil {
			tools = append(tools, d)
		}
	}
	return tools
}

func BenchmarkDefinition(b *testing.B) {
	tools := realTools(b, 2000)
	size := 0
	for _, d := range tools {
		size += len(d.Raw)
	}
	Definition(tools[0])
	b.SetBytes(int64(size / len(tools)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		Definition(tools[i%len(tools)])
	}
}
