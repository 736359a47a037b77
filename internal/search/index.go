package search

import (
	"strings"
	"sync"

	"github.com/kljensen/snowball/english"

	"mcpproxy/internal/tool"
)

// Index is an immutable inverted index. It is safe for concurrent use.
//
// Words are indexed twice: by stem, which finds them in any form, and by
// surface, so that the very word weighs more than a relative of it.
type Index struct {
	ids   []tool.ID
	names map[string][]int32 // lower-case tool name → documents
	full  map[string][]int32 // lower-case "server:tool" → documents

	surfaces map[string]int32 // word → surface
	spelling spelling
	stemOf   []int32 // surface → stem
	stems    map[string]int32

	byStem    postings
	bySurface postings // empty where it would repeat that of the stem

	synonyms map[string][]int32 // stem as text → stems

	server  []int32 // document → number of its server
	servers int
	scratch sync.Pool // *scratch: working memory of searches
}

// postings are the documents of each word, in one piece.
type postings struct {
	start []uint32 // word → first entry; one more at the end
	docs  []posting
	idf   []float32
}

// posting is a word in a document. Its weight is complete but for the word's
// own: where the word stands, how often, in how long a field.
type posting struct {
	doc    uint32 // with inNameBit
	weight float32
}

const inNameBit = 1 << 31

func (p *postings) of(word int32) []posting {
	if word < 0 {
		return nil
	}
	return p.docs[p.start[word]:p.start[word+1]]
}

// The shape of the ranking: BM25F. A field's boost is what one occurrence in
// it is worth; its slope how much a long field is held against the document.
// These and the other weights were found by turning them one by one on half of
// the queries of four sets; around them the results hardly change.
const saturation = 1.5

var (
	boosts = [fields]float32{inName: 4, inServer: 2.4, inTitle: 2, inDescription: 1.5, inParameter: 1.8, inParameterText: 0.4}
	slopes = [fields]float32{inName: 0.4, inServer: 0.5, inTitle: 0.5, inDescription: 0.8, inParameter: 0.6, inParameterText: 0.25}
)

// Build makes an index of the documents.
func Build(docs []Document) *Index {
	b := builder{docs: docs, ix: &Index{
		ids:      make([]tool.ID, len(docs)),
		surfaces: make(map[string]int32, 4096),
		stems:    make(map[string]int32, 4096),
		server:   make([]int32, len(docs)),
		names:    make(map[string][]int32, len(docs)),
		full:     make(map[string][]int32, len(docs)),
	}}
	b.vocabulary()
	b.norms()
	b.postings()
	b.ix.spelling = newSpelling(b.ix.surfaces)
	b.ix.synonyms = synonymsIn(b.ix.stems)
	b.ix.scratch.New = func() any { return new(scratch) }
	return b.ix
}

type builder struct {
	docs []Document
	ix   *Index

	surfaces []int32 // of every term of every document, in a row
	forms    []int32 // stem → number of surfaces
	norm     [fields][]float32
}

// vocabulary numbers all surfaces and stems and counts their documents.
func (b *builder) vocabulary() {
	total := 0
	for i := range b.docs {
		total += len(b.docs[i].terms)
	}
	b.surfaces = make([]int32, 0, total)
	servers := make(map[string]int32)
	for i := range b.docs {
		d := &b.docs[i]
		b.identity(i, d.ID, servers)
		for j := range d.terms {
			b.surfaces = append(b.surfaces, b.surface(d.word(&d.terms[j])))
		}
	}
}

// identity notes what the document is called.
func (b *builder) identity(i int, id tool.ID, servers map[string]int32) {
	b.ix.ids[i] = id
	name, full := strings.ToLower(id.Tool), strings.ToLower(id.String())
	b.ix.names[name] = append(b.ix.names[name], int32(i))
	b.ix.full[full] = append(b.ix.full[full], int32(i))
	server, ok := servers[id.Server]
	if !ok {
		server = int32(len(servers))
		servers[id.Server] = server
	}
	b.ix.server[i], b.ix.servers = server, len(servers)
}

func (b *builder) surface(word string) int32 {
	if s, ok := b.ix.surfaces[word]; ok {
		return s
	}
	s := int32(len(b.ix.stemOf))
	b.ix.surfaces[word] = s
	root := stem(word)
	id, ok := b.ix.stems[root]
	if !ok {
		id = int32(len(b.forms))
		b.ix.stems[root] = id
		b.forms = append(b.forms, 0)
	}
	b.forms[id]++
	b.ix.stemOf = append(b.ix.stemOf, id)
	return s
}

// stem gives the root of an English word, the word itself for any other.
func stem(word string) string {
	for i := 0; i < len(word); i++ {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	return english.Stem(word, true)
}

// norms gives, for every field and document, what one occurrence weighs.
func (b *builder) norms() {
	for f := range fields {
		sum, n := 0, 0
		for i := range b.docs {
			if l := int(b.docs[i].lengths[f]); l > 0 {
				sum, n = sum+l, n+1
			}
		}
		b.norm[f] = make([]float32, len(b.docs))
		if n == 0 {
			continue
		}
		mean := float32(sum) / float32(n)
		for i := range b.docs {
			b.norm[f][i] = boosts[f] / (1 - slopes[f] + slopes[f]*float32(b.docs[i].lengths[f])/mean)
		}
	}
}

// weight is the weight of the term in the document before saturation.
func (b *builder) weight(doc int, t *term) (w float32) {
	for f := range fields {
		if t.count[f] != 0 {
			w += float32(t.count[f]) * b.norm[f][doc]
		}
	}
	return w
}
