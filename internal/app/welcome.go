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
		p.printLine("Welcome to MCPProxy. There are no servers yet. Add some with")
		p.printLine("  mcpproxy upstream add NAME -- COMMAND …     or     mcpproxy upstream add NAME --url URL")
		p.printLine("in another terminal. They are stored in %s.", d.live.Path())
		p.printLine("")
	}
	p.printLine("MCPProxy %s is running. Address for your MCP clients:", d.opt.Version)
	p.printLine("  http://%s/mcp", d.tcp.Addr())
	p.printLine("or the command `mcpproxy stdio`. Web UI: `mcpproxy ui`. To see the state, run `mcpproxy status`. Data: %s.", d.live.Current().DataDir)
	p.printLine("Press Ctrl-C to stop MCPProxy and its servers. Running calls may finish.")
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
