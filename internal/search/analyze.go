package search

import (
	"encoding/json"
	"errors"

	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/tool"
)

// Bounds on what of one definition is indexed. Real definitions stay far
// below: the longest descriptions have 10 KB, the largest schemas 53 KB.
const (
	maxText        = 16 << 10 // bytes of one text
	maxSchema      = 256 << 10
	maxSchemaDepth = 24
	maxTerms       = 2000 // distinct words
	maxParameters  = 4000 // words of parameters, repeated ones too
)

// Analyze reads the words out of a definition, field by field. The schema is
// read into parameter names and parameter texts; its keywords are no words.
func Analyze(d tool.Definition) Document {
	a := analyzer{index: make(map[string]uint16, 64)}
	a.split.emit = a.add
	a.field(inName, d.ID.Tool)
	a.field(inServer, d.ID.Server)
	a.field(inTitle, d.Title)
	a.field(inDescription, d.Description)
	if len(d.InputSchema) <= maxSchema && strictjson.Check(d.InputSchema, strictjson.Limits{}) == nil {
		a.schema(d.InputSchema, 0)
	}
	return Document{ID: d.ID, analysis: a.done()}
}

// analyzer gathers one definition.
type analyzer struct {
	split   splitter
	current int // the field being read
	index   map[string]uint16
	words   []byte
	terms   []term
	lengths [fields]uint16
}

func (a *analyzer) field(field int, s string) {
	if len(s) > maxText {
		s = s[:maxText]
	}
	a.current = field
	a.split.text(s)
}

func (a *analyzer) add(word []byte) {
	if a.current != inName && stopWords[string(word)] {
		return
	}
	i, ok := a.index[string(word)]
	if !ok {
		if len(a.terms) == maxTerms || len(a.words)+len(word) > 1<<16-1 {
			return
		}
		i = uint16(len(a.terms))
		a.index[string(word)] = i
		a.terms = append(a.terms, term{at: uint16(len(a.words)), len: uint8(len(word))})
		a.words = append(a.words, word...)
	}
	if a.terms[i].count[a.current] < 255 {
		a.terms[i].count[a.current]++
	}
	if a.lengths[a.current] < 1<<16-1 {
		a.lengths[a.current]++
	}
}

// done packs what was gathered, without spare room.
func (a *analyzer) done() analysis {
	terms := make([]term, len(a.terms))
	copy(terms, a.terms)
	return analysis{words: string(a.words), terms: terms, lengths: a.lengths}
}

// schema walks a schema, whatever its dialect: names of properties, and what
// is written for a reader about them.
func (a *analyzer) schema(raw []byte, depth int) {
	if depth > maxSchemaDepth || a.full() {
		return
	}
	switch strictjson.Kind(raw) {
	case '{':
		strictjson.Members(raw, func(name, value []byte) error { return a.keyword(name, value, depth) })
	case '[':
		strictjson.Elements(raw, func(value []byte) error { a.schema(value, depth+1); return nil })
	}
}

var errFull = errors.New("enough words")

func (a *analyzer) full() bool {
	return int(a.lengths[inParameter])+int(a.lengths[inParameterText]) > maxParameters
}

func (a *analyzer) keyword(name, value []byte, depth int) error {
	if a.full() {
		return errFull
	}
	switch string(name) {
	case "properties":
		if strictjson.Kind(value) != '{' {
			return nil
		}
		return strictjson.Members(value, func(name, value []byte) error {
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
	if s, ok := strictjson.String(raw); ok {
		a.field(inParameterText, s)
	}
}

func (a *analyzer) values(raw json.RawMessage) {
	if strictjson.Kind(raw) != '[' {
		a.value(raw)
		return
	}
	strictjson.Elements(raw, func(value []byte) error { a.value(value); return nil })
}
