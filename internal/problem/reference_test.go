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
		t.Errorf("%s is not current; run go test ./internal/problem -update", path)
	}
}

// TestEveryCodeHasAMeaning checks that each meaning is a sentence that fits in a table cell.
func TestEveryCodeHasAMeaning(t *testing.T) {
	for code, m := range codes {
		if !strings.HasSuffix(m.meaning, ".") || strings.ContainsAny(m.meaning, "|\n") {
			t.Errorf("%s: the meaning %q is not a sentence that fits in a table cell", code, m.meaning)
		}
	}
}

// TestEveryExitCodeHasAMeaning checks that the list explains 0 and the exit codes of all error codes, and no others.
func TestEveryExitCodeHasAMeaning(t *testing.T) {
	said := map[int]bool{}
	for _, e := range exits {
		said[e.code] = true
	}
	used := map[int]bool{ExitDone: true}
	for code, m := range codes {
		used[m.exit] = true
		if !said[m.exit] {
			t.Errorf("%s has the exit code %d, which the list does not explain", code, m.exit)
		}
	}
	if len(said) != len(used) || len(said) != len(exits) {
		t.Errorf("the list explains %d exit codes in %d lines, but %d exit codes are used", len(said), len(exits), len(used))
	}
}
