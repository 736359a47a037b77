package ops

import (
	"slices"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
)

// An actor can use the callable tools of the enabled and approved servers in its scope.
func TestUsable(t *testing.T) {
	w := newWorld(t, func(c *config.Config) {
		c.Servers = append(c.Servers, config.Server{Name: "new", Enabled: true}, config.Server{Name: "off"}, config.Server{Name: "jail", Enabled: true, Quarantined: true})
		c.Servers[0].DisabledTools = []string{"destroys"}
	}, readsTool, destroysTool)
	got, changed := w.gateway.UsableServers(&anAgent)
	if want := []UsableServer{{"new", false, 0}, {"s", true, 1}}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got, _ := w.gateway.UsableServers(&auth.Caller{}); got != nil {
		t.Errorf("without an actor: %+v", got)
	}
	w.Reload(func(c *config.Config) { c.Servers[0].DisabledTools = nil })
	select {
	case <-changed:
	default:
		t.Error("the change channel is not closed")
	}
	if got, _ := w.gateway.UsableServers(&anAgent); got[1].Tools != 2 {
		t.Errorf("%+v", got)
	}
}
