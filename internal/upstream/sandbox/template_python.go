package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// pythonPlaces prints where Python is installed, without running code of packages (-I -S).
const pythonPlaces = "import sys; print(sys.executable); print(sys.prefix); print(sys.base_prefix); print(sys.exec_prefix)"

// pythonLaunch returns the launch of a script or a module by python.
func pythonLaunch(program string, args, env []string, dir string) (launch, error) {
	places, err := ask(env, dir, program, "-I", "-S", "-c", pythonPlaces)
	if err != nil || len(places) != 4 {
		return launch{}, errNotResolved("%s does not report where it is installed", program)
	}
	l := launch{program: places[0], args: args, reads: installationOf(places[0])}
	for _, place := range append(places[1:], filepath.Dir(filepath.Dir(places[0]))) { // the last one is a virtual environment
		if isInstallation(place) {
			l.reads = append(l.reads, place)
		}
	}
	for _, place := range filepath.SplitList(variable(env, "PYTHONPATH")) {
		if filepath.IsAbs(place) {
			l.reads = append(l.reads, place)
		}
	}
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-W" || arg == "-X":
			i++
		case strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "-m") && arg != "-c":
		case strings.HasPrefix(arg, "-"):
			return l, nil // a module or a program text
		default:
			l.reads = append(l.reads, scriptReads(arg, dir, "pyproject.toml")...)
			return l, nil
		}
	}
	return l, nil
}

// uvFlagsWithValue are the flags of uvx whose value is the next argument.
var uvFlagsWithValue = []string{"--from", "--with", "--python", "-p", "--index", "--default-index", "--index-url", "--extra-index-url", "--constraints", "--overrides"}

// uvxLaunch returns the launch of a package in uv's cache, or the command that installs it there.
func uvxLaunch(uvx string, args, env []string, dir string) (launch, error) {
	var flags []string
	from, i := "", 0
	for ; i < len(args) && strings.HasPrefix(args[i], "-"); i++ {
		name, value, hasValue := strings.Cut(args[i], "=")
		words := []string{args[i]}
		if !hasValue && slices.Contains(uvFlagsWithValue, name) {
			if i++; i >= len(args) {
				return launch{}, errNotResolved("uvx has %s without a value", name)
			}
			value = args[i]
			words = append(words, value)
		}
		if name == "--from" {
			from = value
			continue
		}
		flags = append(flags, words...)
	}
	if i >= len(args) {
		return launch{}, errNotResolved("uvx names no package")
	}
	name, _, _ := strings.Cut(args[i], "@")
	if from == "" {
		from = args[i]
	}
	python := slices.Concat(flags, []string{"--from", from, "python"})
	places, err := ask(env, dir, uvx, slices.Concat([]string{"--offline"}, python, []string{"-I", "-S", "-c", pythonPlaces})...)
	if err != nil || len(places) != 4 {
		return launch{install: slices.Concat([]string{uvx}, python, []string{"-c", ""})}, nil
	}
	prefix := filepath.Dir(filepath.Dir(places[0]))
	l, err := programLaunch(filepath.Join(prefix, "bin", name), args[i+1:], env, dir)
	// The files of packages may be links into the cache.
	l.reads = append(l.reads, prefix, uvCache(env))
	return l, err
}

// uvCache returns uv's cache folder.
func uvCache(env []string) string {
	if dir := variable(env, "UV_CACHE_DIR"); dir != "" {
		return dir
	}
	if dir := variable(env, "XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "uv")
	}
	return filepath.Join(variable(env, "HOME"), ".cache", "uv")
}
