package search

import (
	"iter"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// naming is what a query calls by name. It comes before all that is only
// described.
type naming struct {
	bonus   map[uint32]float32 // tools whose name it is, to the letter or in its words, and those to use instead
	meant   map[uint32]bool    // tools whose name says the same in other words
	servers map[uint32]bool    // parts with whose name it begins
	listed  map[uint32]bool    // parts whose name it is: all of their tools match
}

// some reports whether anything is named.
func (n *naming) some() bool {
	return len(n.bonus)+len(n.meant)+len(n.servers)+len(n.listed) > 0
}

// maxCalled is how many words a query has at most that is compared with names:
// in a longer one a word is a word.
const maxCalled = 6

// naming finds the tools and servers that the query names.
func (v *View) naming(text string) (n naming) {
	text = strings.TrimSpace(wirejson.Clip(text, maxQuery))
	literal, words := strings.ToLower(text), plainWords(text)
	short := len(words) > 0 && len(words) <= maxCalled
	var all wording
	if short {
		all = v.wordingOf(words)
	}
	for i, p := range v.ix.parts {
		if v.of[i] == not {
			continue
		}
		part := uint32(i)
		v.literal(&n, part, literal)
		if len(p.ids) > 0 && (len(words) > 0 && slices.Equal(words, p.server) || strings.EqualFold(text, p.ids[0].Server)) {
			if n.listed == nil {
				n.listed = make(map[uint32]bool)
			}
			n.listed[part] = true
		}
		if !short {
			continue
		}
		v.worded(&n, part, all, wordedBonus)
		if k := len(p.server); k > 0 && len(words) > k && slices.Equal(words[:k], p.server) {
			v.worded(&n, part, v.wordingOf(words[k:]), 2*wordedBonus)
			if n.servers == nil {
				n.servers = make(map[uint32]bool)
			}
			n.servers[part] = true
		}
	}
	return n
}

// literal notes the tools whose id or name is written.
func (v *View) literal(n *naming, part uint32, name string) {
	p := v.ix.parts[part]
	v.call(n, part, p.named.of(name), literalBonus)
	for _, mark := range [...]string{":", "__"} {
		if server, tool, ok := strings.Cut(name, mark); ok && len(p.ids) > 0 && strings.EqualFold(server, p.ids[0].Server) {
			v.call(n, part, p.named.of(tool), exactBonus)
		}
	}
}

func (v *View) call(n *naming, part uint32, docs iter.Seq[uint32], bonus float32) {
	first, p := v.ix.first[part], v.ix.parts[part]
	for d := range docs {
		if !v.shows(first + d) {
			continue
		}
		n.give(first+d, bonus)
		if bonus == exactBonus {
			continue
		}
		for _, next := range p.deprecated[d] {
			if v.shows(first + next) {
				n.give(first+next, bonus)
			}
		}
	}
}

func (n *naming) give(doc uint32, bonus float32) {
	if n.bonus == nil {
		n.bonus = make(map[uint32]float32)
	}
	n.bonus[doc] = max(n.bonus[doc], bonus)
}

// worded notes the tools whose name has the words of the query, or others that
// mean the same.
func (v *View) worded(n *naming, part uint32, w wording, bonus float32) {
	p := v.ix.parts[part]
	for d := range p.meant.of(w.meaning) {
		if nameWording(p.ids[d].Tool).stems == w.stems {
			v.call(n, part, slices.Values([]uint32{d}), bonus)
			continue
		}
		if doc := v.ix.first[part] + d; v.shows(doc) {
			if n.meant == nil {
				n.meant = make(map[uint32]bool)
			}
			n.meant[doc] = true
		}
	}
}

// wordingOf is the wording of a query, its typing errors mended.
func (v *View) wordingOf(words []string) wording {
	mended := apart(words)
	for i, word := range mended {
		if _, known := v.lookup(word); known || stopWords()[word] {
			continue
		}
		if near := v.nearest(word); len(near) > 0 {
			mended[i] = near[0].word
		}
	}
	return newWording(mended, stem)
}

// Mentions returns what reports whether a query has a word of a name. Servers of
// which no tool is known are found by it.
func Mentions(query string) func(name string) bool {
	asked := make(map[string]bool)
	sp := splitter{emit: func(word []byte) { asked[stem(string(word))] = true }}
	sp.text(wirejson.Clip(query, maxQuery))
	return func(name string) bool {
		return slices.ContainsFunc(apart(plainWords(name)), func(word string) bool {
			return !stopWords()[word] && asked[stem(word)]
		})
	}
}
