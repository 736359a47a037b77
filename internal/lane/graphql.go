package lane

import (
	"slices"
	"strings"

	"mcpproxy/internal/effect"
	"mcpproxy/internal/policy"
)

// readGraphQL judges a document by all its operations: a mutation by the fields that it
// asks for, and those of all fragments, whose names say what they do.
func readGraphQL(text string) (worst Verdict) {
	if len(text) > maxText {
		return tooLong
	}
	tokens, ok := graphQLTokens(text)
	doc := document{tokens: tokens}
	for ok && doc.at < len(tokens) {
		ok = doc.definition()
	}
	if !ok || doc.operations == 0 {
		return unread("no document of GraphQL")
	}
	if !doc.mutates {
		return reading
	}
	for _, f := range doc.fields {
		if effect.OfName(f) == policy.Destructive {
			return Verdict{Operation: policy.Destructive, Word: clipWord("mutation " + f)}
		}
	}
	return write("mutation")
}

// graphQLTokens splits a document into names, marks, and `"` for a string. What it does
// not know makes it no document.
func graphQLTokens(s string) (tokens []string, ok bool) {
	for i := 0; i < len(s); {
		start, c := i, s[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',':
			i++
			continue
		case c == '#':
			for i < len(s) && s[i] != '\n' && s[i] != '\r' {
				i++
			}
			continue
		case c == '"':
			if i = stringEnd(s, i); i < 0 {
				return nil, false
			}
			tokens = append(tokens, `"`)
			continue
		case strings.HasPrefix(s[i:], "..."):
			i += 3
		case nameByte(c) || c == '-':
			for i++; i < len(s) && (nameByte(s[i]) || s[i] == '.' && '0' <= c && c <= '9'); i++ {
			}
		case strings.IndexByte("!$&()+:=@[]{}|", c) >= 0:
			i++
		default:
			return nil, false
		}
		tokens = append(tokens, s[start:i])
	}
	return tokens, true
}

func nameByte(c byte) bool {
	return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}

// stringEnd returns the end of the string that begins at i; -1 without one.
func stringEnd(s string, i int) int {
	if strings.HasPrefix(s[i:], `"""`) {
		for i += 3; i < len(s); i++ {
			switch {
			case strings.HasPrefix(s[i:], `\"""`):
				i += 3
			case strings.HasPrefix(s[i:], `"""`):
				return i + 3
			}
		}
		return -1
	}
	for i++; i < len(s) && s[i] != '\n' && s[i] != '\r'; i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// document is a document as far as it has been read.
type document struct {
	tokens     []string
	at         int
	operations int
	mutates    bool
	fields     []string // at the top of mutations and fragments
}

// definition reads an operation or a fragment, and reports whether it is one.
func (d *document) definition() bool {
	kind := d.tokens[d.at]
	switch kind {
	case "{", "query", "subscription":
		d.operations++
	case "mutation":
		d.operations++
		d.mutates = true
	case "fragment":
	default:
		return false
	}
	for d.at < len(d.tokens) && d.tokens[d.at] != "{" { // name, variables, directives
		if d.tokens[d.at] == "(" {
			if !d.skip("(", ")") {
				return false
			}
			continue
		}
		d.at++
	}
	return d.selection(kind == "mutation" || kind == "fragment")
}

// skip reads what stands in brackets, with those in it.
func (d *document) skip(open, end string) bool {
	for depth := 0; d.at < len(d.tokens); {
		t := d.tokens[d.at]
		d.at++
		switch t {
		case open:
			depth++
		case end:
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}

// selection reads a set of fields, and keeps their names where they count. Whatever is
// deeper than the top counts with it: a fragment may stand there in place.
func (d *document) selection(counts bool) bool {
	depth := 0
	for d.at < len(d.tokens) {
		switch t := d.tokens[d.at]; {
		case t == "(":
			if !d.skip("(", ")") {
				return false
			}
			continue
		case t == "{":
			depth++
		case t == "}":
			if depth--; depth == 0 {
				d.at++
				return true
			}
		case counts && nameByte(t[0]) && !slices.Contains([]string{"@", "...", "on"}, d.tokens[d.at-1]) &&
			(d.at+1 == len(d.tokens) || d.tokens[d.at+1] != ":") && depth <= 2:
			d.fields = append(d.fields, t)
		}
		d.at++
	}
	return false
}
