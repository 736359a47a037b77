package clients

import (
	"os"
	"path/filepath"

	"mcpproxy/internal/upstream/process"
)

// Env is the account whose clients are inspected.
type Env struct {
	GOOS    string // as in runtime.GOOS
	Home    string
	Dir     string // the client's working directory, for project files; "" means none
	Root    string // prefix of machine-wide paths in tests; otherwise ""
	Getenv  func(name string) string
	Program func(name string) string // returns the path of a program, or "" if it is missing
}

// SystemEnv returns the account and working directory of this process.
func SystemEnv(goos string) (Env, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Env{}, err
	}
	dir, err := os.Getwd()
	return Env{GOOS: goos, Home: home, Dir: dir, Getenv: os.Getenv, Program: func(name string) string { return process.FindCommand(name, "") }}, err
}

// HomePath returns a path in the home directory.
func (e Env) HomePath(elements ...string) string {
	return filepath.Join(append([]string{e.Home}, elements...)...)
}

// WorkingDirPath returns a path in the working directory. If there is none, it returns a relative path that cannot be
// used.
func (e Env) WorkingDirPath(elements ...string) string {
	return filepath.Join(append([]string{e.Dir}, elements...)...)
}

// DirFromVariableOrHome returns the directory in an environment variable, or else one in the home directory.
func (e Env) DirFromVariableOrHome(variable string, elements ...string) string {
	if set := e.Getenv(variable); set != "" {
		return set
	}
	return e.HomePath(elements...)
}

// SystemPath returns a machine-wide path for Linux, macOS or Windows.
func (e Env) SystemPath(linux, mac, windows string) string {
	return filepath.Join(e.Root, map[string]string{"darwin": mac, "windows": windows}[e.GOOS]+map[bool]string{true: linux}[e.GOOS != "darwin" && e.GOOS != "windows"])
}

// AppSettingsPath returns a path in the system's directory for application settings.
func (e Env) AppSettingsPath(elements ...string) string {
	dir := e.DirFromVariableOrHome("XDG_CONFIG_HOME", ".config")
	switch e.GOOS {
	case "darwin":
		dir = e.HomePath("Library", "Application Support")
	case "windows":
		dir = e.DirFromVariableOrHome("APPDATA", "AppData", "Roaming")
	}
	return filepath.Join(append([]string{dir}, elements...)...)
}

// XDGConfigPath returns a path in ~/.config (also on macOS), or below %APPDATA% on Windows.
func (e Env) XDGConfigPath(windows []string, elements ...string) string {
	if e.GOOS == "windows" && windows != nil {
		return filepath.Join(append([]string{e.DirFromVariableOrHome("APPDATA", "AppData", "Roaming")}, windows...)...)
	}
	return filepath.Join(append([]string{e.DirFromVariableOrHome("XDG_CONFIG_HOME", ".config")}, elements...)...)
}

// projectDirs returns the directories from the project's root, which contains .git, to the working directory. If there
// is no root, it returns only the working directory.
func (e Env) projectDirs() []string {
	var dirs []string
	for dir := e.Dir; ; dir = filepath.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
		if PathExists(filepath.Join(dir, ".git")) {
			return dirs
		}
		if dir == filepath.Dir(dir) {
			return []string{e.Dir}
		}
	}
}

// findProgram returns the path of a program, or "" if it is not in the PATH.
func (e Env) findProgram(name string) string {
	if e.Program == nil {
		return ""
	}
	return e.Program(name)
}

// PathExists reports whether a file or directory exists.
func PathExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// firstExisting returns the first path that exists, or else the first path.
func firstExisting(paths ...string) string {
	for _, path := range paths {
		if PathExists(path) {
			return path
		}
	}
	return paths[0]
}
