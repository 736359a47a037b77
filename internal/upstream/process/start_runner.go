package process

import (
	"path"
	"strings"
)

// Runner is a program that fetches a server before it starts it: a package manager or a
// container engine. The zero value is a plain program.
type Runner struct {
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

// weight returns the capacity that a start takes.
func (r Runner) weight() int {
	if r.Name == "" {
		return plainWeight
	}
	return runnerWeight
}

// key is equal for launches that would fetch the same package into the same cache; "" if
// that is harmless.
func (r Runner) key() string {
	if !r.Installs {
		return ""
	}
	return r.Name + " " + r.pkg
}

// maxWrappers bounds the programs around a runner: env, sh -c, …
const maxWrappers = 8

// RunnerOf detects the runner that a command starts, also inside a shell.
func RunnerOf(command string, args []string) Runner {
	words := append([]string{command}, args...)
	for range maxWrappers {
		if len(words) == 0 {
			return Runner{}
		}
		name, args := programName(words[0]), words[1:]
		if r := runnerByName(name, args); r.Name != "" {
			return r
		}
		switch name {
		case "env":
			words = afterAssignments(args)
		case "cmd":
			words = splitQuotedCommand(afterFlag(args, "/c", "/k"))
		case "sh", "bash", "zsh", "dash", "ash", "ksh":
			return runnerInScript(afterFlag(args, "-c", "-lc", "-ec", "-ic", "-lic"))
		case "node":
			words = args // npx-cli.js
		case "exec", "nohup", "command":
			words = args
		default:
			return Runner{}
		}
	}
	return Runner{}
}

// runnerInScript detects a runner in a shell script.
func runnerInScript(args []string) Runner {
	if len(args) == 0 {
		return Runner{}
	}
	for _, command := range strings.FieldsFunc(args[0], func(c rune) bool { return strings.ContainsRune("&;|\n", c) }) {
		words := afterAssignments(strings.Fields(command))
		if len(words) > 0 && words[0] == "exec" {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		if r := runnerByName(programName(words[0]), words[1:]); r.Name != "" {
			return r
		}
	}
	return Runner{}
}

// runnerCommands are the commands that fetch a package before they run it, with their
// canonical names.
var runnerCommands = map[string]string{
	"npx": "npx", "npx-cli.js": "npx", "npm exec": "npx", "npm x": "npx",
	"bunx": "bunx", "bun x": "bunx",
	"pnpx": "pnpx", "pnpm dlx": "pnpm dlx", "yarn dlx": "yarn dlx",
	"pipx run": "pipx", "uv run": "uv run", "uvx": "uvx", "uv tool run": "uvx",
}

// runnerByName returns the runner of that name if its arguments run something.
func runnerByName(name string, args []string) Runner {
	first, _ := firstWord(args)
	switch name {
	case "deno":
		for _, arg := range args {
			if strings.HasPrefix(arg, "npm:") || strings.HasPrefix(arg, "jsr:") || strings.HasPrefix(arg, "https://") {
				return Runner{Name: name, Installs: true, pkg: arg}
			}
		}
	case "docker", "podman", "nerdctl":
		if first == "run" || first == "compose" {
			return Runner{Name: name, remote: true}
		}
	}
	command, rest := name, args
	for range 3 { // the program and at most two words
		word, after := firstWord(rest)
		if runner, ok := runnerCommands[command]; ok {
			return Runner{Name: runner, Installs: true, pkg: word}
		}
		command, rest = command+" "+word, after
	}
	return Runner{}
}

// programName returns the base name of a program without a Windows extension.
func programName(file string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(file, `\`, "/")))
	for _, kind := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, kind)
	}
	return name
}

// firstWord returns the first argument that is not a flag, and the rest.
func firstWord(args []string) (word string, rest []string) {
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			return arg, args[i+1:]
		}
	}
	return "", nil
}

// afterAssignments skips what precedes a command: A=B, and flags.
func afterAssignments(words []string) []string {
	for len(words) > 0 && (strings.HasPrefix(words[0], "-") || isAssignment(words[0])) {
		words = words[1:]
	}
	return words
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && !strings.ContainsAny(name, `/\`)
}

// afterFlag returns what follows the first of these flags.
func afterFlag(args []string, flags ...string) []string {
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
