package scan

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"mcpproxy/internal/tool"
)

// TestCorpora keeps what was measured: bench scan prints the figures, these are
// the floors and ceilings that a change may not break.
func TestCorpora(t *testing.T) {
	var malicious, benign []tool.Definition
	files, _ := filepath.Glob(filepath.Join(shared(), "security-corpora", "*", "corpus.jsonl"))
	if len(files) == 0 {
		t.Skip("the shared corpora are missing, set MCPPROXY_SHARED")
	}
	for _, file := range files {
		bad, good := labelled(t, file)
		malicious, benign = append(malicious, bad...), append(benign, good...)
	}
	for k, d := range realTools(t, 1<<20) {
		if k%3 == 0 { // bench scan takes all
			benign = append(benign, d)
		}
	}
	benign = append(benign, listed(t)...)
	if len(malicious) < 200 || len(benign) < 8000 {
		t.Fatalf("%d malicious, %d benign: a part of the corpora is missing", len(malicious), len(benign))
	}
	checkShare(t, "malicious", malicious, func(review, block float64) bool { return review >= 85 && block >= 60 })
	checkShare(t, "benign", benign, func(review, block float64) bool { return review <= .8 && block <= .05 })
}

func checkShare(t *testing.T, name string, definitions []tool.Definition, ok func(review, block float64) bool) {
	t.Helper()
	review, block := 0, 0
	for _, d := range definitions {
		r := Definition(d)
		if r.Verdict != Clean {
			checkReport(t, r, d)
		}
		switch r.Verdict {
		case Incomplete:
			t.Errorf("%s is incomplete: %+v", d.ID.Tool, r.Findings)
		case Block:
			block++
			review++
		case Review:
			review++
		}
	}
	percent := func(n int) float64 { return 100 * float64(n) / float64(len(definitions)) }
	t.Logf("%s: %d, review %.2f %%, block %.2f %%", name, len(definitions), percent(review), percent(block))
	if !ok(percent(review), percent(block)) {
		t.Errorf("%s: review %.2f %%, block %.2f %%", name, percent(review), percent(block))
	}
}

func labelled(t *testing.T, file string) (malicious, benign []tool.Definition) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row struct{ Label, Surface string }
		var members map[string]json.RawMessage
		if json.Unmarshal(lines.Bytes(), &row) != nil || json.Unmarshal(lines.Bytes(), &members) != nil {
			t.Fatalf("%s: %s", file, lines.Bytes())
		}
		if row.Surface != "definition" || members["name"] == nil {
			continue
		}
		for _, of := range []string{"id", "label", "surface", "technique", "server", "peers", "derived", "hard_negative", "resembles"} {
			delete(members, of)
		}
		raw, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		d := define(t, string(raw))
		if row.Label == "malicious" {
			malicious = append(malicious, d)
		} else {
			benign = append(benign, d)
		}
	}
	return malicious, benign
}

// listed are the tools of real servers as they list them.
func listed(t *testing.T) []tool.Definition {
	var definitions []tool.Definition
	files, _ := filepath.Glob(filepath.Join(shared(), "real-servers", "*.tools.json"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(bytes.TrimSpace(data), &list); err != nil {
			t.Fatal(err)
		}
		for _, raw := range list.Tools {
			definitions = append(definitions, define(t, string(raw)))
		}
	}
	return definitions
}
