package scan

import (
	"bytes"
	_ "embed"
	"math/bits"
	"sync"

	"mcpproxy/internal/sectionfile"
)

// maxPhraseWords bounds the words of a phrase.
const maxPhraseWords = 48

// groupWindow is how many preceding words are checked for group members.
const groupWindow = 10

// phraseFeature is the index of a weight, and the words it comes from.
type phraseFeature struct {
	weight     uint16
	first, end uint8
}

// PhraseFeatures collects the features of a phrase word by word. Reset allows reuse. The zero
// value is empty.
type PhraseFeatures struct {
	words    []uint64      // hashes of their stems
	grouped  []groupMember // members of groups
	features []phraseFeature
	own      int                     // features of the phrase itself; those of the previous one follow
	classes  wordClasses             // of all tokens
	pairs    [maxClasses]wordClasses // by a class, those of later tokens
}

// groupMember is a word of a group.
type groupMember struct {
	group uint64 // a hash
	word  int
}

// Reset removes all words.
func (p *PhraseFeatures) Reset() {
	p.words, p.grouped, p.features = p.words[:0], p.grouped[:0], p.features[:0]
	p.own, p.classes, p.pairs = 0, 0, [maxClasses]wordClasses{}
}

// Len returns the number of words.
func (p *PhraseFeatures) Len() int { return len(p.words) }

// AddWord adds a normalized word; name says whether it begins a tool-like name. After
// maxPhraseWords words it does nothing.
func (p *PhraseFeatures) AddWord(word []byte, name bool) {
	n := len(p.words)
	if n == maxPhraseWords {
		return
	}
	short := stemWord(word)
	h := hashWord(short)
	p.words = append(p.words, h)
	p.addFeature(h, n)
	if n > 0 {
		p.addFeature(p.words[n-1]*31+h+saltPair, n-1)
	}
	if n > 1 {
		p.addFeature((p.words[n-2]*31+p.words[n-1])*31+h+saltPair, n-2)
	}
	of := groupsByWord()
	group := of[string(short)]
	if group == 0 {
		group = of[string(word)]
	}
	if name {
		group = of["#name"]
	}
	if group != 0 {
		p.addGroupFeatures(group, n)
	}
}

// addClasses adds features for the word classes of tokens: each class once, each pair of classes that are close together once in
// their order, and the classes of the previous phrase. wordOf returns the index of a token's word.
func (p *PhraseFeatures) addClasses(tokens []classToken, previous wordClasses, wordOf func(t classToken) int) {
	for k, t := range tokens {
		word := wordOf(t)
		for c := range eachClass(t.classes &^ p.classes) {
			p.addFeatureOf(hashClass(c), word, word)
		}
		p.classes |= t.classes
		for _, earlier := range tokens[max(0, k-classReach):k] {
			if t.at-earlier.at > classWindow {
				continue
			}
			for a := range eachClass(earlier.classes) {
				added := t.classes &^ p.pairs[a]
				p.pairs[a] |= added
				for b := range eachClass(added) {
					p.addFeatureOf(hashClass(a)*31+hashClass(b)+saltDistantPair, wordOf(earlier), word)
				}
			}
		}
	}
	own := len(p.features)
	for c := range eachClass(previous) {
		p.addFeatureOf(hashClass(maxClasses+c), 0, 0)
	}
	p.own = own
}

// How far apart the classes of a pair may be.
const (
	classWindow = 32 // half words
	classReach  = 8  // tokens
)

// maxClasses is the maximum number of word classes.
const maxClasses = 64

func hashClass(class int) uint64 { return (uint64(class) + 1) * saltTriple }

// eachClass yields the numbers of some classes.
func eachClass(of wordClasses) func(yield func(class int) bool) {
	return func(yield func(class int) bool) {
		for ; of != 0 && yield(bits.TrailingZeros64(uint64(of))); of &= of - 1 {
		}
	}
}

// addGroupFeatures adds features for a word's group: itself, pairs with earlier groups, and
// triples.
func (p *PhraseFeatures) addGroupFeatures(h uint64, n int) {
	p.addFeature(h, n)
	last := len(p.grouped)
	for k := last - 1; k >= 0 && p.grouped[k].word >= n-groupWindow; k-- {
		p.addFeature(p.grouped[k].group*31+h+saltDistantPair, p.grouped[k].word)
	}
	if last > 1 {
		a, b := p.grouped[last-2], p.grouped[last-1]
		p.addFeature((a.group*31+b.group)*31+h+saltTriple, a.word)
	}
	p.grouped = append(p.grouped, groupMember{h, n})
}

// Hash salts for the kinds of features.
const (
	saltPair        = 0x9e3779b97f4a7c15
	saltDistantPair = 0xc2b2ae3d27d4eb4f
	saltTriple      = 0x27d4eb2f165667c5
	saltGroup       = 0xff51afd7ed558ccd
)

func (p *PhraseFeatures) addFeature(h uint64, first int) { p.addFeatureOf(h, first, len(p.words)-1) }

func (p *PhraseFeatures) addFeatureOf(h uint64, first, last int) {
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	p.features = append(p.features, phraseFeature{uint16(h >> 48), uint8(first), uint8(last + 1)})
	p.own = len(p.features)
}

// stemWord removes English verb and noun endings.
func stemWord(word []byte) []byte {
	cut := func(ending string, left int) bool {
		return len(word) >= left+len(ending) && bytes.HasSuffix(word, []byte(ending))
	}
	switch {
	case cut("ies", 3):
		return append(word[:len(word)-3:len(word)-3], 'y')
	case cut("ing", 4):
		word = word[:len(word)-3]
	case cut("ed", 4):
		word = word[:len(word)-2]
	case cut("sses", 2), cut("shes", 2), cut("ches", 2), cut("xes", 2):
		word = word[:len(word)-2]
	case cut("s", 3) && !cut("ss", 2) && !cut("us", 2) && !cut("is", 2):
		word = word[:len(word)-1]
	}
	if n := len(word); n > 4 && word[n-1] == word[n-2] && word[n-1] != 'l' && word[n-1] != 's' {
		word = word[:n-1]
	}
	if n := len(word); n > 3 && word[n-1] == 'e' {
		word = word[:n-1]
	}
	return word
}

//go:embed groups.txt
var groupsText string

// groupsByWord are the groups by their words and stems.
var groupsByWord = sync.OnceValue(func() map[string]uint64 {
	all := map[string]uint64{}
	for _, s := range sectionfile.Parse(groupsText) {
		group := hashWord(s.Head) * saltGroup
		for _, w := range s.Words() {
			for _, form := range []string{w, string(stemWord([]byte(w)))} {
				if all[form] == 0 {
					all[form] = group
				}
			}
		}
	}
	return all
})

// hashWord is FNV-1a.
func hashWord[T string | []byte](word T) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(word) {
		h = (h ^ uint64(word[i])) * 0x100000001b3
	}
	return h
}

// EachWeightIndex yields the weight index of each feature, for training.
func (p *PhraseFeatures) EachWeightIndex(yield func(weight uint16) bool) {
	for _, f := range p.features {
		if !yield(f.weight) {
			return
		}
	}
}

// Hash identifies the phrase, to find duplicates.
func (p *PhraseFeatures) Hash() uint64 {
	sum := uint64(len(p.words))
	for _, w := range p.words {
		sum = (sum ^ w) * 0x100000001b3
	}
	return sum
}
