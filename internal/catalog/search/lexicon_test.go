package search

import (
	"strconv"
	"sync"
	"testing"
)

// Words that take each other's place keep their stems, for whoever asks at the same time.
func TestLexicon(t *testing.T) {
	l := new(lexicon)
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for i := range 4 * len(l) {
				word := "listing" + strconv.Itoa(i)
				for _, w := range []string{word, "listings", "running"} {
					if got := wordOf(l, w); got.word != w || got.root != stem(w) {
						t.Errorf("%q is %+v", w, got)
					}
				}
			}
		})
	}
	asking.Wait()
	if a, b := wordOf(l, "creating"), wordOf(l, []byte("creating")); a != b {
		t.Error("a word that is known is made anew")
	}
}
