package cli

import (
	"context"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
)

func newPauseCommand(r *invocation) commandSpec {
	in := ops.PauseRequest{}
	return commandSpec{flags: map[string]any{"reason": &in.Reason}, run: operationRunFunc(r, api.PauseCalls, func(context.Context, *api.Client, []string) (ops.PauseRequest, error) { return in, nil },
		func(p *printer, v ops.PauseView) {
			p.writeLine("Calls are %s: MCPProxy rejects every call until you run `mcpproxy resume`. Cancelled: %s.", p.colorize(colorBad, "paused"), countWithNoun(v.Cancelled, "held or running call"))
			if v.Running > 0 {
				p.writeLine("Still running: %s.", countWithNoun(v.Running, "cancelled call"))
			}
		})}
}

func writeResumed(p *printer, _ ops.PauseView) { p.writeLine("Calls are allowed again.") }

// writePause prints who paused calls and why.
func writePause(p *printer, v ops.PauseView) {
	text := "All calls are paused by " + toOneLine(v.By) + " since " + p.formatTime(v.At)
	if v.Reason != "" {
		text += ": " + toOneLine(v.Reason)
	}
	if v.Unknown != "" {
		text = "MCPProxy rejects every call, because it cannot read whether calls are paused: " + toOneLine(v.Unknown)
	}
	p.writeWrapped("", p.colorize(colorBad, "Paused:")+" "+text)
	p.writeLine("Resume with `mcpproxy resume`.\n")
}
