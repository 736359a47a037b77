package search

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"mcpproxy/internal/tool"
)

// floors are what the ranking reached on tools and questions that nobody here
// wrote, less a little room. The ranking may change; it may not get worse.
var floors = []struct {
	set          string
	recall, ndcg float64
}{
	{"ref065", 0.85, 0.72},
	{"metatool", 0.67, 0.60},
	{"bfcl", 0.86, 0.77},
	{"stabletoolbench", 0.73, 0.73},
}

func TestQuality(t *testing.T) {
	for _, f := range floors {
		t.Run(f.set, func(t *testing.T) {
			docs := corpus(t, f.set+"/tools.jsonl")
			ix := Build(docs)
			recall, ndcg := measure(ix, docs, readQueries(t, f.set))
			t.Logf("%-16s R@5 %.4f  nDCG@10 %.4f", f.set, recall, ndcg)
			if recall < f.recall || ndcg < f.ndcg {
				t.Errorf("R@5 %.3f (floor %.2f), nDCG@10 %.3f (floor %.2f)", recall, f.recall, ndcg, f.ndcg)
			}
		})
	}
}

type labelled struct {
	Query    string         `json:"query"`
	Relevant []string       `json:"relevant"`
	Grades   map[string]int `json:"grades"`
}

func (l labelled) gain(id string) float64 {
	if l.Grades != nil {
		return float64(l.Grades[id])
	}
	for _, r := range l.Relevant {
		if r == id {
			return 1
		}
	}
	return 0
}

// measure gives the mean recall in the first five and nDCG in the first ten.
func measure(ix *Index, docs []Document, queries []labelled) (recall, ndcg float64) {
	for _, q := range queries {
		hits, _ := ix.Search(q.Query, 10, nil)
		found, gain := 0.0, 0.0
		for i, h := range hits {
			g := q.gain(name(docs[h.Doc].ID))
			gain += g / math.Log2(float64(i)+2)
			for _, r := range q.Relevant {
				if i < 5 && r == name(docs[h.Doc].ID) {
					found++
				}
			}
		}
		recall += found / float64(len(q.Relevant))
		ndcg += gain / idealGain(q)
	}
	n := float64(len(queries))
	return recall / n, ndcg / n
}

func idealGain(q labelled) (sum float64) {
	counts := map[int]int{}
	for _, id := range q.Relevant {
		counts[int(q.gain(id))]++
	}
	rank := 0
	for grade := 3; grade > 0; grade-- {
		for range counts[grade] {
			if rank < 10 {
				sum += float64(grade) / math.Log2(float64(rank)+2)
			}
			rank++
		}
	}
	return sum
}

// name is the id of a tool in the sets: some of them have no servers.
func name(id tool.ID) string {
	if id.Server == "plugins" {
		return id.Tool
	}
	return id.String()
}

// corpus reads and analyses a file of tools.
func corpus(tb testing.TB, file string) []Document {
	defs := definitions(tb, file)
	docs := make([]Document, len(defs))
	for i, d := range defs {
		docs[i] = Analyze(d)
	}
	return docs
}

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

// readLines reads a file of the shared test data, which is not part of the
// project; without it the test is skipped.
func readLines(tb testing.TB, file string, line func([]byte) error) {
	tb.Helper()
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	f, err := os.Open(filepath.Join(dir, "retrieval", file))
	if err != nil {
		tb.Skipf("the shared test data is not here: %v", err)
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
