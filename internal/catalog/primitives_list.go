package catalog

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// PrimitiveList is one of the lists that a server may have.
type PrimitiveList uint8

// The lists.
const (
	ListTools PrimitiveList = iota
	ListPrompts
	ListResources
	ListTemplates
)

// lists are how they are called: by the method that asks for one, in its result,
// in a server's capabilities, and the member that tells one element from another.
var lists = [...]struct {
	method, member, capability, key string
	kind                            tool.Kind
}{
	ListTools:     {mcp.ListTools, "tools", "tools", "name", tool.KindTool},
	ListPrompts:   {mcp.ListPrompts, "prompts", "prompts", "name", tool.KindPrompt},
	ListResources: {mcp.ListResources, "resources", "resources", "uri", tool.KindResource},
	ListTemplates: {mcp.ListTemplates, "resourceTemplates", "resources", "uriTemplate", tool.KindTemplate},
}

// ListOf returns the list that a method asks for.
func ListOf(method string) (l PrimitiveList, ok bool) {
	for i := range lists {
		if lists[i].method == method {
			return PrimitiveList(i), true
		}
	}
	return 0, false
}

// Member returns what the list is called in a result.
func (l PrimitiveList) Member() string { return lists[l].member }

// Capability returns the capability that servers have which have the list.
func (l PrimitiveList) Capability() string { return lists[l].capability }

// Key returns the member that tells one element from another.
func (l PrimitiveList) Key() string { return lists[l].key }

// HasCapability reports whether a server has said that it has the capability.
func HasCapability(s *Server, capability string) bool {
	return wirejson.Kind(wirejson.Find(s.State.Capabilities, capability)) == '{'
}
