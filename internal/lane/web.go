package lane

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"mcpproxy/internal/effect"
	"mcpproxy/internal/policy"
)

// readMethod judges a method of HTTP.
func readMethod(method string) Verdict {
	switch method = strings.ToUpper(strings.TrimSpace(method)); method {
	case "GET", "HEAD", "OPTIONS":
		return reading
	case "DELETE":
		return Verdict{Operation: policy.Destructive, Word: method}
	case "":
		return unread("no method")
	}
	return write(method)
}

// maxGraphQLTokens bounds a document.
const maxGraphQLTokens = 15_000

// readGraphQL judges a document by all its operations: a mutation by the fields that it
// asks for, whose names say what they do.
func readGraphQL(text string) (worst Verdict) {
	if len(text) > maxText {
		return tooLong
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, maxGraphQLTokens)
	if err != nil || len(doc.Operations) == 0 {
		return unread("no document of GraphQL")
	}
	for _, o := range doc.Operations {
		if o.Operation != ast.Mutation {
			worst = worst.worse(reading)
			continue
		}
		worst = worst.worse(write("mutation"))
		for _, f := range fields(doc, o.SelectionSet, 0) {
			if effect.OfName(f) == policy.Destructive {
				worst = worst.worse(Verdict{Operation: policy.Destructive, Word: clipWord("mutation " + f)})
			}
		}
	}
	return worst
}

// fields are the names of the fields at the top of a selection, in its fragments, too.
func fields(doc *ast.QueryDocument, set ast.SelectionSet, depth int) (names []string) {
	if depth > 16 {
		return nil
	}
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			names = append(names, s.Name)
		case *ast.InlineFragment:
			names = append(names, fields(doc, s.SelectionSet, depth+1)...)
		case *ast.FragmentSpread:
			if f := doc.Fragments.ForName(s.Name); f != nil {
				names = append(names, fields(doc, f.SelectionSet, depth+1)...)
			}
		}
	}
	return names
}
