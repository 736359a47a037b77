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

// The environment variables that say where things are.
const (
	EnvPath    = "MCPPROXY_CONFIG"
	EnvDataDir = "MCPPROXY_DATA_DIR"
)

const defaultDir = "~/.mcpproxy"

// ResolvePath returns where the file is: flag (--config), MCPPROXY_CONFIG, else
// ~/.mcpproxy/mcp_config.json. lookup nil means the environment of the process.
func ResolvePath(flag string, lookup func(name string) (string, bool)) (string, error) {
	lookup = orProcess(lookup)
	return absolute(cmp.Or(flag, variable(EnvPath, lookup), defaultDir+"/"+FileName), lookup)
}

// ResolveDataDir returns where the data is: flag (--data-dir),
// MCPPROXY_DATA_DIR, data_dir in the file at path (also when the rest of the
// file is wrong), else ~/.mcpproxy. It is for commands that look for a running
// daemon and need nothing else of the file.
func ResolveDataDir(flag, path string, lookup func(name string) (string, bool)) (string, error) {
	lookup = orProcess(lookup)
	dir := cmp.Or(flag, variable(EnvDataDir, lookup))
	if dir == "" {
		dir = cmp.Or(dataDirIn(path, lookup), defaultDir)
	}
	return absolute(dir, lookup)
}

// variable returns the value of an environment variable.
func variable(name string, lookup func(name string) (string, bool)) string {
	value, _ := lookup(name)
	return value
}

// dataDirIn reads data_dir from a file that may be wrong elsewhere.
func dataDirIn(path string, lookup func(string) (string, bool)) string {
	data, err := read(path)
	if err != nil {
		return ""
	}
	tree, mistake := source{data}.parse()
	if mistake != nil {
		return ""
	}
	m := member(tree, "data_dir")
	if m == nil {
		return ""
	}
	l, ok := m.Value.Value.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		return ""
	}
	e := expand(l.String(), lookup)
	if len(e.mistakes)+len(e.missing) > 0 || holdsSecret(e.text) || checkDir(e.text) != nil {
		return ""
	}
	return e.text
}

// absolute expands "~" and makes what the command line or the environment gave
// relative to the working directory absolute, once.
func absolute(path string, lookup func(string) (string, bool)) (string, error) {
	if home := homeDir(lookup); home != "" {
		path = underHome(path, home)
	} else if strings.HasPrefix(path, "~") {
		return "", problem.New(problem.Usage, "There is no home directory: HOME is not set.",
			"Set HOME, or give --config and --data-dir.")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", problem.Newf(problem.Usage, "The path %q cannot be made absolute.", path).Because(err)
	}
	return abs, nil
}

// underHome expands "~" and "~/…".
func underHome(path, home string) string {
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
	return variable(name, lookup)
}

func orProcess(lookup func(string) (string, bool)) func(string) (string, bool) {
	if lookup == nil {
		return os.LookupEnv
	}
	return lookup
}

// read reads the file, as long as it is one and not too large.
func read(path string) ([]byte, error) {
	// Looked at before it is opened: opening a pipe waits for its writer.
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

// Flags are the flags with which a program that does not have what is set for
// MCPProxy in our environment finds this file and this data directory; none where it
// finds them by itself.
func Flags(file, dataDir string, lookup func(name string) (string, bool)) []string {
	lookup = orProcess(lookup)
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
