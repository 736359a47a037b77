package doctor_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"mcpproxy/internal/ops/doctor"
)

var update = flag.Bool("update", false, "write the reference")

func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "reference", "doctor.md")
	if *update {
		if err := os.WriteFile(path, doctor.ReferenceMarkdown(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, doctor.ReferenceMarkdown()) {
		t.Errorf("%s is not what the table says (%v): go test ./internal/ops/doctor -update", path, err)
	}
}
