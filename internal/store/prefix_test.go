package store

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// newManyWords returns an index of words that share prefixes in many ways: numbers, words that begin with other words,
// and letters of several bytes.
func newManyWords() *segmentWords {
	rng := rand.New(rand.NewPCG(1, 2))
	x := &segmentWords{words: map[string]postingList{}}
	syllables := []string{"a", "b", "no", "number", "-", "7", "77", "日", "é", "ö", strings.Repeat("x", 20)}
	for at := range chunkSize {
		for range 4 {
			w := ""
			for range 1 + rng.IntN(4) {
				w += syllables[rng.IntN(len(syllables))]
			}
			x.addPosting([]byte(w), uint16(at))
		}
		x.addPosting([]byte("everywhere"), uint16(at))
		x.addPosting(fmt.Appendf(nil, "number-%d", 7_000_000+at), uint16(at))
	}
	return x
}

// TestPrefixesAgreeWithAScan compares prefix searches with a scan of all words, for every prefix of many words and for
// some prefixes that no word has.
func TestPrefixesAgreeWithAScan(t *testing.T) {
	t.Parallel()
	x := newManyWords()
	prefixes := map[string]bool{"0": true, "z": true, "numbers": true, "é7z": true, "\u00ff": true}
	for n, w := range slices.Sorted(maps.Keys(x.words)) {
		for i := 1; i <= len(w) && n%7 == 0; i++ {
			prefixes[w[:i]] = true
		}
	}
	for name, pages := range map[string][]textIndexPage{"with prefixes": x.encodePages(), "of an older version": pagesWithoutPrefixes(x)} {
		most := 0
		for prefix := range prefixes {
			for _, want := range []searchTerm{{prefix, true}, {prefix, false}} {
				var scan bitmap
				for w, p := range x.words {
					if want.matches([]byte(w)) {
						for _, at := range p {
							scan[at/64] |= 1 << (at % 64)
						}
					}
				}
				got, read := lookUpTerm(t, pages, want)
				if got != scan {
					t.Errorf("%s: the search for %+v found %d records, want %d", name, want, got.countFrom(0), scan.countFrom(0))
				}
				most = max(most, read)
			}
		}
		if name == "with prefixes" && most > 2 {
			t.Errorf("a search reads %d of %d pages", most, len(pages))
		}
	}
}

// TestPagesAreReadBack reads the words of a segment from its pages, and checks that encoding them gives the same pages.
func TestPagesAreReadBack(t *testing.T) {
	t.Parallel()
	x := newManyWords()
	want := x.encodePages()
	for name, pages := range map[string][]textIndexPage{"with prefixes": want, "of an older version": pagesWithoutPrefixes(x)} {
		back := &segmentWords{words: map[string]postingList{}}
		for _, p := range pages {
			if err := back.addPageWords(p.data); err != nil {
				t.Fatal(err)
			}
		}
		got := back.encodePages()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %d different pages, want the %d written ones", name, len(got), len(want))
		}
	}
}

// pagesWithoutPrefixes returns pages in the form in which older versions wrote them, without prefix entries.
func pagesWithoutPrefixes(x *segmentWords) (out []textIndexPage) {
	for _, w := range slices.Sorted(maps.Keys(x.words)) {
		if n := len(out); n == 0 || len(out[n-1].data) >= pageSize {
			out = append(out, textIndexPage{first: []byte(w)})
		}
		p := &out[len(out)-1]
		p.data = binary.AppendUvarint(p.data, uint64(len(w)))
		p.data = append(p.data, w...)
		p.data = x.words[w].appendTo(p.data)
	}
	return out
}

// addPageWords adds the words of a page, but not its prefix entries.
func (x *segmentWords) addPageWords(data []byte) error {
	damaged := false
	err := eachPageEntry(data, func(word, records []byte, bitmap bool) bool {
		if isPrefixEntry(word) {
			return true
		}
		p, ok := decodePosting(records, bitmap)
		damaged = !ok
		x.words[string(word)] = p
		return ok
	})
	if err == nil && damaged {
		err = fmt.Errorf("a page of the text index: %w", errDamaged)
	}
	return err
}

func decodePosting(records []byte, isBitmap bool) (p postingList, ok bool) {
	if isBitmap {
		b, err := decodeBitmap(records)
		if err != nil || b == nil {
			return nil, false
		}
		return b.toPostingList(), true
	}
	for at := uint64(0); len(records) > 0; {
		d, k := binary.Uvarint(records)
		if at += d; k <= 0 || at >= chunkSize {
			return nil, false
		}
		p = append(p, uint16(at))
		records = records[k:]
	}
	return p, true
}
