package scan_test

import (
	"os"
	"strings"
	"testing"

	"mcpproxy/bench/corpora"
	"mcpproxy/internal/catalog/scan"
)

// hardTexts are files of poisoned and honest definitions in many styles and languages, written by hand. The first half
// of each is poisoned. The floors and ceilings are what was reached. The classifier has learned from all of them, so they
// show that nothing was lost, and not what it finds in unseen texts.
var hardTexts = map[string]struct{ each, poisoned, honest int }{
	"develop": {30, 27, 0},   // in view when word_classes.go was written
	"heldout": {30, 25, 0},   // seen once, and a few mistakes were corrected then
	"rounds":  {210, 190, 2}, // a round is 30 and 30: each was seen after the rules for the earlier ones, and before the next
	"unseen":  {30, 28, 0},   // written last, and no mistake was corrected
}

// TestHardTexts checks how many poisoned and honest definitions are held.
func TestHardTexts(t *testing.T) {
	t.Parallel()
	for file, want := range hardTexts {
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
		t.Logf("%s: %d of %d poisoned are held, %d honest", file, poisoned, want.each, honest)
		if len(all) != 2*want.each || poisoned < want.poisoned || honest > want.honest {
			t.Errorf("%s: %d of %d poisoned are held, want %d; %d honest, at most %d", file, poisoned, want.each, want.poisoned, honest, want.honest)
		}
	}
}

// TestOrdersInLanguages checks single sentences: an order in 28 languages is found, an honest sentence is not.
func TestOrdersInLanguages(t *testing.T) {
	data, err := os.ReadFile("testdata/languages.txt")
	if err != nil {
		t.Fatal(err)
	}
	orders, missed := 0, 0
	for line := range strings.Lines(string(data)) {
		kind, text, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || kind == "#" {
			continue
		}
		held := scan.ScanText("x", "Returns data. "+text).Verdict != scan.Clean
		if kind == "-" && held {
			t.Errorf("found: %s", text)
		}
		if kind == "+" {
			orders++
			if !held {
				missed++
				t.Logf("not found: %s", text)
			}
		}
	}
	if orders < 140 || missed > 2 {
		t.Errorf("%d of %d orders are not found", missed, orders)
	}
}
