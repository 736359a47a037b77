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

// clientsEnv returns the environment in which clients' files are searched.
func clientsEnv(r *run) (clients.Env, error) {
	env, err := clients.SystemEnv(runtime.GOOS)
	if err != nil {
		return env, problem.New(problem.Internal, "The home directory is not known: "+err.Error()+".", "Set HOME.")
	}
	env.Getenv = func(name string) string { value, _ := r.lookup(name); return value }
	env.Program = func(name string) string { return process.FindCommand(name, env.Getenv("PATH")) }
	if home, set := r.lookup("HOME"); set && env.GOOS != "windows" {
		env.Home = home
	}
	return env, nil
}

// builtinTools returns MCPProxy's built-in tools as configured.
func builtinTools(r *run) ([]permission.ProxyTool, error) {
	live, err := r.open(r.configPath)
	if err != nil {
		return nil, err
	}
	return permission.ParseTools(mcpserver.BuiltinDefinitions(live.Current().MCPManagement)), nil
}

// clientChanges opens the journal of changes to clients' files.
func clientChanges(r *run) (*clients.Journal, error) {
	dir, err := r.dataDirectory()
	if err != nil {
		return nil, err
	}
	return clients.OpenJournal(filepath.Join(dir, "client_changes"))
}

// writeDiffLines writes the lines of a difference in colour.
func writeDiffLines(p *printer, difference string) {
	for line := range strings.SplitSeq(difference, "\n") {
		h := noHue
		switch {
		case strings.HasPrefix(line, "+"):
			h = hueGood
		case strings.HasPrefix(line, "-"):
			h = hueBad
		}
		fmt.Fprintln(p, p.paint(h, visible(line)))
	}
}

// undoneText describes an undone change of a file.
func undoneText(path string, created, partly bool) string {
	switch {
	case partly:
		return printable(path) + " was changed by others since: what MCPProxy has done in it is taken back, the rest stays."
	case created:
		return printable(path) + " is gone again, as before."
	}
	return printable(path) + " is again as it was before."
}
