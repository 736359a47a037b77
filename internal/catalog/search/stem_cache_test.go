package search

import (
	"strconv"
	"sync"
	"testing"
)

// TestLexicon checks that words that replace each other in the cache get the right stems, also in concurrent calls.
func TestLexicon(t *testing.T) {
	l := new(stemCache)
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for i := range 4 * len(l) {
				word := "listing" + strconv.Itoa(i)
				for _, w := range []string{word, "listings", "running"} {
					if got := cachedStem(l, w); got.word != w || got.stem != toStem(w) {
						t.Errorf("%q: got %+v", w, got)
					}
				}
			}
		})
	}
	asking.Wait()
	if a, b := cachedStem(l, "creating"), cachedStem(l, []byte("creating")); a != b {
		t.Error("a cached word is created again")
	}
}
