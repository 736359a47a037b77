package classify

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
)

// classifyGraphQL classifies a GraphQL document, or a JSON request that contains one.
func classifyGraphQL(text string) verdict {
	if len(text) > maxText {
		return tooLong
	}
	if wirejson.Check([]byte(text), wirejson.Limits{}) == nil {
		return classifyGraphQLRequest([]byte(text), 0)
	}
	document, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil || len(document.Operations) == 0 {
		return unparseableVerdict("no document of GraphQL")
	}
	return classifyDocument(document)
}

// maxRequests limits the nesting of GraphQL requests.
const maxRequests = 8

// classifyGraphQLRequest classifies a GraphQL request in checked JSON: an object with a query, a list of
// such objects, or a document as a string.
func classifyGraphQLRequest(value []byte, depth int) (worst verdict) {
	switch kind := wirejson.Kind(value); {
	case depth > maxRequests:
	case kind == '"':
		text, _ := wirejson.String(value)
		if wirejson.Check([]byte(text), wirejson.Limits{}) == nil {
			return classifyGraphQLRequest([]byte(text), depth+1)
		}
		return classifyGraphQL(text)
	case kind == '[':
		_ = wirejson.EachElement(value, func(e []byte) error {
			worst = worst.worseOf(classifyGraphQLRequest(e, depth+1))
			return nil
		})
	case kind == '{':
		_ = wirejson.EachMember(value, func(name, member []byte) error {
			worst = worst.worseOf(classifyGraphQLMember(string(name), member, depth))
			return nil
		})
	}
	if worst.Operation == policy.NoOperation {
		return unparseableVerdict("no document of GraphQL")
	}
	return worst
}

// classifyGraphQLMember classifies a member of a request. Only query is a document; a stored document or
// another member may do anything.
func classifyGraphQLMember(name string, value []byte, depth int) verdict {
	empty := wirejson.Kind(value) == 'n' || string(value) == "{}"
	switch {
	case strings.EqualFold(name, "query"):
		return classifyGraphQLRequest(value, depth+1)
	case name == "operationName", name == "variables", empty:
		return verdict{}
	}
	return unparseableVerdict(clipWord(name))
}

// classifyDocument classifies a document by all its operations. The names of its fields determine the effect of a
// mutation.
func classifyDocument(document *ast.QueryDocument) verdict {
	var fields []string
	mutates := false
	for _, operation := range document.Operations {
		if operation.Operation == ast.Mutation {
			mutates = true
			fields = appendFieldNames(operation.SelectionSet, 2, fields)
		}
	}
	if !mutates {
		return readVerdict
	}
	for _, fragment := range document.Fragments {
		fields = appendFieldNames(fragment.SelectionSet, 2, fields)
	}
	for _, f := range fields {
		if operationOfName(f) == policy.Destructive {
			return destructiveVerdict("mutation " + f)
		}
	}
	return writeVerdict("mutation")
}

// appendFieldNames appends the field names of a selection set. Only the upper levels count: a mutation may be in a
// namespace, and deeper fields are its result. Fragments are classified separately.
func appendFieldNames(set ast.SelectionSet, levels int, names []string) []string {
	if levels == 0 {
		return names
	}
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			names = appendFieldNames(s.SelectionSet, levels-1, append(names, s.Name))
		case *ast.InlineFragment:
			names = appendFieldNames(s.SelectionSet, levels, names)
		}
	}
	return names
}
