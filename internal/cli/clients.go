package cli

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/mcpserver"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/process"
)

// newClientFileEnv returns the environment that determines the paths of the clients' files.
func newClientFileEnv(r *invocation) (clients.Env, error) {
	env, err := clients.SystemEnv(runtime.GOOS)
	if err != nil {
		return env, problem.New(problem.Internal, "The home directory is unknown: "+err.Error()+".", "Set HOME.")
	}
	env.Getenv = func(name string) string { value, _ := r.lookupEnv(name); return value }
	env.Program = func(name string) string { return process.FindCommand(name, env.Getenv("PATH")) }
	if home, set := r.lookupEnv("HOME"); set && env.GOOS != "windows" {
		env.Home = home
	}
	return env, nil
}

// configuredBuiltinTools returns the built-in tools that the configuration enables.
func configuredBuiltinTools(r *invocation) ([]permission.ProxyTool, error) {
	live, err := r.openConfig()
	if err != nil {
		return nil, err
	}
	return permission.ParseTools(mcpserver.BuiltinDefinitions(live.Current().MCPManagement)), nil
}

// openClientJournal opens the journal of changes to clients' files.
func openClientJournal(r *invocation) (*clients.Journal, error) {
	dir, err := r.resolveDataDir()
	if err != nil {
		return nil, err
	}
	return clients.OpenJournal(filepath.Join(dir, "client_changes"))
}

// writeColoredDiff writes a line-by-line diff in color.
func writeColoredDiff(p *printer, difference string) {
	for line := range strings.SplitSeq(difference, "\n") {
		h := colorNone
		switch {
		case strings.HasPrefix(line, "+"):
			h = colorGood
		case strings.HasPrefix(line, "-"):
			h = colorBad
		}
		fmt.Fprintln(p, p.colorize(h, escapeInvisible(line)))
	}
}

// undoneChangeText describes an undone change of a file.
func undoneChangeText(path string, created, partly bool) string {
	switch {
	case partly:
		return toPrintable(path) + " was changed by another program since. MCPProxy reverted only its own changes."
	case created:
		return toPrintable(path) + " is removed again."
	}
	return toPrintable(path) + " is restored."
}

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
