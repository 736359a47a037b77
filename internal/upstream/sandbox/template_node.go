package sandbox

import (
	"cmp"
	"crypto/sha512"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/upstream/pin"
)

// nodeFlagsWithValue are the flags of node whose value is the next argument.
var nodeFlagsWithValue = []string{"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file", "--title"}

// nodeLaunch returns the launch of a script by node.
func nodeLaunch(program string, args, env []string, dir string) (launch, error) {
	if isShim(program) { // of a version manager
		if out, err := ask(env, dir, program, "-p", "process.execPath"); err == nil && len(out) == 1 {
			program = out[0]
		}
	}
	l := launch{program: program, args: args, reads: installationOf(program)}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case slices.Contains(nodeFlagsWithValue, arg):
			i++
		case !strings.HasPrefix(arg, "-"):
			l.reads = append(l.reads, scriptReads(arg, dir, "package.json")...)
			return l, nil
		}
	}
	return l, nil
}

// scriptReads returns what a script reads of its project, also of the one behind a symbolic link.
func scriptReads(script, dir, marker string) (reads []string) {
	if !filepath.IsAbs(script) {
		script = filepath.Join(dir, script)
	}
	reads = append(reads, script, projectOf(script, marker))
	if real, err := filepath.EvalSymlinks(script); err == nil && real != script {
		reads = append(reads, real, projectOf(real, marker))
	}
	return reads
}

// isShim reports whether a program only selects another one: a script, or a program of a version manager.
func isShim(program string) bool {
	return len(shebang(program)) > 0 || strings.Contains(program, "/shims/") || strings.Contains(program, "/.volta/")
}

// npxLaunch returns the launch of a package in npm's cache, or the command that installs it there. It runs the program
// of the package itself, so that npx need not write to its cache.
func npxLaunch(npx string, l pin.Launch, env []string) (launch, error) {
	var names []string
	for _, p := range l.Packages {
		name, _, why := pin.SplitNPM(p)
		if why != "" || name == "" {
			return launch{}, errNotResolved("npx has %s: only packages of a registry can run in a sandbox, such as NAME@VERSION", p)
		}
		names = append(names, name)
	}
	cache := cmp.Or(l.Flag("--cache"), npmCache(env))
	sorted := slices.Sorted(slices.Values(l.Packages))
	sum := sha512.Sum512([]byte(strings.Join(sorted, "\n"))) // the folder that npx uses
	folder := filepath.Join(cache, "_npx", hex.EncodeToString(sum[:])[:16])
	modules := filepath.Join(folder, "node_modules")
	if _, err := os.Stat(filepath.Join(modules, names[0], "package.json")); err != nil {
		install := []string{npx, "--yes", "--ignore-scripts"}
		for _, p := range l.Packages {
			install = append(install, "--package="+p)
		}
		return launch{install: slices.Concat(install, l.NPMFlags(), []string{"-c", "exit 0"})}, nil
	}
	bin, err := pin.NPMProgram(modules, names[0], l.Bin)
	if err != nil {
		return launch{}, errNotResolved("%s", err)
	}
	started, err := programLaunch(bin, l.Args, env, "")
	started.reads, started.npmFolder = append(started.reads, folder), folder
	return started, err
}

// npmCache returns npm's cache folder.
func npmCache(env []string) string {
	for _, name := range []string{"npm_config_cache", "NPM_CONFIG_CACHE"} {
		if dir := pin.Variable(env, name); dir != "" {
			return dir
		}
	}
	home := pin.Variable(env, "HOME")
	text, _ := os.ReadFile(filepath.Join(home, ".npmrc"))
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == "cache" {
			value = strings.Trim(strings.TrimSpace(value), `"`)
			if rest, tilde := strings.CutPrefix(value, "~/"); tilde {
				value = filepath.Join(home, rest)
			}
			return value
		}
	}
	return filepath.Join(home, ".npm")
}
