package catalog

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// ListKind is one of the lists that a server may have.
type ListKind uint8

// The kinds of lists.
const (
	ListTools ListKind = iota
	ListPrompts
	ListResources
	ListTemplates
)

// listKinds contains each list's method, its name in the result and in the capabilities, and the member that identifies
// an element.
var listKinds = [...]struct {
	method, member, capability, key string
	kind                            tool.DefinitionKind
}{
	ListTools:     {mcp.ListTools, "tools", "tools", "name", tool.KindTool},
	ListPrompts:   {mcp.ListPrompts, "prompts", "prompts", "name", tool.KindPrompt},
	ListResources: {mcp.ListResources, "resources", "resources", "uri", tool.KindResource},
	ListTemplates: {mcp.ListTemplates, "resourceTemplates", "resources", "uriTemplate", tool.KindTemplate},
}

// ListKindOfMethod returns the list that a method requests.
func ListKindOfMethod(method string) (l ListKind, ok bool) {
	for i := range listKinds {
		if listKinds[i].method == method {
			return ListKind(i), true
		}
	}
	return 0, false
}

// ResultMember returns the list's name in a result.
func (l ListKind) ResultMember() string { return listKinds[l].member }

// Capability returns the server capability that includes the list.
func (l ListKind) Capability() string { return listKinds[l].capability }

// ElementKey returns the member that identifies an element.
func (l ListKind) ElementKey() string { return listKinds[l].key }

// HasCapability reports whether a server declares the capability.
func HasCapability(s *Server, capability string) bool {
	return wirejson.Kind(wirejson.Find(s.State.Capabilities, capability)) == '{'
}
