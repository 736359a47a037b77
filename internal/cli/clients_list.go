package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/ops"
)

func newClientsListCommand(r *invocation) commandSpec {
	var all bool
	return commandSpec{flags: map[string]any{"all": &all}, list: true, run: func(cmd *cobra.Command, _ []string) error {
		account, err := newLocalClients(cmd.Context(), r)
		if err != nil {
			return err
		}
		found, err := account.ListClients()
		if err != nil {
			return err
		}
		if !all {
			found.Clients = slices.DeleteFunc(found.Clients, func(v ops.ClientView) bool { return !v.Found && !v.Connected })
		}
		return r.printOutput(found, func(p *printer) { writeClientTable(p, found) })
	}}
}

func writeClientTable(p *printer, all ops.ClientList) {
	ifConnected := func(text func(v ops.ClientView) string) func(v ops.ClientView) string {
		return func(v ops.ClientView) string {
			if !v.Connected {
				return ""
			}
			return text(v)
		}
	}
	list[ops.ClientView]{
		none: "No MCP client was found on this machine. `mcpproxy clients list --all` lists those that MCPProxy knows.",
		columns: []column[ops.ClientView]{
			{title: "CLIENT", text: func(v ops.ClientView) string { return v.ID }},
			{title: "STATE", text: clientState},
			{title: "SURFACE", text: ifConnected(func(v ops.ClientView) string { return v.Surface })},
			{title: "ENTRIES", text: ifConnected(func(v ops.ClientView) string { return strings.Join(v.Servers, ", ") })},
			{title: "CONNECTS TO", wide: true, text: func(v ops.ClientView) string { return v.LeadsTo }},
			{title: "FILE", wide: true, text: func(v ops.ClientView) string { return v.Path }},
		},
		narrow: columnTruncationStep("ENTRIES", 12),
		exact:  true,
	}.write(p, all.Clients)
}

// clientState describes whether and how a client is connected.
func clientState(v ops.ClientView) string {
	switch {
	case len(v.Broken) > 0 && !v.Connected:
		return "unreadable file"
	case !v.Connected:
		return "not connected"
	case v.Missing != "":
		return "missing program"
	case v.Foreign:
		return "leads elsewhere"
	}
	return "connected"
}
