package search

import (
	"iter"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// nameMatches contains the tools and servers that a query names. They rank before all other matches.
type nameMatches struct {
	bonus       map[uint32]float32 // tools named by exact or reworded name, and successors of deprecated tools
	byMeaning   map[uint32]bool    // tools whose name means the same
	servers     map[uint32]bool    // parts whose server name is the beginning of the query
	listServers map[uint32]bool    // parts whose server name is the whole query: all their tools match
}

// hasMatches reports whether the query names a tool or a server.
func (n *nameMatches) hasMatches() bool {
	return len(n.bonus)+len(n.byMeaning)+len(n.servers)+len(n.listServers) > 0
}

// maxNameQueryWords is the maximum number of words of a query that is compared with
// names.
const maxNameQueryWords = 6

// findNameMatches finds the tools and servers that the query names.
func (v *View) findNameMatches(text string) (n nameMatches) {
	text = strings.TrimSpace(wirejson.ClipText(text, maxQuery))
	literal, words := strings.ToLower(text), splitWords(text)
	short := len(words) > 0 && len(words) <= maxNameQueryWords
	var all wording
	if short {
		all = v.newQueryWording(words)
	}
	for i, p := range v.ix.parts {
		if v.partShown[i] == notShown {
			continue
		}
		part := uint32(i)
		v.addLiteralMatches(&n, part, literal)
		if len(p.ids) > 0 && (len(words) > 0 && slices.Equal(words, p.server) || strings.EqualFold(text, p.ids[0].Server)) {
			if n.listServers == nil {
				n.listServers = make(map[uint32]bool)
			}
			n.listServers[part] = true
		}
		if !short {
			continue
		}
		v.addWordingMatches(&n, part, all, wordedBonus)
		if k := len(p.server); k > 0 && len(words) > k && slices.Equal(words[:k], p.server) {
			v.addWordingMatches(&n, part, v.newQueryWording(words[k:]), 2*wordedBonus)
			if n.servers == nil {
				n.servers = make(map[uint32]bool)
			}
			n.servers[part] = true
		}
	}
	return n
}

// addLiteralMatches adds the tools whose id or name is the query.
func (v *View) addLiteralMatches(n *nameMatches, part uint32, name string) {
	p := v.ix.parts[part]
	v.addNamedTools(n, part, p.byName.toolsNamed(name), literalBonus)
	for _, mark := range [...]string{":", "__"} {
		if server, tool, ok := strings.Cut(name, mark); ok && len(p.ids) > 0 && strings.EqualFold(server, p.ids[0].Server) {
			v.addNamedTools(n, part, p.byName.toolsNamed(tool), exactBonus)
		}
	}
}

func (v *View) addNamedTools(n *nameMatches, part uint32, docs iter.Seq[uint32], bonus float32) {
	first, p := v.ix.first[part], v.ix.parts[part]
	for d := range docs {
		if !v.isShown(first + d) {
			continue
		}
		n.raiseBonus(first+d, bonus)
		if bonus == exactBonus {
			continue
		}
		for _, next := range p.deprecated[d] {
			if v.isShown(first + next) {
				n.raiseBonus(first+next, bonus)
			}
		}
	}
}

func (n *nameMatches) raiseBonus(doc uint32, bonus float32) {
	if n.bonus == nil {
		n.bonus = make(map[uint32]float32)
	}
	n.bonus[doc] = max(n.bonus[doc], bonus)
}

// addWordingMatches adds the tools whose name consists of the words of the query, or of synonyms.
func (v *View) addWordingMatches(n *nameMatches, part uint32, w wording, bonus float32) {
	p := v.ix.parts[part]
	for d := range p.byMeaning.toolsNamed(w.meaning) {
		if newNameWording(p.shownName(d)).stems == w.stems {
			v.addNamedTools(n, part, slices.Values([]uint32{d}), bonus)
			continue
		}
		if doc := v.ix.first[part] + d; v.isShown(doc) {
			if n.byMeaning == nil {
				n.byMeaning = make(map[uint32]bool)
			}
			n.byMeaning[doc] = true
		}
	}
}

// newQueryWording returns the wording of a query with corrected spelling.
func (v *View) newQueryWording(words []string) wording {
	mended := expandWords(words)
	for i, word := range mended {
		if _, known := v.lookupWord(word); known || stopWords()[word] {
			continue
		}
		if near := v.nearestSpellings(word); len(near) > 0 {
			mended[i] = near[0].word
		}
	}
	return newWording(mended, toStem)
}

// NewNameMatcher returns a function that reports whether a query contains a word of a name. It is used to find servers
// without known tools.
func NewNameMatcher(query string) func(name string) bool {
	asked := make(map[string]bool)
	sp := splitter{emit: func(word []byte) { asked[toStem(string(word))] = true }}
	sp.splitText(wirejson.ClipText(query, maxQuery))
	return func(name string) bool {
		return slices.ContainsFunc(expandWords(splitWords(name)), func(word string) bool {
			return !stopWords()[word] && asked[toStem(word)]
		})
	}
}
