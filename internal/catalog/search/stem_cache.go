package search

import "sync/atomic"

// stemCache caches words with their stems, because stemming takes a microsecond and servers share most words. A new
// word replaces another one, so the size is bounded. It is safe for concurrent use.
type stemCache [1 << 13]atomic.Pointer[stemmedWord]

type stemmedWord struct{ word, stem string }

// cachedStem returns a word with its stem.
func cachedStem[T string | []byte](l *stemCache, word T) *stemmedWord {
	h := uint32(2166136261) // FNV-1a
	for i := range len(word) {
		h = (h ^ uint32(word[i])) * 16777619
	}
	at := &l[h%uint32(len(l))]
	if known := at.Load(); known != nil && known.word == string(word) {
		return known
	}
	found := &stemmedWord{word: string(word)}
	found.stem = toStem(found.word)
	at.Store(found)
	return found
}
