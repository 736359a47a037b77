package judge

// MaxWords is how many words of a phrase are looked at.
const MaxWords = 48

// reach is how many words before a word are looked at for one of a group.
const reach = 10

// feature is what a phrase has: the index of a weight, and the words that it is of.
type feature struct {
	weight     uint16
	first, end uint8
}

// Phrase is read word by word. It is used again after Reset. Its zero value is one
// without words.
type Phrase struct {
	words    []uint64 // hashes
	groups   []uint64 // hashes of the groups that the words are of; 0 for a word of none
	features []feature
}

// Group stands for words of like meaning; 0 for none.
type Group uint64

// GroupNamed returns the group of a name.
func GroupNamed(name string) Group { return Group(hash(name) * grouped) }

// Reset forgets all words.
func (p *Phrase) Reset() { p.words, p.groups, p.features = p.words[:0], p.groups[:0], p.features[:0] }

// Len returns how many words it has.
func (p *Phrase) Len() int { return len(p.words) }

// Add adds a word in normal form, and the group of words of like meaning that it is
// of, if any. Behind MaxWords words it does nothing.
func (p *Phrase) Add(word []byte, group Group) {
	n := len(p.words)
	if n == MaxWords {
		return
	}
	h := hash(word)
	p.words = append(p.words, h)
	p.feature(h, n)
	if n > 0 {
		p.feature(p.words[n-1]*31+h+beside, n-1)
	}
	if n > 1 {
		p.feature((p.words[n-2]*31+p.words[n-1])*31+h+beside, n-2)
	}
	p.letters(word, n)
	p.group(group, n)
}

// group adds the group of a word, and the pairs with the groups before it.
func (p *Phrase) group(group Group, n int) {
	h := uint64(group)
	if p.groups = append(p.groups, h); h == 0 {
		return
	}
	p.feature(h, n)
	for before := max(0, n-reach); before < n; before++ {
		if g := p.groups[before]; g != 0 {
			p.feature(g*31+h+apart, before)
		}
	}
}

// letters adds the runs of four letters of a word that is longer than that.
func (p *Phrase) letters(word []byte, n int) {
	if len(word) < 5 {
		return
	}
	run := uint64(0)
	for i, c := range word[:min(len(word), longWord)] {
		run = run<<8 | uint64(c)
		if i >= 3 {
			p.feature(run<<32|runs, n)
		}
	}
}

// longWord bounds the letters of a word that are looked at.
const longWord = 24

// What parts the kinds of features.
const (
	beside  = 0x9e3779b97f4a7c15
	apart   = 0xc2b2ae3d27d4eb4f
	runs    = 0x165667b1
	grouped = 0xff51afd7ed558ccd
)

func (p *Phrase) feature(h uint64, first int) {
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	p.features = append(p.features, feature{uint16(h >> 48), uint8(first), uint8(len(p.words))})
}

// hash is FNV-1a.
func hash[T string | []byte](word T) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(word) {
		h = (h ^ uint64(word[i])) * 0x100000001b3
	}
	return h
}

// Features yields the index of the weight of each feature, for learning.
func (p *Phrase) Features(yield func(weight uint16) bool) {
	for _, f := range p.features {
		if !yield(f.weight) {
			return
		}
	}
}

// Sum returns a hash of the phrase, by which one that occurs twice is known.
func (p *Phrase) Sum() uint64 {
	sum := uint64(len(p.words))
	for _, w := range p.words {
		sum = (sum ^ w) * 0x100000001b3
	}
	return sum
}
