package gate

import (
	"crypto/sha256"
	"sync"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/mcp"
)

// aggregateListed stands for what the lists of all servers say, by catalog.PrimitiveList: two that
// are equal say the same.
type aggregateListed [len(announced)][sha256.Size]byte

// announced are the lists whose changes are announced: by which notification,
// and how a subscription asks for it. Templates are resources.
var announced = [...]struct{ method, wish string }{
	catalog.ListTools:     {mcp.ToolsChanged, "toolsListChanged"},
	catalog.ListPrompts:   {mcp.PromptsChanged, "promptsListChanged"},
	catalog.ListResources: {mcp.ResourcesChanged, "resourcesListChanged"},
}

// knownLists is what a client knows of the lists.
type knownLists struct {
	mu    sync.Mutex // guards what follows
	knows [len(announced)]bool
	last  aggregateListed
}

// gets notes that the client gets a list.
func (h *knownLists) gets(l catalog.ListKind, now aggregateListed) {
	l = min(l, catalog.ListResources)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.knows[l], h.last[l] = true, now[l]
}

// changed returns the lists that are not what the client knows. What it has never
// been told of it gets to know now.
func (h *knownLists) changed(now aggregateListed) (lists []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range announced {
		if h.knows[i] && h.last[i] != now[i] {
			lists = append(lists, i)
		}
		h.knows[i], h.last[i] = true, now[i]
	}
	return lists
}
