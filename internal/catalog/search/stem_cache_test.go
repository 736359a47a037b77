package search

import (
	"strconv"
	"sync"
	"testing"
)

// Words that take each other's place keep their stems, for whoever asks at the same time.
func TestLexicon(t *testing.T) {
	l := new(stemCache)
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for i := range 4 * len(l) {
				word := "listing" + strconv.Itoa(i)
				for _, w := range []string{word, "listings", "running"} {
					if got := cachedStem(l, w); got.word != w || got.stem != toStem(w) {
						t.Errorf("%q is %+v", w, got)
					}
				}
			}
		})
	}
	asking.Wait()
	if a, b := cachedStem(l, "creating"), cachedStem(l, []byte("creating")); a != b {
		t.Error("a word that is known is made anew")
	}
}
