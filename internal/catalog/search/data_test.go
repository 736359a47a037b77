package search

import (
	"fmt"
	"strings"

	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"mcpproxy/internal/catalog/tool"
)

type labelled struct{ Query string }

func definitions(tb testing.TB, file string) (defs []tool.Definition) {
	readLines(tb, file, func(line []byte) error {
		var t struct {
			Server, Name, Title, Description string
			InputSchema                      json.RawMessage
		}
		if err := json.Unmarshal(line, &t); err != nil {
			return err
		}
		if string(t.InputSchema) == "null" {
			t.InputSchema = nil
		}
		defs = append(defs, tool.Definition{ID: tool.ID{Server: t.Server, Tool: t.Name},
			Title: t.Title, Description: t.Description, InputSchema: t.InputSchema})
		return nil
	})
	return defs
}

func readQueries(tb testing.TB, set string) (queries []labelled) {
	readLines(tb, set+"/queries.jsonl", func(line []byte) error {
		var q labelled
		err := json.Unmarshal(line, &q)
		queries = append(queries, q)
		return err
	})
	return queries
}

// readLines reads a file of the shared test data, which is not part of the project. It skips the test if the file is
// missing.
func readLines(tb testing.TB, file string, line func([]byte) error) {
	tb.Helper()
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../../shared"
	}
	f, err := os.Open(filepath.Join(dir, "retrieval", file))
	if err != nil {
		tb.Skipf("the shared test data is missing: %v", err)
	}
	defer f.Close()
	var r io.Reader = f
	if filepath.Ext(file) == ".gz" {
		if r, err = gzip.NewReader(f); err != nil {
			tb.Fatal(err)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if err := line(lines.Bytes()); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
}

func pointers(defs []tool.Definition) (all []*tool.Definition) {
	for i := range defs {
		all = append(all, &defs[i])
	}
	return all
}

// partsOf returns a part for each server, in the order of their first tools.
func partsOf(defs []tool.Definition) (parts []*ServerIndexPart) {
	var servers []string
	lists := map[string][]*tool.Definition{}
	for _, d := range pointers(defs) {
		if lists[d.ID.Server] == nil {
			servers = append(servers, d.ID.Server)
		}
		lists[d.ID.Server] = append(lists[d.ID.Server], d)
	}
	for _, s := range servers {
		parts = append(parts, NewServerIndexPart(s, lists[s]))
	}
	return parts
}

// oddQueries returns queries that are mistakes or malicious.
func oddQueries() map[string]string {
	return map[string]string{
		"empty": "", "one letter": "s", "one space": " ", "stop words": "what is it that you would do with all of these",
		"long": strings.Repeat("find the weather in paris and ", 400)[:10_000], "long word": strings.Repeat("a", 10_000),
		"many words": manyWords(2_000), "misspelt words": strings.Repeat("wheather forcast repositry isuess ", 300),
		"sentences": strings.Repeat("Create an issue. ", 600), "emoji": strings.Repeat("🔥🚀 ", 500) + "deploy 🚀",
		"mixed scripts": "создать issue 課題を作成 créer ein Ticket", "SQL": "SELECT * FROM tools WHERE name LIKE '%issue%'; DROP TABLE tools;--",
		"JSON": `{"query":"create issue","limit":10}`, "a path": "../../etc/passwd", "controls": "create\x00issue\x1b[31m",
		"not UTF-8": "create \xff\xfe issue", "run on": strings.Repeat("createissuegetlist", 50),
	}
}

func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "word%d list%c%c ", i, 'a'+i%26, 'a'+i/26%26)
	}
	return b.String()
}

// build returns a view of all tools.
func build(defs []tool.Definition) *View { return NewIndex(partsOf(defs)).View(nil) }

// names returns the ids of hits.
func (v *View) names(hits []Hit) []string {
	out := []string{}
	for _, h := range hits {
		out = append(out, v.ix.toolID(uint32(h.Doc)).String())
	}
	return out
}
