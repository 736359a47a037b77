package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/volume"
)

// minimumFigures are R@5 and nDCG@10 on tools and requests from outside this project. Each figure is the goal, or the measured
// value where the ranking misses the goal. The ranking may change, but the figures may not fall below these.
var minimumFigures = map[string][2]float64{
	"ref065":          {0.86, 0.76},
	"metatool":        {0.68, 0.61},
	"bfcl":            {0.86, 0.78},
	"stabletoolbench": {0.75, 0.76},
	"livemcp_agentq":  {0.64, 0.56},
	"livemcp_tasks":   {0.46, 0.46},
	"sealtools":       {0.92, 0.935},
}

// largeSets are the sets that take five times as long as all others.
var largeSets = map[string]bool{"sealtools": true, "stabletoolbench": true}

func setsDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	dir = filepath.Join(dir, "retrieval")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the shared test data is not here: %v", err)
	}
	return dir
}

func TestFiguresHold(t *testing.T) {
	dir := setsDir(t)
	for name, floor := range minimumFigures {
		t.Run(name, func(t *testing.T) {
			if largeSets[name] && !volume.IsFull() {
				t.Skip("it takes five times as long as the others")
			}
			sets, err := readSets([]string{filepath.Join(dir, name)})
			if err != nil {
				t.Fatal(err)
			}
			s, r := sets[0], sets[0].measure()
			for i, m := range [2]int{2, 5} {
				e := estimateMean(s.metricColumn(m, func(q *labelledQuery) float64 { return r[q.ID][m] }))
				t.Logf("%s %.4f ± %.3f", metricNames[m], e.mean, e.half)
				if e.mean < floor[i] {
					t.Errorf("%s is %.4f, floor %.3f", metricNames[m], e.mean, floor[i])
				}
			}
		})
	}
}

func TestJudge(t *testing.T) {
	plain := &labelledQuery{Relevant: []string{"a", "b"}}
	graded := &labelledQuery{Relevant: []string{"a", "b"}, Grades: map[string]float64{"a": 2, "b": 1, "x": 0}}
	log3 := 1 / math.Log2(3)
	tests := []struct {
		name  string
		q     *labelledQuery
		found string
		want  queryMetrics
	}{
		{"nothing", plain, "", queryMetrics{}},
		{"in order", plain, "a b", queryMetrics{0.5, 1, 1, 1, 1, 1, 1}},
		{"one, second", plain, "x b", queryMetrics{0, 0.5, 0.5, 0.5, 0, log3 / (1 + log3), 0.5}},
		{"one, sixth", plain, "x x x x x a", queryMetrics{0, 0, 0, 0.5, 0, 1 / math.Log2(7) / (1 + log3), 1.0 / 6}},
		{"behind all", plain, strings.Repeat("x ", 10) + "a", queryMetrics{6: 1.0 / 11}},
		{"graded, exchanged", graded, "b a", queryMetrics{0.5, 1, 1, 1, 1, (1 + 2*log3) / (2 + log3), 1}},
	}
	for _, tt := range tests {
		got := computeMetrics(tt.q, strings.Fields(tt.found))
		for m := range metricNames {
			if math.Abs(got[m]-tt.want[m]) > 1e-12 {
				t.Errorf("%s: %s = %v, want %v", tt.name, metricNames[m], got[m], tt.want[m])
			}
		}
	}
}

func TestEstimate(t *testing.T) {
	e := estimateMean([]float64{0, 1, 0, 1})
	if e.mean != 0.5 || math.Abs(e.half-1.96*math.Sqrt(1.0/3/4)) > 1e-12 {
		t.Errorf("estimate %+v", e)
	}
}

// Two builds are compared query by query, through the file that the first one writes.
func TestCompare(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tools.jsonl", `{"id":"1","server":"fs","name":"read_file","description":"Read a file"}
{"id":"2","server":"git","name":"commit","description":"Record changes","inputSchema":{"type":"object"}}
`)
	write("queries.jsonl", `{"id":"q1","query":"read it from a file","relevant":["1"]}
{"id":"q2","query":"record what changed","relevant":["2"]}
`)
	before := filepath.Join(dir, "before.json")
	var out strings.Builder
	if err := run(&out, []string{dir}, before, "", false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "small                    2    1.0000 ±0.000") {
		t.Errorf("both tools are first, but the report is\n%s", out.String())
	}
	write("queries.jsonl", `{"id":"q1","query":"read it from a file","relevant":["1"]}
{"id":"q2","query":"record what changed","relevant":["1"]}
`)
	out.Reset()
	if err := run(&out, []string{dir}, "", before, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "small                    2   -0.5000 ±0.980") {
		t.Errorf("one of two is lost, but the comparison is\n%s", out.String())
	}
}

func TestErrorsNameTheMissingFile(t *testing.T) {
	if err := run(&strings.Builder{}, []string{t.TempDir()}, "", "", false); err == nil || !strings.Contains(err.Error(), "no queries.jsonl") {
		t.Errorf("an empty folder gave %v", err)
	}
	if err := run(&strings.Builder{}, []string{t.TempDir()}, "", "nowhere.json", false); err == nil {
		t.Error("a missing file to compare with is no error")
	}
}
