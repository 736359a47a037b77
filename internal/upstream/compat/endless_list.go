package compat

import (
	"crypto/sha256"
	"strings"
	"sync"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// maxKnownPages bounds the pages of one list that are known. A list with more ends there.
const maxKnownPages = 10_000

// pageGraph knows which page of a list leads to which, so that a list whose pages lead in a circle ends. All clients of a
// server share it: a circle needs two clients that see the list in opposite orders, and then the server has no order.
type pageGraph struct {
	mu   sync.Mutex // guards next
	next map[string]map[pageKey]pageKey
}

// pageKey is the digest of a cursor: a server may choose long ones.
type pageKey [sha256.Size]byte

// endEndlessList removes nextCursor from a page that would lead the client in a circle: the client would never stop asking.
// Everything else of a list is passed on as the server sent it.
func (c *serverClients) endEndlessList(r *session.Request, reply *session.Reply) {
	if !strings.HasSuffix(r.Method, "/list") || reply.Error != nil {
		return
	}
	asked, next := wirejson.Find(r.Params, "cursor"), wirejson.Find(reply.Result, "nextCursor")
	if !c.pages.leadsBack(r.Method, cursorText(asked), cursorText(next)) {
		return
	}
	reply.Result = wirejson.DropMember(reply.Result, "nextCursor")
	c.sv.ReportRepeatedCursor(r.Method)
}

// cursorText returns what a cursor says: clients may send a number back as text. It is "" if there is no page.
func cursorText(cursor []byte) string {
	if text, ok := wirejson.String(cursor); ok || string(cursor) == "null" {
		return text
	}
	return string(cursor)
}

// leadsBack reports whether the page at cursor next is known to lead back to the page at cursor asked. Otherwise it remembers
// that asked leads to next. The first page has no cursor: a client that requests it starts a new listing.
func (g *pageGraph) leadsBack(method, asked, next string) bool {
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
