package app

import (
	"context"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/upstream"
)

// printWelcome tells the user the next steps.
func (d *daemon) printWelcome() {
	p := d.terminal
	if isMissing(d.live.Path()) {
		p.printLine("Welcome to MCPProxy. No servers are configured yet; add some with")
		p.printLine("  mcpproxy upstream add NAME -- COMMAND …     or     mcpproxy upstream add NAME --url URL")
		p.printLine("in another terminal. They are kept in %s.", d.live.Path())
		p.printLine("")
	}
	p.printLine("MCPProxy %s answers. The address for your MCP clients:", d.opt.Version)
	p.printLine("  http://%s/mcp", d.tcp.Addr())
	p.printLine("or have them run `mcpproxy stdio`. The web UI: `mcpproxy ui`. What runs: `mcpproxy status`. The data is in %s.", d.live.Current().DataDir)
	p.printLine("Ctrl-C stops it: calls that run may finish, the servers that it has started end with it, the log stays.")
	p.printLine("")
}

// logPendingReviews logs, once the approvals are loaded, whether approvals were lost, and which servers wait for review.
func (d *daemon) logPendingReviews(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-d.book.LoadedChan():
	}
	for _, warning := range d.gateway.MissingApprovalWarnings() {
		d.logger.Warn(warning)
	}
	for _, s := range d.live.Current().Servers {
		if s.Enabled && catalog.IsQuarantined(s, d.book.ServerView(s.Name)) {
			d.terminal.printEvent("%s waits for your review: mcpproxy upstream approve %s", s.Name, s.Name)
		}
	}
}

// printState tells the user about a server's new state.
func (r *serverEventRecorder) printState(s upstream.State) {
	switch s.Phase {
	case upstream.Ready:
		r.terminal.printEvent("%s is ready.", s.Name)
	case upstream.Failed:
		why, _, _ := strings.Cut(strings.TrimSpace(s.LastError), "\n")
		r.terminal.printEvent("%s cannot be used: %s (mcpproxy upstream logs %s)", s.Name, toPrintableLine(why), s.Name)
	}
}
