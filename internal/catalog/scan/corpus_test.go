package scan

import (
	"testing"

	"mcpproxy/bench/corpora"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/testutil/volume"
)

// TestCorpora keeps the measured rates: they must stay within these bounds. `bench scan` prints the figures.
func TestCorpora(t *testing.T) {
	if testing.Short() {
		t.Skip("many definitions")
	}
	samples, err := corpora.ReadAll(shared())
	if err != nil {
		t.Skipf("the shared corpora are missing, set MCPPROXY_SHARED: %v", err)
	}
	var malicious, benign []tool.Definition
	crawled := 0
	for _, s := range samples {
		switch {
		case s.Malicious:
			malicious = append(malicious, s.Definition)
		case s.Corpus != "scale":
			benign = append(benign, s.Definition)
		default:
			if crawled%3 == 0 { // bench scan takes all
				benign = append(benign, s.Definition)
			}
			crawled++
		}
	}
	if len(malicious) < 200 || len(benign) < 8000 {
		t.Fatalf("%d malicious, %d benign: a part of the corpora is missing", len(malicious), len(benign))
	}
	checkShare(t, "malicious", malicious, func(review, block float64) bool { return review >= 85 && block >= 60 })
	checkShare(t, "benign", benign, func(review, block float64) bool { return review <= .8 && block <= .05 })
}

func checkShare(t *testing.T, name string, definitions []tool.Definition, ok func(review, block float64) bool) {
	t.Helper()
	review, block := 0, 0
	step := volume.FullOrQuick(1, 3)
	looked := 0
	for i := 0; i < len(definitions); i += step {
		d := definitions[i]
		looked++
		r := ScanDefinition(d)
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
	percent := func(n int) float64 { return 100 * float64(n) / float64(looked) }
	t.Logf("%s: %d, review %.2f %%, block %.2f %%", name, looked, percent(review), percent(block))
	if !ok(percent(review), percent(block)) {
		t.Errorf("%s: review %.2f %%, block %.2f %%", name, percent(review), percent(block))
	}
}
