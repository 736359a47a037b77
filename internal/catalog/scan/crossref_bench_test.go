package scan

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
)

// crossRealTools are tools of real servers, each with its server.
func crossRealTools(tb testing.TB, most int) []tool.Definition {
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../../shared"
	}
	f, err := os.Open(filepath.Join(dir, "retrieval", "scale", "tools.jsonl.gz"))
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
		var row struct{ Server string }
		var members map[string]json.RawMessage
		if json.Unmarshal(lines.Bytes(), &row) != nil || json.Unmarshal(lines.Bytes(), &members) != nil {
			tb.Fatal(lines.Text())
		}
		delete(members, "id")
		delete(members, "server")
		raw, err := json.Marshal(members)
		if err != nil {
			tb.Fatal(err)
		}
		if d, err := tool.ParseDefinition(row.Server, raw); err == nil {
			tools = append(tools, d)
		}
	}
	return tools
}

// BenchmarkFindReferences searches definitions of real tools for instructions about other tools.
func BenchmarkFindReferences(b *testing.B) {
	tools := crossRealTools(b, 10_000)
	size := 0
	for _, d := range tools {
		size += len(d.Raw)
	}
	x := NewCrossRefIndex()
	b.SetBytes(int64(size / len(tools)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		x.NewScannedTool(&tools[i%len(tools)]).referencedNames()
	}
}

// BenchmarkManyNames scans definitions that consist of names only: the time per byte does not grow with their size.
func BenchmarkManyNames(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var text strings.Builder
			for k := range n {
				fmt.Fprintf(&text, "must call get_thing_%d ", k)
			}
			x, d := installed(), described(b, "evil", "helper", text.String())
			b.SetBytes(int64(len(d.Raw)))
			for b.Loop() {
				x.NewScannedTool(&d).CrossFindings()
			}
		})
	}
}
