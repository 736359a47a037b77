package doctor

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/upstream/process"
	"mcpproxy/internal/upstream/sandbox"
)

// requiredPrograms lists the other programs that a program needs.
var requiredPrograms = map[string][]string{"npx": {"node"}, "npm": {"node"}, "pnpm": {"node"}, "pnpx": {"node"}, "yarn": {"node"}}

// toolchainOf returns the toolchain that the user installs if the program is missing.
func toolchainOf(program string) string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	switch name {
	case "npx", "npm", "node", "pnpm", "pnpx", "yarn":
		return toolchainNode
	case "uvx", "uv":
		return toolchainUV
	case "docker", "podman", "nerdctl":
		return toolchainEngine
	}
	return ""
}

// The toolchains.
const (
	toolchainNode   = "node"
	toolchainUV     = "uv"
	toolchainEngine = "engine"
)

// toServerFacts converts the servers of the configuration file.
func toServerFacts(all []config.Server) (out []ServerFacts) {
	for _, s := range all {
		shown := s.Masked()
		one := newServerFacts(ops.ServerView{Name: s.Name, Command: shown.Command, Args: shown.Args, URL: shown.URL, Enabled: s.Enabled, Quarantined: s.Quarantined})
		one.Dir, one.DuplicateOf = shown.WorkingDir, findDuplicateServer(s, all)
		one.Missing, one.MissingDir = missingPrerequisites(s.Launch)
		if s.Sandbox.Mode == sandbox.Container { // the command is a program of the image
			one.Missing = ""
			if sandbox.Engine(s.Env["PATH"]) == "" {
				one.Missing = "docker"
			}
		}
		if one.Missing == s.Command {
			one.Missing = shown.Command // with secrets masked
		}
		out = append(out, one)
	}
	return out
}

func newServerFacts(v ops.ServerView) ServerFacts {
	return ServerFacts{ServerRow: ops.ServerRow{ServerView: v}}
}

// findDuplicateServer returns the name of the first enabled server before s with the same launch configuration.
func findDuplicateServer(s config.Server, all []config.Server) string {
	for _, o := range all {
		if o.Name == s.Name {
			return ""
		}
		if s.Enabled && o.Enabled && isSameLaunch(s.Launch, o.Launch) {
			return o.Name
		}
	}
	return ""
}

// isSameLaunch compares launch configurations with resolved references, because two servers that differ only in a token
// use different accounts.
func isSameLaunch(a, b config.Launch) bool {
	return a.Command == b.Command && slices.Equal(a.Args, b.Args) && a.WorkingDir == b.WorkingDir && a.URL == b.URL &&
		maps.Equal(a.Env, b.Env) && maps.Equal(a.Headers, b.Headers)
}

// missingPrerequisites returns the program and the working directory that a launch needs but that do not exist. It
// searches the program in the server's PATH or, if it sets none, in this process's PATH.
func missingPrerequisites(s config.Launch) (program, dir string) {
	if info, err := os.Stat(s.WorkingDir); s.WorkingDir != "" && (err != nil || !info.IsDir()) {
		dir = s.WorkingDir
	}
	if s.Command == "" {
		return "", dir
	}
	for _, name := range append([]string{s.Command}, requiredPrograms[filepath.Base(s.Command)]...) {
		if process.FindCommand(name, s.Env["PATH"]) == "" {
			return name, dir
		}
	}
	return "", dir
}

// mergeConfigured adds facts from the configuration file to a server that the daemon reports.
func (s *ServerFacts) mergeConfigured(file []ServerFacts) {
	for _, o := range file {
		if o.Name == s.Name {
			s.DuplicateOf, s.Clear = o.DuplicateOf, o.Clear
		}
	}
}
