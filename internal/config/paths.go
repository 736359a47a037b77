package config

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
)

// Environment variables for paths.
const (
	EnvPath    = "MCPPROXY_CONFIG"
	EnvDataDir = "MCPPROXY_DATA_DIR"
)

const defaultDir = "~/.mcpproxy"

// ResolvePath returns the path of the file: flag (--config), else MCPPROXY_CONFIG, else ~/.mcpproxy/mcp_config.json.
// If lookup is nil, it uses the process's environment.
func ResolvePath(flag string, lookup func(name string) (string, bool)) (string, error) {
	lookup = lookupOrEnv(lookup)
	return toAbsolutePath(cmp.Or(flag, environmentVariable(EnvPath, lookup), defaultDir+"/"+FileName), lookup)
}

// ResolveDataDir returns the data directory: flag (--data-dir), else MCPPROXY_DATA_DIR, else data_dir in the file at
// path (even if the rest of the file is invalid), else ~/.mcpproxy. It is for commands that only look for a running
// daemon.
func ResolveDataDir(flag, path string, lookup func(name string) (string, bool)) (string, error) {
	lookup = lookupOrEnv(lookup)
	dir := cmp.Or(flag, environmentVariable(EnvDataDir, lookup))
	if dir == "" {
		dir = cmp.Or(readDataDir(path, lookup), defaultDir)
	}
	return toAbsolutePath(dir, lookup)
}

// environmentVariable returns the value of an environment variable.
func environmentVariable(name string, lookup func(name string) (string, bool)) string {
	value, _ := lookup(name)
	return value
}

// readDataDir reads data_dir from a file whose other content may be invalid.
func readDataDir(path string, lookup func(string) (string, bool)) string {
	data, err := readConfigFile(path)
	if err != nil {
		return ""
	}
	tree, mistake := sourceText{data}.parseTree()
	if mistake != nil {
		return ""
	}
	m := findMember(tree, "data_dir")
	if m == nil {
		return ""
	}
	l, ok := m.Value.Value.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		return ""
	}
	e := expandReferences(l.String(), lookup)
	if len(e.mistakes)+len(e.missing) > 0 || hasSecretReference(e.text) || checkAbsoluteDir(e.text) != nil {
		return ""
	}
	return e.text
}

// toAbsolutePath expands "~" and makes a relative path of the command line or the environment
// absolute.
func toAbsolutePath(path string, lookup func(string) (string, bool)) (string, error) {
	if home := homeDir(lookup); home != "" {
		path = expandTilde(path, home)
	} else if strings.HasPrefix(path, "~") {
		return "", problem.New(problem.Usage, "The home directory is unknown: HOME is not set.",
			"Set HOME, or give --config and --data-dir.")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", problem.Newf(problem.Usage, "The path %q cannot be made absolute.", path).Because(err)
	}
	return abs, nil
}

// expandTilde expands "~" and "~/…".
func expandTilde(path, home string) string {
	if path == "~" {
		return home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, filepath.FromSlash(rest))
	}
	return path
}

func homeDir(lookup func(string) (string, bool)) string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	return environmentVariable(name, lookup)
}

func lookupOrEnv(lookup func(string) (string, bool)) func(string) (string, bool) {
	if lookup == nil {
		return os.LookupEnv
	}
	return lookup
}

// readConfigFile reads the file if it is regular and not too large.
func readConfigFile(path string) ([]byte, error) {
	// Check this before opening, because opening a pipe waits for its writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, textedit.MaxSize+1))
}

// PathFlags returns the flags that a program without MCPProxy's environment variables needs to find this file and
// data directory. It returns nil if that program finds them by default.
func PathFlags(file, dataDir string, lookup func(name string) (string, bool)) []string {
	lookup = lookupOrEnv(lookup)
	bare := func(name string) (string, bool) {
		if name == EnvPath || name == EnvDataDir {
			return "", false
		}
		return lookup(name)
	}
	var flags []string
	if usual, err := ResolvePath("", bare); err != nil || usual != file {
		flags = append(flags, "--config", file)
	}
	if usual, err := ResolveDataDir("", file, bare); err != nil || usual != dataDir {
		flags = append(flags, "--data-dir", dataDir)
	}
	return flags
}
