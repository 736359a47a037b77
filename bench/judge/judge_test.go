package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpproxy/bench/corpora"
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/testutil/volume"
)

func corporaDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "security-corpora")); err != nil {
		t.Skip("the shared corpora are missing, set MCPPROXY_SHARED")
	}
	return dir
}

// TestSeeds checks that the texts of each seed have no brackets left, and that all their lists exist.
func TestSeeds(t *testing.T) {
	g, err := parseSeeds(seedText)
	if err != nil {
		t.Fatal(err)
	}
	attacks, r := 0, randomGenerator(3)
	for _, s := range g.seeds {
		if s.malicious {
			attacks++
		}
		for range 20 {
			text := g.drawText(s.text, &r)
			if strings.ContainsAny(text, "(){}|") || strings.TrimSpace(text) == "" {
				t.Errorf("%s: %q", s.text, text)
			}
		}
	}
	if attacks < 100 || len(g.seeds)-attacks < 40 {
		t.Errorf("%d seeds, %d attacks", len(g.seeds), attacks)
	}
	if _, err := parseSeeds("\tstands alone\n"); err == nil {
		t.Error("a seed without a head is taken")
	}
}

// TestModelIsReproducible checks that training produces the embedded model, byte for byte, that held-out attacks are
// found, and that held-out benign servers have no finding. A full run trains eight times.
func TestModelIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("it learns anew")
	}
	samples, err := corpora.ReadAll(corporaDir(t))
	if err != nil {
		t.Fatal(err)
	}
	learned, err := newTrainingData(filepath.Join("..", ".."), samples)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(learned.trainFinalModel().Encode(), scan.EmbeddedModel().Encode()) {
		t.Error("internal/catalog/scan/model.bin is not what is learned: go run ./bench/judge --out internal/catalog/scan/model.bin")
	}
	if !volume.IsFull() {
		return // the cross-validation depends only on the data and this program: nightly
	}
	recall, all := 0.0, countsByCorpus{}
	sets := learned.attackCorpora()
	for k, set := range sets {
		attacks, honest := learned.evaluateWithout(set, uint32(k), false)
		recall += float64(attacks.review) / float64(attacks.all) / float64(len(sets))
		all.merge(honest)
	}
	honest := all.total()
	if len(sets) != 4 || recall < .6 || honest.review*100 > honest.all || honest.block*2000 > honest.all {
		t.Errorf("sets %v: %.1f %% found; of %d honest ones %d reviewed, %d blocked", sets, 100*recall, honest.all, honest.review, honest.block)
	}
}

// TestFolds checks that all definitions of a server are in the same fold.
func TestFolds(t *testing.T) {
	a, b := corpora.Sample{ID: "1", Server: "s"}, corpora.Sample{ID: "2", Server: "s"}
	if a.FoldIndex(foldCount) != b.FoldIndex(foldCount) {
		t.Error("a server is in two folds")
	}
	var seen []uint32
	for _, name := range strings.Split("a b c d e f g h i j k l m n o p q r s t u v w x y z", " ") {
		s := corpora.Sample{Server: name}
		if f := s.FoldIndex(foldCount); !slices.Contains(seen, f) {
			seen = append(seen, f)
		}
	}
	if len(seen) != foldCount {
		t.Errorf("folds %v", seen)
	}
}
