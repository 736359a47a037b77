package gate

import (
	"crypto/sha256"
	"sync"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/mcp"
)

// listDigests are the digests of the lists of all servers, by catalog.ListKind. Equal digests mean
// equal lists.
type listDigests [len(listNotifications)][sha256.Size]byte

// listNotifications are the lists whose changes are announced: the notification, and the member that requests it in a
// subscription. Resource templates count as resources.
var listNotifications = [...]struct{ method, wish string }{
	catalog.ListTools:     {mcp.ToolsChanged, "toolsListChanged"},
	catalog.ListPrompts:   {mcp.PromptsChanged, "promptsListChanged"},
	catalog.ListResources: {mcp.ResourcesChanged, "resourcesListChanged"},
}

// clientKnownLists stores which lists a client has received.
type clientKnownLists struct {
	mu    sync.Mutex // guards the following fields
	known [len(listNotifications)]bool
	last  listDigests
}

// markSent stores that the client receives the list l with this digest.
func (h *clientKnownLists) markSent(l catalog.ListKind, now listDigests) {
	l = min(l, catalog.ListResources)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[l], h.last[l] = true, now[l]
}

// takeChangedLists returns the lists that differ from those the client has received, and stores the new
// digests. A list that the client has never received does not count as changed.
func (h *clientKnownLists) takeChangedLists(now listDigests) (lists []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range listNotifications {
		if h.known[i] && h.last[i] != now[i] {
			lists = append(lists, i)
		}
		h.known[i], h.last[i] = true, now[i]
	}
	return lists
}
