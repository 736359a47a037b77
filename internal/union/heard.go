package union

import (
	"crypto/sha256"
	"sync"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/offers"
)

// listed stands for what the lists of all servers say, by offers.List: two that
// are equal say the same.
type listed [len(announced)][sha256.Size]byte

// announced are the lists whose changes are announced: by which notification,
// and how a subscription asks for it. Templates are resources.
var announced = [...]struct{ method, wish string }{
	offers.Tools:     {mcp.ToolsChanged, "toolsListChanged"},
	offers.Prompts:   {mcp.PromptsChanged, "promptsListChanged"},
	offers.Resources: {mcp.ResourcesChanged, "resourcesListChanged"},
}

// heard is what a client knows of the lists.
type heard struct {
	mu    sync.Mutex // guards what follows
	knows [len(announced)]bool
	last  listed
}

// gets notes that the client gets a list.
func (h *heard) gets(l offers.List, now listed) {
	l = min(l, offers.Resources)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.knows[l], h.last[l] = true, now[l]
}

// changed returns the lists that are not what the client knows. What it has never
// been told of it gets to know now.
func (h *heard) changed(now listed) (lists []int) {
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
