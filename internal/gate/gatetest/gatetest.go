// Package gatetest puts a gate in front of the world of catalogtest. Tests of what stands on a
// gate share it. It is for tests only.
package gatetest

import (
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/catalogtest"
	"mcpproxy/internal/gate"
)

// Deps returns what a gate needs, all of it from the world: no server asks for a login, and no
// user is asked about a call.
func Deps(w *catalogtest.Harness) gate.Deps {
	return gate.Deps{
		Config: w.Config, Catalog: w.Catalog, Servers: w.Surface, Offers: catalog.NewPrimitiveGuard(w.Catalog, w, catalogtest.Logger),
		Log: w, Results: w, NeedsLogin: func(string) bool { return false }, Proposed: w.Book.Proposed, Logger: catalogtest.Logger,
	}
}
