package catalog

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"
)

// PrimitiveSource is what a Guard needs of upstream.Set.
type PrimitiveSource interface {
	// Offered returns the whole list that a method asks for.
	Offered(ctx context.Context, server, method, list string) ([]json.RawMessage, error)
	// Learn has definitions of tools known that a client alone was listed.
	Learn(server string, definitions []json.RawMessage) (news bool)
	// Refresh has a server list its tools again.
	Refresh(ctx context.Context, server string, since time.Time)
}

// PrimitiveGuard stands before the lists of all servers.
type PrimitiveGuard struct {
	catalog  *Catalog
	source   PrimitiveSource
	logger   *slog.Logger
	listings listings
	doubts   chan struct{} // cap 1: what a server lists may be another
}

// NewPrimitiveGuard makes a Guard.
func NewPrimitiveGuard(c *Catalog, s PrimitiveSource, l *slog.Logger) *PrimitiveGuard {
	return &PrimitiveGuard{catalog: c, source: s, logger: l, doubts: make(chan struct{}, 1)}
}
