package search

import (
	"encoding/json"
	"errors"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
)

// Bounds on what of one definition is indexed. Real definitions stay far
// below: the largest schemas have 53 KB.
const (
	maxSchema      = 256 << 10
	maxSchemaDepth = 24
	maxTerms       = 2000 // distinct words
	maxParameters  = 4000 // words of parameters, repeated ones too
)

// analyzer reads the words out of definitions, field by field. It is reused for
// the tools of a part, whose words it numbers. A schema is read into parameter
// names and parameter texts; its keywords are no words.
type analyzer struct {
	split     splitter
	known     *stemCache
	index     map[string]uint32
	words     []string
	stopWords map[string]bool

	// Of the current definition.
	current int     // the field being read
	slot    []int32 // word → where in terms, plus one
	terms   []term
	lengths [fields]int
}

func newAnalyzer(known *stemCache) *analyzer {
	a := &analyzer{known: known, index: make(map[string]uint32, 256), stopWords: stopWords()}
	a.split.emit = a.add
	return a
}

// parse returns the words of a definition and the lengths of its fields, valid
// until the next is read.
func (a *analyzer) read(d *tool.Definition) ([]term, *[fields]int) {
	for i := range a.terms {
		a.slot[a.terms[i].word] = 0
	}
	a.terms, a.lengths = a.terms[:0], [fields]int{}
	summary, rest := cutSentence(wirejson.Clip(d.Description, maxText))
	a.field(inSummary, summary)
	a.field(inDescription, rest)
	a.field(inName, d.ID.Tool)
	a.field(inServer, d.ID.Server)
	a.field(inTitle, d.Title)
	if len(d.InputSchema) <= maxSchema && wirejson.Check(d.InputSchema, wirejson.Limits{}) == nil {
		a.schema(d.InputSchema, 0)
	}
	return a.terms, &a.lengths
}

// minSummary is how long a first sentence is at least, in bytes: "Note." says
// nothing yet.
const minSummary = 20

// cutSentence cuts a description behind its first sentence or line.
func cutSentence(s string) (first, rest string) {
	for i := minSummary; i+1 < len(s); i++ {
		switch s[i] {
		case '\n':
			return s[:i], s[i+1:]
		case '.', '!', '?':
			if s[i+1] == ' ' || s[i+1] == '\n' {
				return s[:i], s[i+1:]
			}
		}
	}
	return s, ""
}

func (a *analyzer) field(field int, s string) {
	a.current = field
	a.split.splitText(wirejson.Clip(s, maxText))
}

// add notes a word of the current field, and the words in it where those of
// an identifier are written as one.
func (a *analyzer) add(word []byte) {
	a.count(word)
	switch a.current {
	case inName, inServer, inTitle, inParameter:
		for _, piece := range segments(string(word)) {
			a.count([]byte(piece))
		}
	}
}

func (a *analyzer) count(word []byte) {
	if a.current != inName && a.stopWords[string(word)] {
		return
	}
	i, ok := a.index[string(word)]
	if !ok {
		if len(a.terms) == maxTerms {
			return
		}
		i = uint32(len(a.words))
		text := stemWord(a.known, word).word
		a.index[text] = i
		a.words = append(a.words, text)
		a.slot = append(a.slot, 0)
	}
	if a.slot[i] == 0 {
		if len(a.terms) == maxTerms {
			return
		}
		a.terms = append(a.terms, term{word: i})
		a.slot[i] = int32(len(a.terms))
	}
	if t := &a.terms[a.slot[i]-1]; t.count[a.current] < 255 {
		t.count[a.current]++
	}
	a.lengths[a.current]++
}

// schema walks a schema, whatever its dialect: names of properties, and what
// is written for a reader about them.
func (a *analyzer) schema(raw []byte, depth int) {
	if depth > maxSchemaDepth || a.full() {
		return
	}
	switch wirejson.Kind(raw) {
	case '{':
		wirejson.Members(raw, func(name, value []byte) error { return a.keyword(name, value, depth) })
	case '[':
		wirejson.Elements(raw, func(value []byte) error { a.schema(value, depth+1); return nil })
	}
}

var errEnoughWords = errors.New("enough words")

func (a *analyzer) full() bool {
	return a.lengths[inParameter]+a.lengths[inParameterText] > maxParameters
}

func (a *analyzer) keyword(name, value []byte, depth int) error {
	if a.full() {
		return errEnoughWords
	}
	switch string(name) {
	case "properties":
		if wirejson.Kind(value) != '{' {
			return nil
		}
		return wirejson.Members(value, func(name, value []byte) error {
			a.field(inParameter, string(name))
			a.schema(value, depth+1)
			return nil
		})
	case "description":
		a.value(value)
	case "title":
		if depth > 0 {
			a.value(value)
		}
	case "enum", "const":
		a.values(value)
	case "default", "examples", "$schema", "$id", "$ref", "required", "type":
		// data and addresses, not words about the tool
	default:
		a.schema(value, depth+1)
	}
	return nil
}

func (a *analyzer) value(raw json.RawMessage) {
	if s, ok := wirejson.String(raw); ok {
		a.field(inParameterText, s)
	}
}

func (a *analyzer) values(raw json.RawMessage) {
	if wirejson.Kind(raw) != '[' {
		a.value(raw)
		return
	}
	wirejson.Elements(raw, func(value []byte) error { a.value(value); return nil })
}

// term is one distinct word of a tool: which of the part's words, and how
// often it stands in each field.
type term struct {
	word  uint32
	count [fields]uint8
}
