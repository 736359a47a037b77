package sandbox

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/upstream/pin"
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
	for _, place := range filepath.SplitList(pin.Variable(env, "PYTHONPATH")) {
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

// uvxLaunch returns the launch of a package in uv's cache, or the command that installs it there.
func uvxLaunch(uvx string, l pin.Launch, env []string, dir string) (launch, error) {
	python := slices.Concat(l.Flags, []string{"--from", l.Packages[0], "python"})
	places, err := ask(env, dir, uvx, slices.Concat([]string{"--offline"}, python, []string{"-I", "-S", "-c", pythonPlaces})...)
	if err != nil || len(places) != 4 {
		return launch{install: slices.Concat([]string{uvx}, python, []string{"-c", ""})}, nil
	}
	prefix := filepath.Dir(filepath.Dir(places[0]))
	started, err := programLaunch(filepath.Join(prefix, "bin", l.Bin), l.Args, env, dir)
	// The files of packages may be links into the cache.
	started.reads = append(started.reads, prefix, cmp.Or(l.Flag("--cache-dir"), uvCache(env)))
	return started, err
}

// uvCache returns uv's cache folder.
func uvCache(env []string) string {
	if dir := pin.Variable(env, "UV_CACHE_DIR"); dir != "" {
		return dir
	}
	if dir := pin.Variable(env, "XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "uv")
	}
	return filepath.Join(pin.Variable(env, "HOME"), ".cache", "uv")
}
