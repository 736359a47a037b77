package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// The table that is embedded is what this program makes of the shared texts, to the byte.
func TestTheTableIsReproducible(t *testing.T) {
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	if _, err := os.Stat(filepath.Join(dir, learned[0])); err != nil {
		t.Skipf("the shared test data is not here: %v", err)
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors round sums another way")
	}
	if testing.Short() {
		t.Skip("it learns for a quarter of a minute")
	}
	got, err := learn(dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../internal/search/vectors.bin")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("internal/search/vectors.bin is not what this program learns; run it again, and judge the ranking anew")
	}
}
