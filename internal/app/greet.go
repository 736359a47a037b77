package app

import (
	"context"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/upstream"
)

// greet tells the person who has started it what to do now.
func (d *daemon) greet() {
	p := d.person
	if missing(d.live.Path()) {
		p.say("Welcome to MCPProxy. There is no configuration yet, so there are no servers; add some with")
		p.say("  mcpproxy upstream add NAME -- COMMAND …     or     mcpproxy upstream add NAME --url URL")
		p.say("in another terminal. They are kept in %s.", d.live.Path())
		p.say("")
	}
	p.say("MCPProxy %s answers. The address for your MCP clients:", d.opt.Version)
	p.say("  http://%s/mcp", d.tcp.Addr())
	p.say("or have them run `mcpproxy stdio`. The web UI: `mcpproxy ui`. What runs: `mcpproxy status`. The data is in %s.", d.live.Current().DataDir)
	p.say("Ctrl-C stops it: calls that run may finish, the servers that it has started end with it, the log stays.")
	p.say("")
}

// tellWhatWaits says, once the approvals are read, why so much waits when those of
// an earlier database were lost, and which servers wait for their review.
func (d *daemon) tellWhatWaits(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-d.book.Loaded():
	}
	for _, warning := range d.gateway.TrustWarnings() {
		d.logger.Warn(warning)
	}
	for _, s := range d.live.Current().Servers {
		if s.Enabled && catalog.Quarantined(s, d.book.View(s.Name)) {
			d.person.event("%s waits for your review: mcpproxy upstream approve %s", s.Name, s.Name)
		}
	}
}

// tell says to a person what became of a server.
func (r *recorder) tell(s upstream.State) {
	switch s.Phase {
	case upstream.Ready:
		r.person.event("%s is ready.", s.Name)
	case upstream.Failed:
		why, _, _ := strings.Cut(strings.TrimSpace(s.LastError), "\n")
		r.person.event("%s cannot be used: %s (mcpproxy upstream logs %s)", s.Name, printable(why), s.Name)
	}
}
