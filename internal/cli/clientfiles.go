package cli

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/mcpserver"
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
