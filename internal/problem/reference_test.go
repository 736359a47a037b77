package problem

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated reference")

func TestReferenceIsCurrent(t *testing.T) {
	const path = "../../docs/reference/errors.md"
	got := Reference()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not current: go test ./internal/problem -update", path)
	}
}

// TestEveryCodeHasAMeaning: a sentence that fits into a table cell.
func TestEveryCodeHasAMeaning(t *testing.T) {
	for code, m := range codes {
		if !strings.HasSuffix(m.meaning, ".") || strings.ContainsAny(m.meaning, "|\n") {
			t.Errorf("%s means %q", code, m.meaning)
		}
	}
}

// TestEveryExitCodeHasAMeaning: the exit codes of all error codes, and 0.
func TestEveryExitCodeHasAMeaning(t *testing.T) {
	said := map[int]bool{}
	for _, e := range exits {
		said[e.code] = true
	}
	used := map[int]bool{ExitDone: true}
	for code, m := range codes {
		used[m.exit] = true
		if !said[m.exit] {
			t.Errorf("%s exits with %d, which is not explained", code, m.exit)
		}
	}
	if len(said) != len(used) || len(said) != len(exits) {
		t.Errorf("%d exit codes are explained in %d lines, %d are used", len(said), len(exits), len(used))
	}
}
