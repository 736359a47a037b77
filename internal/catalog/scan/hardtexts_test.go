package scan_test

import (
	"testing"

	"mcpproxy/bench/corpora"
	"mcpproxy/internal/catalog/scan"
)

// TestHardTexts: poisoned and honest definitions in many styles and languages, written by
// hand. develop.jsonl was in view when word_classes.go was written; heldout.jsonl was looked at once,
// and a few mistakes were corrected then. The floors and ceilings may not be broken.
func TestHardTexts(t *testing.T) {
	t.Parallel()
	for file, floor := range map[string]int{"develop": 24, "heldout": 20} {
		all, err := corpora.ReadLines("testdata/" + file + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		poisoned, honest := 0, 0
		for _, s := range all {
			r := scan.ScanDefinition(s.Definition)
			switch held := r.Verdict != scan.Clean; {
			case held && s.Malicious:
				poisoned++
			case held:
				honest++
				t.Logf("%s: honest %s is held: %+v", file, s.ID, r.Findings)
			case s.Malicious:
				t.Logf("%s: poisoned %s passes: %.300s", file, s.ID, s.Definition.Raw)
			}
		}
		t.Logf("%s: %d of 30 poisoned are held, %d of 30 honest", file, poisoned, honest)
		if len(all) != 60 || poisoned < floor || honest > 2 {
			t.Errorf("%s: %d of 30 poisoned are held, want %d; %d of 30 honest, at most 2", file, poisoned, floor, honest)
		}
	}
}
