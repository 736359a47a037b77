package catalog

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"
)

// PrimitiveSource is the part of upstream.Set that PrimitiveGuard needs.
type PrimitiveSource interface {
	// ListPrimitives returns all pages of the list that a method requests.
	ListPrimitives(ctx context.Context, server, method, list string) ([]json.RawMessage, error)
	// AddDefinitions adds definitions of tools that a server listed only to a client.
	AddDefinitions(server string, definitions []json.RawMessage) (news bool)
	// RefreshTools lists a server's tools again.
	RefreshTools(ctx context.Context, server string, since time.Time)
}

// PrimitiveGuard filters the lists that servers send to clients, and checks each use of a primitive.
type PrimitiveGuard struct {
	catalog  *Catalog
	source   PrimitiveSource
	logger   *slog.Logger
	listings listRequestLog
	stale    chan struct{} // capacity 1: a list may have changed
}

// NewPrimitiveGuard returns a PrimitiveGuard.
func NewPrimitiveGuard(c *Catalog, s PrimitiveSource, l *slog.Logger) *PrimitiveGuard {
	return &PrimitiveGuard{catalog: c, source: s, logger: l, stale: make(chan struct{}, 1)}
}
