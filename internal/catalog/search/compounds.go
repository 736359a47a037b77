package search

import (
	"slices"
	"strings"
)

// Limits for compound words.
const (
	minRunOn = 7  // letters
	maxRunOn = 40 // letters
	maxPiece = 16 // letters of one part
)

// splitCompound splits a compound such as getrelatedpeople into words. It returns nil for
// other words.
func splitCompound(word string) []string {
	costs := wordCosts()
	if len(word) < minRunOn || len(word) > maxRunOn || !isLowerASCIILetters(word) {
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
		if name, ok := strings.CutSuffix(word, "db"); ok { // cosmosdb
			return []string{name, "db"}
		}
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

// splitIntoTwoWords splits a word into two common words. The first is as short as possible.
func splitIntoTwoWords(word string) []string {
	costs := wordCosts()
	for i := 3; i+3 <= len(word); i++ {
		_, first := costs[word[:i]]
		_, second := costs[strings.TrimSuffix(word[i:], "s")]
		if first && second {
			return []string{word[:i], word[i:]}
		}
	}
	return nil
}
