package search

import (
	"encoding/json"
	"errors"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
)

// Limits for the indexed part of a definition. The largest real schemas have 53 KB.
const (
	maxSchema      = 256 << 10
	maxSchemaDepth = 24
	maxTerms       = 2000 // distinct words
	maxParameters  = 4000 // words of parameter names and texts, with repetitions
)

// definitionAnalyzer extracts the words of definitions, field by field. It is reused for all tools of a part, and
// numbers their words. In a schema, it reads parameter names and texts, but not keywords.
type definitionAnalyzer struct {
	split     splitter
	known     *stemCache
	index     map[string]uint32
	words     []string
	stopWords map[string]bool

	// State for the current definition.
	current int     // the current field
	slot    []int32 // word → index in terms, plus one
	terms   []toolTerm
	lengths [fields]int
}

func newDefinitionAnalyzer(known *stemCache) *definitionAnalyzer {
	a := &definitionAnalyzer{known: known, index: make(map[string]uint32, 256), stopWords: stopWords()}
	a.split.emit = a.addWord
	return a
}

// extractTerms returns the words of a definition and the lengths of its fields. Both are valid until the next call.
func (a *definitionAnalyzer) extractTerms(d *tool.Definition) ([]toolTerm, *[fields]int) {
	for i := range a.terms {
		a.slot[a.terms[i].word] = 0
	}
	a.terms, a.lengths = a.terms[:0], [fields]int{}
	summary, rest := cutFirstSentence(wirejson.ClipText(d.Description, maxText))
	a.addFieldText(inSummary, summary)
	a.addFieldText(inDescription, rest)
	a.addFieldText(inName, d.ShownName())
	a.addFieldText(inServer, d.ID.Server)
	a.addFieldText(inTitle, d.Title)
	if d.Alias != "" {
		a.addFieldText(inTitle, d.ID.Tool)
	}
	if len(d.InputSchema) <= maxSchema && wirejson.Check(d.InputSchema, wirejson.Limits{}) == nil {
		a.addSchemaTexts(d.InputSchema, 0)
	}
	return a.terms, &a.lengths
}

// minSummary is the minimum length of a summary, in bytes: "Note." is not enough.
const minSummary = 20

// cutFirstSentence cuts a description after its first sentence or line.
func cutFirstSentence(s string) (first, rest string) {
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

func (a *definitionAnalyzer) addFieldText(field int, s string) {
	a.current = field
	a.split.splitText(wirejson.ClipText(s, maxText))
}

// addWord counts a word of the current field, and the parts of a compound word.
func (a *definitionAnalyzer) addWord(word []byte) {
	a.countWord(word)
	switch a.current {
	case inName, inServer, inTitle, inParameter:
		for _, piece := range splitCompound(string(word)) {
			a.countWord([]byte(piece))
		}
	}
}

func (a *definitionAnalyzer) countWord(word []byte) {
	if a.current != inName && a.stopWords[string(word)] {
		return
	}
	i, ok := a.index[string(word)]
	if !ok {
		if len(a.terms) == maxTerms {
			return
		}
		i = uint32(len(a.words))
		text := cachedStem(a.known, word).word
		a.index[text] = i
		a.words = append(a.words, text)
		a.slot = append(a.slot, 0)
	}
	if a.slot[i] == 0 {
		if len(a.terms) == maxTerms {
			return
		}
		a.terms = append(a.terms, toolTerm{word: i})
		a.slot[i] = int32(len(a.terms))
	}
	if t := &a.terms[a.slot[i]-1]; t.count[a.current] < 255 {
		t.count[a.current]++
	}
	a.lengths[a.current]++
}

// addSchemaTexts collects property names and descriptive texts from a schema of any dialect.
func (a *definitionAnalyzer) addSchemaTexts(raw []byte, depth int) {
	if depth > maxSchemaDepth || a.hasMaxParameters() {
		return
	}
	switch wirejson.Kind(raw) {
	case '{':
		wirejson.EachMember(raw, func(name, value []byte) error { return a.addSchemaKeyword(name, value, depth) })
	case '[':
		wirejson.EachElement(raw, func(value []byte) error { a.addSchemaTexts(value, depth+1); return nil })
	}
}

var errEnoughWords = errors.New("enough words")

func (a *definitionAnalyzer) hasMaxParameters() bool {
	return a.lengths[inParameter]+a.lengths[inParameterText] > maxParameters
}

func (a *definitionAnalyzer) addSchemaKeyword(name, value []byte, depth int) error {
	if a.hasMaxParameters() {
		return errEnoughWords
	}
	switch string(name) {
	case "properties":
		if wirejson.Kind(value) != '{' {
			return nil
		}
		return wirejson.EachMember(value, func(name, value []byte) error {
			a.addFieldText(inParameter, string(name))
			a.addSchemaTexts(value, depth+1)
			return nil
		})
	case "description":
		a.addParameterText(value)
	case "title":
		if depth > 0 {
			a.addParameterText(value)
		}
	case "enum", "const":
		a.addParameterTexts(value)
	case "default", "examples", "$schema", "$id", "$ref", "required", "type":
		// Data and URLs, not words about the tool.
	default:
		a.addSchemaTexts(value, depth+1)
	}
	return nil
}

func (a *definitionAnalyzer) addParameterText(raw json.RawMessage) {
	if s, ok := wirejson.String(raw); ok {
		a.addFieldText(inParameterText, s)
	}
}

func (a *definitionAnalyzer) addParameterTexts(raw json.RawMessage) {
	if wirejson.Kind(raw) != '[' {
		a.addParameterText(raw)
		return
	}
	wirejson.EachElement(raw, func(value []byte) error { a.addParameterText(value); return nil })
}

// toolTerm is one distinct word of a tool, with its count in each field.
type toolTerm struct {
	word  uint32
	count [fields]uint8
}
