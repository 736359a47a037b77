package classify

import (
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"mcpproxy/internal/gate/policy"
)

// TestEverydayLines checks that at least 95 % of everyday reading commands are classified as reads.
func TestEverydayLines(t *testing.T) {
	text, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, reads := 0, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		all++
		if v := classifyShell(line); v.Operation == policy.Read {
			reads++
		} else {
			t.Logf("%s: %s (%s)", line, v.Operation, v.Word)
		}
	}
	t.Logf("%d of %d everyday lines are classified as reads (%.1f %%)", reads, all, 100*float64(reads)/float64(all))
	if all < 600 || reads*100 < all*95 {
		t.Errorf("%d of %d", reads, all)
	}
}

// TestGTFOBins checks that, of the command lines of GTFOBins, only those for reading a file are classified as reads.
func TestGTFOBins(t *testing.T) {
	type example struct{ Code string }
	judged, read, ofFiles, filesRead := 0, 0, 0, 0
	for _, path := range files(t, corpora(t, "GTFOBins+GTFOBins.github.io"), "") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var entry struct{ Functions map[string][]example }
		if err := yaml.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(string(text), "---\n"), "...\n")), &entry); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for function, examples := range entry.Functions {
			for _, e := range examples {
				v := classifyShell(e.Code)
				if function == "file-read" {
					ofFiles++
					if v.Operation == policy.Read {
						filesRead++
					}
					continue
				}
				if judged++; v.Operation == policy.Read {
					read++
					t.Errorf("%s %s: classified as a read: %s", path[strings.LastIndexByte(path, '/')+1:], function, e.Code)
				}
			}
		}
	}
	t.Logf("%d command lines, %d classified as reads; %d read a file, %d of these are classified as reads", judged, read, ofFiles, filesRead)
	if judged < 500 {
		t.Errorf("only %d command lines were found", judged)
	}
}
