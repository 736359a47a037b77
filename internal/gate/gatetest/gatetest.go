// Package gatetest makes the dependencies of a gate from the servers of catalogtest. Tests of packages that use a
// gate share it. No server requires a login, and no call waits for a user. It is for tests only.
package gatetest

import (
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/catalogtest"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/upstream/oauth"
)

// NewDeps returns the dependencies of a gate, all from w. No server requires a login, and no call waits for a user.
func NewDeps(w *catalogtest.Harness) gate.Deps {
	return gate.Deps{
		Config: w.Config, Catalog: w.Catalog, UpstreamSurface: w.Surface, Offers: catalog.NewPrimitiveGuard(w.Catalog, w, catalogtest.Logger),
		Log: w, Results: w, Logins: (*oauth.Accounts)(nil), Proposed: w.Book.IsProposed, Logger: catalogtest.Logger,
	}
}
