package process

import (
	"strings"

	"mcpproxy/internal/upstream/pin"
)

// PackageRunner is a program that fetches a server before it starts it: a package manager or a
// container engine. The zero value is a plain program.
type PackageRunner struct {
	Name     string // such as "npx"; "" = a plain program
	Installs bool   // into a cache that a kill can corrupt
	remote   bool   // another process does the work, such as a daemon
	pkg      string // the package, as far as the command names it
}

// Weights of starts. See StartQueue.
const (
	plainWeight  = 1
	runnerWeight = 2
)

// startWeight returns the capacity that a start takes.
func (r PackageRunner) startWeight() int {
	if r.Name == "" {
		return plainWeight
	}
	return runnerWeight
}

// packageKey is equal for launches that would fetch the same package into the same cache; "" if
// that is harmless.
func (r PackageRunner) packageKey() string {
	if !r.Installs {
		return ""
	}
	return r.Name + " " + r.pkg
}

// maxWrappers bounds the programs around a runner: env, sh -c, …
const maxWrappers = 8

// DetectRunner detects the runner that a command starts, also inside a shell.
func DetectRunner(command string, args []string) PackageRunner {
	if len(args) > 3 && args[0] == pin.Command { // MCPProxy itself installs and starts a pinned package
		command, args = args[3], args[4:]
	}
	words := append([]string{command}, args...)
	for range maxWrappers {
		if len(words) == 0 {
			return PackageRunner{}
		}
		name, args := pin.ProgramName(words[0]), words[1:]
		if r := matchPackageRunner(name, args); r.Name != "" {
			return r
		}
		switch name {
		case "env":
			words = skipAssignments(args)
		case "cmd":
			words = splitQuotedCommand(argsAfterFlag(args, "/c", "/k"))
		case "sh", "bash", "zsh", "dash", "ash", "ksh":
			return detectRunnerInScript(argsAfterFlag(args, "-c", "-lc", "-ec", "-ic", "-lic"))
		case "node":
			words = args // npx-cli.js
		case "exec", "nohup", "command":
			words = args
		default:
			return PackageRunner{}
		}
	}
	return PackageRunner{}
}

// detectRunnerInScript detects a runner in a shell script.
func detectRunnerInScript(args []string) PackageRunner {
	if len(args) == 0 {
		return PackageRunner{}
	}
	for _, command := range strings.FieldsFunc(args[0], func(c rune) bool { return strings.ContainsRune("&;|\n", c) }) {
		words := skipAssignments(strings.Fields(command))
		if len(words) > 0 && words[0] == "exec" {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		if r := matchPackageRunner(pin.ProgramName(words[0]), words[1:]); r.Name != "" {
			return r
		}
	}
	return PackageRunner{}
}

// runnerCommands are the commands that fetch a package before they run it, with their
// canonical names.
var runnerCommands = map[string]string{
	"npx-cli.js": "npx", "npm exec": "npx", "npm x": "npx",
	"bunx": "bunx", "bun x": "bunx",
	"pnpx": "pnpx", "pnpm dlx": "pnpm dlx", "yarn dlx": "yarn dlx",
	"pipx run": "pipx", "uv run": "uv run", "uv tool run": "uvx",
}

// matchPackageRunner returns the runner of that name if its arguments run something.
func matchPackageRunner(name string, args []string) PackageRunner {
	first, _ := firstNonFlag(args)
	switch name {
	case "deno":
		for _, arg := range args {
			if strings.HasPrefix(arg, "npm:") || strings.HasPrefix(arg, "jsr:") || strings.HasPrefix(arg, "https://") {
				return PackageRunner{Name: name, Installs: true, pkg: arg}
			}
		}
	case "npx", "uvx":
		l, _, _ := pin.ReadLaunch(name, args)
		return PackageRunner{Name: name, Installs: true, pkg: strings.Join(l.Packages, " ")}
	case "docker", "podman", "nerdctl":
		if first == "run" || first == "compose" {
			return PackageRunner{Name: name, remote: true}
		}
	}
	command, rest := name, args
	for range 3 { // the program and at most two words
		word, after := firstNonFlag(rest)
		if runner, ok := runnerCommands[command]; ok {
			return PackageRunner{Name: runner, Installs: true, pkg: word}
		}
		command, rest = command+" "+word, after
	}
	return PackageRunner{}
}

// firstNonFlag returns the first argument that is not a flag, and the rest.
func firstNonFlag(args []string) (word string, rest []string) {
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			return arg, args[i+1:]
		}
	}
	return "", nil
}

// skipAssignments skips what precedes a command: A=B, and flags.
func skipAssignments(words []string) []string {
	for len(words) > 0 && (strings.HasPrefix(words[0], "-") || isAssignment(words[0])) {
		words = words[1:]
	}
	return words
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && !strings.ContainsAny(name, `/\`)
}

// argsAfterFlag returns what follows the first of these flags.
func argsAfterFlag(args []string, flags ...string) []string {
	for i, arg := range args {
		for _, flag := range flags {
			if strings.EqualFold(arg, flag) {
				return args[i+1:]
			}
		}
	}
	return nil
}

// splitQuotedCommand splits a command that was given as one word.
func splitQuotedCommand(words []string) []string {
	if len(words) != 1 {
		return words
	}
	return strings.Fields(strings.Trim(words[0], `"`))
}
