package compat

import (
	"crypto/sha256"
	"strings"
	"sync"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// maxKnownPages limits the pages that are stored for one list. A longer list ends at the limit.
const maxKnownPages = 10_000

// pageGraph stores which page of a list leads to which, to end a list whose pages lead in a circle. All clients of a
// server share it. It could end a correct list only if two clients saw the pages in opposite orders.
type pageGraph struct {
	mu   sync.Mutex // guards next
	next map[string]map[pageKey]pageKey
}

// pageKey is the digest of a cursor: a server may choose long ones.
type pageKey [sha256.Size]byte

// endEndlessList removes nextCursor from a page that would lead the client in a circle, because the client would never
// stop. All other parts of a list are passed on unchanged.
func (c *serverClients) endEndlessList(r *session.Request, reply *session.Reply) {
	if !strings.HasSuffix(r.Method, "/list") || reply.Error != nil {
		return
	}
	asked, next := wirejson.Find(r.Params, "cursor"), wirejson.Find(reply.Result, "nextCursor")
	if !c.pages.closesCycle(r.Method, cursorText(asked), cursorText(next)) {
		return
	}
	reply.Result = wirejson.DropMember(reply.Result, "nextCursor")
	c.sv.ReportRepeatedCursor(r.Method)
}

// cursorText returns a cursor as text, because clients may send a number back as text. It returns "" if there is no
// cursor.
func cursorText(cursor []byte) string {
	if text, ok := wirejson.String(cursor); ok || string(cursor) == "null" {
		return text
	}
	return string(cursor)
}

// closesCycle reports whether the page at cursor next is known to lead back to the page at cursor asked. Otherwise it
// stores that asked leads to next. The first page has no cursor: a client that requests it starts a new listing.
func (g *pageGraph) closesCycle(method, asked, next string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if asked == "" || next == "" {
		delete(g.next, method)
		return false
	}
	from, to := pageKey(sha256.Sum256([]byte(asked))), pageKey(sha256.Sum256([]byte(next)))
	known := g.next[method]
	for at, more := to, true; more; at, more = known[at] {
		if at == from {
			return true
		}
	}
	if len(known) == maxKnownPages {
		return true
	}
	if known == nil {
		known = map[pageKey]pageKey{}
		if g.next == nil {
			g.next = map[string]map[pageKey]pageKey{}
		}
		g.next[method] = known
	}
	known[from] = to
	return false
}
