package sandbox

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// npxArguments are the arguments of npx.
type npxArguments struct {
	flags    []string // that matter for the installation
	packages []string
	bin      string // the program, if it is named
	rest     []string
}

func parseNpx(args []string) (a npxArguments, err error) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, value, hasValue := strings.Cut(arg, "=")
		switch {
		case arg == "-y" || arg == "--yes" || arg == "-q" || arg == "--quiet" || arg == "--prefer-offline" || arg == "--prefer-online" || arg == "--":
		case name == "-p" || name == "--package":
			if !hasValue {
				if i++; i >= len(args) {
					return a, errNotResolved("npx has %s without a package", arg)
				}
				value = args[i]
			}
			a.packages = append(a.packages, value)
		case name == "--registry" && hasValue || name == "--ignore-scripts":
			a.flags = append(a.flags, arg)
		case strings.HasPrefix(arg, "-"):
			return a, errNotResolved(`the argument %s of npx is not supported in a sandbox: remove it, or start the installed program by "node"`, arg)
		default:
			a.bin, a.rest = arg, args[i+1:]
			if len(a.packages) == 0 {
				a.packages, a.bin = []string{arg}, ""
			}
			for _, p := range a.packages {
				if packageName(p) == "" {
					return a, errNotResolved("npx has %s: only packages of a registry can run in a sandbox, such as NAME@VERSION", p)
				}
			}
			return a, nil
		}
	}
	return a, errNotResolved("npx names no package")
}

// packageName returns the name in NAME@VERSION; "" for a folder or a URL.
func packageName(spec string) string {
	name := spec
	if i := strings.LastIndex(spec, "@"); i > 0 {
		name = spec[:i]
	}
	if name == "" || strings.ContainsAny(spec, ":\\ ") || name[0] == '.' || name[0] == '/' || name[0] == '~' {
		return ""
	}
	if scope, _, ok := strings.Cut(name, "/"); ok && scope[0] != '@' { // a repository of GitHub
		return ""
	}
	return name
}

// npxLaunch returns the launch of a package in npm's cache, or the command that installs it there. It runs the program
// of the package itself, so that npx need not write to its cache.
func npxLaunch(npx string, args, env []string) (launch, error) {
	a, err := parseNpx(args)
	if err != nil {
		return launch{}, err
	}
	cache := npmCache(env)
	sorted := slices.Sorted(slices.Values(a.packages))
	sum := sha512.Sum512([]byte(strings.Join(sorted, "\n"))) // the folder that npx uses
	folder := filepath.Join(cache, "_npx", hex.EncodeToString(sum[:])[:16])
	bin := npmProgram(filepath.Join(folder, "node_modules"), a)
	if bin == "" {
		install := []string{npx, "--yes", "--ignore-scripts"}
		for _, p := range a.packages {
			install = append(install, "--package="+p)
		}
		install = append(append(install, a.flags...), "-c", "exit 0")
		return launch{install: install}, nil
	}
	l, err := programLaunch(bin, a.rest, env, "")
	l.reads, l.npmFolder = append(l.reads, folder), folder
	return l, err
}

// npmCache returns npm's cache folder.
func npmCache(env []string) string {
	for _, name := range []string{"npm_config_cache", "NPM_CONFIG_CACHE"} {
		if dir := variable(env, name); dir != "" {
			return dir
		}
	}
	home := variable(env, "HOME")
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

// npmProgram returns the file of a package that npx would run; "" if the package is not installed.
func npmProgram(modules string, a npxArguments) string {
	if a.bin != "" {
		file := filepath.Join(modules, ".bin", a.bin)
		if _, err := os.Stat(file); err != nil {
			return ""
		}
		return file
	}
	name := packageName(a.packages[0])
	text, err := os.ReadFile(filepath.Join(modules, name, "package.json"))
	if err != nil {
		return ""
	}
	var manifest struct {
		Bin json.RawMessage `json:"bin"`
	}
	if json.Unmarshal(text, &manifest) != nil {
		return ""
	}
	var one string
	var many map[string]string
	if json.Unmarshal(manifest.Bin, &one) != nil && json.Unmarshal(manifest.Bin, &many) == nil {
		one = many[filepath.Base(name)]
		if len(many) == 1 {
			for _, file := range many {
				one = file
			}
		}
	}
	file := filepath.Join(modules, name, one)
	if one == "" || !isWithin(file, modules) {
		return ""
	}
	return file
}
