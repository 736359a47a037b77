package search

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
)

// ServerIndexPart contains the analyzed tools of one server and is a building block of an index. It is immutable and
// independent of other servers, so that a change of one server requires a new analysis only of its own tools.
type ServerIndexPart struct {
	ranking   *RankingParameters
	ids       []tool.ID
	server    []string          // words of its name, for queries that begin with the name
	aliases   map[uint32]string // tool → the user's name for it
	byName    nameIndex         // by lower-case name and alias
	byMeaning nameIndex         // by the meaning of the name's words

	// deprecated maps deprecated tools to the tools that they name as successors.
	deprecated map[uint32][]uint32

	mutating []bool // tool → whether its name says that it changes something

	words  []string // distinct words
	stemOf []uint32 // word → stem
	stems  []string

	byStem postings
	// byWord contains postings for words that share their stem with another word of the part. Other words have the same
	// postings as their stem.
	byWord postings

	headCounts  []uint32     // stem → number of tools with it in their heads
	nameStems   [][]uint32   // tool → stems of its name
	unitVectors []unitVector // tool → its vector
	rows        []int32      // stem → row of its vector, -1 if there is none
}

// postings are the tools of each word, in one slice.
type postings struct {
	start []uint32 // word → first entry; the last element is the number of entries
	docs  []posting
}

// posting is an occurrence of a word in a tool, with its weight before IDF.
type posting struct {
	docAndFlags uint32 // number of the tool within the part, and flags
	weight      float32
}

// Flags of a posting.
const (
	inNameBit = 1 << 31
	inHeadBit = 1 << 30 // in the name, the title or the first sentence
	whereBits = inNameBit | inHeadBit
)

func (e posting) docNumber() uint32 { return e.docAndFlags &^ whereBits }
func (e posting) inName() bool      { return e.docAndFlags&inNameBit != 0 }
func (e posting) inHead() bool      { return e.docAndFlags&inHeadBit != 0 }
func (e posting) headBit() uint32   { return e.docAndFlags & inHeadBit / inHeadBit } // 1 if inHead, else 0

func (p *postings) ofWord(word uint32) []posting {
	return p.docs[p.start[word]:p.start[word+1]]
}

// exactWordPostings returns the postings of tools with exactly that word.
func (p *ServerIndexPart) exactWordPostings(word uint32) []posting {
	if docs := p.byWord.ofWord(word); len(docs) > 0 {
		return docs
	}
	return p.byStem.ofWord(p.stemOf[word])
}

// usesStemPostings reports whether a word has the same postings as its stem.
func (p *ServerIndexPart) usesStemPostings(word uint32) bool {
	return p.byWord.start[word] == p.byWord.start[word+1]
}

// NewServerIndexPart analyzes the tools of a server with the default ranking.
func NewServerIndexPart(server string, tools []*tool.Definition) *ServerIndexPart {
	return defaultRanking().NewServerIndexPart(server, tools)
}

// NewServerIndexPart analyzes the tools of a server with this ranking.
func (r *RankingParameters) NewServerIndexPart(server string, tools []*tool.Definition) *ServerIndexPart {
	b := newPartBuilder(r, server, len(tools))
	for i := range tools {
		b.addTool(uint32(i), tools[i])
	}
	for i := range tools {
		b.addSuccessorsOfDeprecated(uint32(i), tools[i])
	}
	return b.build()
}

// nameIndex maps names to tools. Nearly all names have one tool.
type nameIndex struct {
	last map[string]uint32 // name → the last tool with it
	more map[uint32]uint32 // tool → the previous tool with the same name
}

func newNameIndex(n int) nameIndex { return nameIndex{last: make(map[string]uint32, n)} }

func (n *nameIndex) addTool(name string, doc uint32) {
	if before, ok := n.last[name]; ok {
		if n.more == nil {
			n.more = make(map[uint32]uint32)
		}
		n.more[doc] = before
	}
	n.last[name] = doc
}

// toolsNamed iterates over the tools with a name.
func (n *nameIndex) toolsNamed(name string) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for doc, ok := n.last[name]; ok && yield(doc); doc, ok = n.more[doc] {
		}
	}
}

// shownName returns the name by which agents know a tool.
func (p *ServerIndexPart) shownName(doc uint32) string {
	return cmp.Or(p.aliases[doc], p.ids[doc].Tool)
}

// Len returns the number of tools.
func (p *ServerIndexPart) Len() int { return len(p.ids) }

// partBuilder builds a part, tool by tool.
type partBuilder struct {
	part     *ServerIndexPart
	analyzer *definitionAnalyzer
	index    map[string]uint32 // stem → number
	forms    []uint32          // stem → number of its words

	// Input of the postings, in tool order.
	stems, words []wordPosting
	slot         []int32 // stem → its entry in stems, plus one, for the current tool
}

// wordPosting is a posting and its word.
type wordPosting struct {
	word uint32
	posting
}

func newPartBuilder(r *RankingParameters, server string, tools int) *partBuilder {
	return &partBuilder{
		part: &ServerIndexPart{
			ranking: r,
			ids:     make([]tool.ID, 0, tools), server: splitWords(server),
			byName: newNameIndex(tools), byMeaning: newNameIndex(tools), unitVectors: make([]unitVector, 0, tools), nameStems: make([][]uint32, 0, tools),
		},
		analyzer: newDefinitionAnalyzer(r.lexicon),
		index:    make(map[string]uint32),
	}
}

