package search

import (
	_ "embed"
	"math"
	"slices"
	"strings"
	"sync"
)

// commonWords are the words that stand in six or more of 18,742 descriptions of
// published MCP tools (under Apache-2.0 and MIT), of three or more servers, the
// most frequent first, and some short ones that identifiers are made of.
//
//go:embed words.txt
var commonWords string

// wordCosts gives what a word costs in a segmentation: by Zipf's law the
// logarithm of its rank.
var wordCosts = sync.OnceValue(func() map[string]float32 {
	list := strings.Fields(commonWords)
	costs := make(map[string]float32, len(list))
	for i, w := range list {
		costs[w] = float32(math.Log(float64(i+2) * math.Log(float64(len(list)))))
	}
	return costs
})

// Bounds on what is taken for words written as one.
const (
	minRunOn = 7  // letters
	maxRunOn = 40 // letters
	maxPiece = 16 // letters of one of the words
)

// segments cuts a word that is several words written as one, such as
// getrelatedpeople, into them. It gives nil for any other.
func segments(word string) []string {
	costs := wordCosts()
	if len(word) < minRunOn || len(word) > maxRunOn || !isLetters(word) {
		return nil
	}
	if _, known := costs[word]; known {
		return nil
	}
	const never = float32(1e9)
	var best [maxRunOn + 1]float32
	var from [maxRunOn + 1]int8
	for end := 1; end <= len(word); end++ {
		best[end] = never
		for start := max(0, end-maxPiece); start < end-1; start++ {
			if best[start] >= never {
				continue
			}
			cost, ok := costs[word[start:end]]
			if ok && best[start]+cost < best[end] {
				best[end], from[end] = best[start]+cost, int8(start)
			}
		}
	}
	if best[len(word)] >= never {
		return nil
	}
	var out []string
	for end := len(word); end > 0; end = int(from[end]) {
		out = append(out, word[from[end]:end])
	}
	if len(out) < 2 || len(word) < 3*len(out) {
		return nil
	}
	slices.Reverse(out)
	return out
}
