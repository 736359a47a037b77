package offers

import (
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/tool"
)

// List is one of the lists that a server may have.
type List uint8

// The lists.
const (
	Tools List = iota
	Prompts
	Resources
	Templates
)

// lists are how they are called: by the method that asks for one, in its result,
// in a server's capabilities, and the member that tells one element from another.
var lists = [...]struct {
	method, member, capability, key string
	kind                            tool.Kind
}{
	Tools:     {mcp.ListTools, "tools", "tools", "name", tool.KindTool},
	Prompts:   {mcp.ListPrompts, "prompts", "prompts", "name", tool.KindPrompt},
	Resources: {mcp.ListResources, "resources", "resources", "uri", tool.KindResource},
	Templates: {mcp.ListTemplates, "resourceTemplates", "resources", "uriTemplate", tool.KindTemplate},
}

// ListOf returns the list that a method asks for.
func ListOf(method string) (l List, ok bool) {
	for i := range lists {
		if lists[i].method == method {
			return List(i), true
		}
	}
	return 0, false
}

// Member returns what the list is called in a result.
func (l List) Member() string { return lists[l].member }

// Capability returns the capability that servers have which have the list.
func (l List) Capability() string { return lists[l].capability }

// Key returns the member that tells one element from another.
func (l List) Key() string { return lists[l].key }

// Has reports whether a server has said that it has the capability.
func Has(s *catalog.Server, capability string) bool {
	return rawjson.Kind(rawjson.Find(s.State.Capabilities, capability)) == '{'
}
