// Package offers hides from clients the prompts, resources, templates and
// instructions of a server that nobody has approved, and in its list of tools those
// that cannot be called.
//
// It guarantees that every list, and every introduction, goes out without what
// is not approved and otherwise as the server's bytes; that what is locked or not
// known cannot be used; and that what can be read in two ways is refused. What
// servers list it asks them for by itself, when they connect, when they say that
// it has changed, and before a use of what may have. It decides nothing: catalog
// keeps the definitions, approval judges them. It records nothing: a use that it
// refuses is a Locked, which the door puts on record.
package offers

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"mcpproxy/internal/catalog"
)

// Source is what a Guard needs of upstream.Set.
type Source interface {
	// Offered returns the whole list that a method asks for.
	Offered(ctx context.Context, server, method, list string) ([]json.RawMessage, error)
	// Learn has definitions of tools known that a client alone was listed.
	Learn(server string, definitions []json.RawMessage) (news bool)
	// Refresh has a server list its tools again.
	Refresh(ctx context.Context, server string, since time.Time)
}

// Guard stands before the lists of all servers.
type Guard struct {
	catalog  *catalog.Catalog
	source   Source
	logger   *slog.Logger
	listings listings
	doubts   chan struct{} // cap 1: what a server lists may be another
}

// New makes a Guard.
func New(c *catalog.Catalog, s Source, l *slog.Logger) *Guard {
	return &Guard{catalog: c, source: s, logger: l, doubts: make(chan struct{}, 1)}
}
