package cli

import (
	"mcpproxy/internal/ops"
)

// writeSuggestion shows a proposed sandbox, why it is so, and the command that sets it.
func writeSuggestion(p *printer, s ops.SandboxSuggestion) {
	p.writeLine("%s", escapeInvisibleLine(string(s.Sandbox)))
	p.writeWrapped("", "\n"+escapeInvisibleLine(s.Name)+" "+escapeInvisibleLine(s.Text)+".")
	for _, why := range s.Reasons {
		p.writeWrapped("  ", escapeInvisibleLine(why))
	}
	if len(s.LeftOut) > 0 {
		p.writeLine("\nNot proposed:")
		for _, what := range s.LeftOut {
			p.writeWrapped("  ", escapeInvisibleLine(what))
		}
	}
	switch {
	case s.Untried:
		p.writeWrapped("", "\nThe server was not tried in this sandbox, because it allows more than the server's current one.")
	case !s.Started:
		p.writeWrapped("", "\nThe server was not started, because its launch is not approved or it is disabled. The proposal is from its arguments and environment.")
	case s.Ready:
		p.writeWrapped("", "\nThe server listed its tools in this sandbox. A tool call can need more: see `mcpproxy upstream logs "+escapeInvisibleLine(s.Name)+"`.")
	default:
		p.writeWrapped("", "\n"+p.colorize(colorWarning, "Warning:")+" the server did not list its tools in this sandbox: "+toOneLine(s.Problem))
	}
	p.writeLine("\nTo set it, run:\n  %s", escapeInvisibleLine(s.Command))
}