func (b *partBuilder) stemOf(word string) string {
	return cachedStem(b.part.ranking.lexicon, word).stem
}

func (b *partBuilder) addTool(doc uint32, d *tool.Definition) {
	p := b.part
	p.ids = append(p.ids, d.ID)
	words := expandWords(splitWords(d.ShownName()))
	name, meaning := strings.ToLower(d.ID.Tool), newWording(words, b.stemOf).meaning
	p.mutating = append(p.mutating, isMutatingName(words))
	p.byName.addTool(name, doc)
	if d.Alias != "" {
		if p.aliases == nil {
			p.aliases = make(map[uint32]string)
		}
		p.aliases[doc] = d.Alias
		p.byName.addTool(strings.ToLower(d.Alias), doc)
	}
	p.byMeaning.addTool(meaning, doc)

	terms, lengths := b.analyzer.extractTerms(d)
	b.computeNewStems()
	first := len(b.stems)
	for i := range terms {
		t := &terms[i]
		b.addPosting(doc, t, p.ranking.rawWeight(&t.count, lengths))
	}
	for i := first; i < len(b.stems); i++ {
		e := &b.stems[i]
		e.weight = p.ranking.saturate(e.weight)
		b.slot[e.word] = 0
	}
	b.addToolVector(b.stems[first:])
}

// addToolVector computes the vector of a tool and the stems of its name.
func (b *partBuilder) addToolVector(stems []wordPosting) {
	p := b.part
	var sum vectorSum
	var named []uint32
	for _, e := range stems {
		if row := p.rows[e.word]; row >= 0 {
			p.ranking.Vectors.addRowVector(&sum, int(row), vectorWeight(e.weight))
		}
		if e.inHead() {
			p.headCounts[e.word]++
		}
		if e.inName() {
			named = append(named, e.word)
		}
	}
	p.unitVectors = append(p.unitVectors, sum.toUnitVector())
	p.nameStems = append(p.nameStems, named)
}

// addSuccessorsOfDeprecated records the tools that a deprecated tool names as successors.
func (b *partBuilder) addSuccessorsOfDeprecated(doc uint32, d *tool.Definition) {
	if !d.IsDeprecated() {
		return
	}
	p := b.part
	if p.deprecated == nil {
		p.deprecated = make(map[uint32][]uint32)
	}
	var next []uint32
	for word := range strings.FieldsFuncSeq(strings.ToLower(wirejson.ClipText(d.Description, maxText)), isNameSeparator) {
		for other := range p.byName.toolsNamed(strings.TrimRight(word, ".-/")) {
			if other != doc && !slices.Contains(next, other) && len(next) < maxSuccessors {
				next = append(next, other)
			}
		}
	}
	p.deprecated[doc] = next
}

const maxSuccessors = 8

// isNameSeparator reports whether a character does not occur in usual tool names.
func isNameSeparator(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./", r)
}

// computeNewStems computes the stems of new words.
func (b *partBuilder) computeNewStems() {
	p := b.part
	p.words = b.analyzer.words
	for i := len(p.stemOf); i < len(p.words); i++ {
		root := b.stemOf(p.words[i])
		s, ok := b.index[root]
		if !ok {
			s = uint32(len(p.stems))
			b.index[root] = s
			p.stems = append(p.stems, root)
			b.forms = append(b.forms, 0)
			b.slot = append(b.slot, 0)
			p.headCounts = append(p.headCounts, 0)
			p.rows = append(p.rows, p.ranking.Vectors.rowOf(root))
		}
		b.forms[s]++
		p.stemOf = append(p.stemOf, s)
	}
}

func (b *partBuilder) addPosting(doc uint32, t *toolTerm, weight float32) {
	e := wordPosting{word: t.word, posting: posting{doc, b.part.ranking.saturate(weight)}}
	if t.count[inName] > 0 {
		e.docAndFlags |= inNameBit
	}
	if t.count[inName]|t.count[inTitle]|t.count[inSummary] > 0 {
		e.docAndFlags |= inHeadBit
	}
	b.words = append(b.words, e)
	s := b.part.stemOf[t.word]
	if at := b.slot[s]; at > 0 {
		of := &b.stems[at-1]
		of.weight += weight
		of.docAndFlags |= e.docAndFlags & whereBits
		return
	}
	e.word, e.weight = s, weight
	b.stems = append(b.stems, e)
	b.slot[s] = int32(len(b.stems))
}

// build sorts the postings by word.
func (b *partBuilder) build() *ServerIndexPart {
	p := b.part
	p.byStem = sortPostings(b.stems, len(p.stems))
	shared := b.words[:0]
	for _, e := range b.words {
		if b.forms[p.stemOf[e.word]] > 1 {
			shared = append(shared, e)
		}
	}
	p.byWord = sortPostings(shared, len(p.words))
	return p
}

// countsToOffsets replaces counts by offsets in place. It returns a copy that is used to fill the slice.
func countsToOffsets(start []uint32) (next []uint32) {
	for i := range start[1:] {
		start[i+1] += start[i]
	}
	return append([]uint32(nil), start[:len(start)-1]...)
}

// sortPostings sorts entries by word and keeps the order of tools.
func sortPostings(entries []wordPosting, n int) postings {
	p := postings{start: make([]uint32, n+1), docs: make([]posting, len(entries))}
	for _, e := range entries {
		p.start[e.word+1]++
	}
	next := countsToOffsets(p.start)
	for _, e := range entries {
		p.docs[next[e.word]] = e.posting
		next[e.word]++
	}
	return p
}
