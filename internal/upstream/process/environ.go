package process

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Environment returns the environment of a server: the allowed part of MCPProxy's, and extra.
func Environment(extra map[string]string) []string {
	return serverEnvironment(os.Environ(), extra, runtime.GOOS)
}

// serverEnvironment returns the environment of a server: the allowed part of all, and extra,
// which takes precedence.
func serverEnvironment(all []string, extra map[string]string, goos string) []string {
	vars := map[string]string{}
	for _, kv := range all {
		name, value, ok := strings.Cut(kv, "=")
		if ok && name != "" && isInheritedVariable(name, goos) {
			vars[name] = value
		}
	}
	for name, value := range extra {
		if goos == "windows" { // names are case-insensitive there
			maps.DeleteFunc(vars, func(n, _ string) bool { return strings.EqualFold(n, name) })
		}
		vars[name] = value
	}
	out := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}

// isInheritedVariable reports whether a server inherits this variable. All others, above all
// secrets, need an entry in its own configuration.
func isInheritedVariable(name, goos string) bool {
	if goos == "windows" {
		switch strings.ToUpper(name) {
		case "PATH", "PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)",
			"PROGRAMW6432", "COMMONPROGRAMFILES", "HOMEDRIVE", "HOMEPATH", "USERPROFILE", "USERNAME", "USERDOMAIN",
			"COMPUTERNAME", "SYSTEMDRIVE", "SYSTEMROOT", "WINDIR", "COMSPEC", "TEMP", "TMP", "OS",
			"NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PUBLIC", "LANG", "TZ":
			return true
		}
		return false
	}
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "TZ":
		return true
	}
	return strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_")
}

// FindCommand returns the file that Start would run for a command, searched in the
// server's PATH, else in MCPProxy's; "" without one.
func FindCommand(command, path string) string {
	if file := findInPath(command, path); file != "" {
		return file
	}
	file, err := exec.LookPath(command)
	if err != nil {
		return ""
	}
	return file
}

// findInPath searches a bare command in the server's own PATH; "" leaves the search to
// os/exec.
func findInPath(command, path string) string {
	if path == "" || runtime.GOOS == "windows" || filepath.Base(command) != command {
		return ""
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, command)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}
