// Package gatetest makes the dependencies of a gate from the servers of catalogtest. Tests of packages that use a
// gate share it. No server requires a login, and no call waits for a user. It is for tests only.
package gatetest

import (
	"context"
	"path/filepath"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/pause"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/upstream/oauth"
)

// NewDeps returns the dependencies of a gate, all from w. No server requires a login, and no call waits for a user.
func NewDeps(w *catalogtest.Harness) gate.Deps {
	return gate.Deps{
		Config: w.Config, Catalog: w.Catalog, UpstreamSurface: w.Surface, Offers: catalog.NewPrimitiveGuard(w.Catalog, w, catalogtest.Logger),
		Pause: newSwitch(w), Log: w, Results: w, Logins: (*oauth.Accounts)(nil), Proposed: w.Book.IsProposed, Logger: catalogtest.Logger,
	}
}

// newSwitch returns a kill switch that is off.
func newSwitch(w *catalogtest.Harness) *pause.Switch {
	s := pause.New(pause.File{Path: filepath.Join(w.T.TempDir(), "pause.json")}, func() {})
	if err := s.Reload(context.Background(), false); err != nil {
		w.T.Fatal(err)
	}
	return s
}
