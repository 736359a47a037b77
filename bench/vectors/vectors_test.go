package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"mcpproxy/internal/testutil/volume"
)

// learnedTable is the SHA-256 of the last trained table.
const learnedTable = "51568a405593d3dbe1a33aceac0d3ef8006d79b2a4584ea73cbd8063116600d6"

// TestTableUnchangedSinceReproduced checks that the table has not changed since TestTheTableIsReproducible passed.
func TestTableUnchangedSinceReproduced(t *testing.T) {
	table, err := os.ReadFile("../../internal/catalog/search/vectors.bin")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(table)); got != learnedTable {
		t.Errorf("its digest is %s: run MCPPROXY_TEST_VOLUME=full go test ./bench/vectors, and write the digest here", got)
	}
}

// TestTheTableIsReproducible checks that this program produces the embedded table from the shared texts, byte for byte.
func TestTheTableIsReproducible(t *testing.T) {
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	if _, err := os.Stat(filepath.Join(dir, trainingFiles[0])); err != nil {
		t.Skipf("the shared test data is not here: %v", err)
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors round sums another way")
	}
	if !volume.IsFull() {
		t.Skip("it learns for a quarter of a minute")
	}
	got, err := learnTable(dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../internal/catalog/search/vectors.bin")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("internal/catalog/search/vectors.bin is not what this program learns; run it again, and judge the ranking anew")
	}
}
