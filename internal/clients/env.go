package clients

import (
	"os"
	"path/filepath"

	"mcpproxy/internal/upstream/process"
)

// Env is the account whose clients are looked at.
type Env struct {
	GOOS    string // as in runtime
	Home    string
	Dir     string // where a client would be started: its project's files are read; "" for none
	Root    string // before the paths of the whole machine; "" in earnest
	Getenv  func(name string) string
	Program func(name string) string // the path of a program, "" when it is not there
}

// SystemEnv is the account and the working directory of this process.
func SystemEnv(goos string) (Env, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Env{}, err
	}
	dir, err := os.Getwd()
	return Env{GOOS: goos, Home: home, Dir: dir, Getenv: os.Getenv, Program: func(name string) string { return process.FindCommand(name, "") }}, err
}

// InHome is a path in the account.
func (e Env) InHome(elements ...string) string {
	return filepath.Join(append([]string{e.Home}, elements...)...)
}

// InDir is a path in the working directory; relative, and so none, where there is
// no such directory.
func (e Env) InDir(elements ...string) string {
	return filepath.Join(append([]string{e.Dir}, elements...)...)
}

// VariableOrHome is a directory that a variable names, or one in the account.
func (e Env) VariableOrHome(variable string, elements ...string) string {
	if set := e.Getenv(variable); set != "" {
		return set
	}
	return e.InHome(elements...)
}

// SystemPath is a path of the whole machine: of Linux, macOS or Windows.
func (e Env) SystemPath(linux, mac, windows string) string {
	return filepath.Join(e.Root, map[string]string{"darwin": mac, "windows": windows}[e.GOOS]+map[bool]string{true: linux}[e.GOOS != "darwin" && e.GOOS != "windows"])
}

// ApplicationDir is where applications keep their settings.
func (e Env) ApplicationDir(elements ...string) string {
	dir := e.VariableOrHome("XDG_CONFIG_HOME", ".config")
	switch e.GOOS {
	case "darwin":
		dir = e.InHome("Library", "Application Support")
	case "windows":
		dir = e.VariableOrHome("APPDATA", "AppData", "Roaming")
	}
	return filepath.Join(append([]string{dir}, elements...)...)
}

// ConfigPath is a path in ~/.config, on macOS too, or where a client has it below
// %APPDATA% on Windows.
func (e Env) ConfigPath(windows []string, elements ...string) string {
	if e.GOOS == "windows" && windows != nil {
		return filepath.Join(append([]string{e.VariableOrHome("APPDATA", "AppData", "Roaming")}, windows...)...)
	}
	return filepath.Join(append([]string{e.VariableOrHome("XDG_CONFIG_HOME", ".config")}, elements...)...)
}

// projectDirs are the directories from the root of the project, which has .git, down to
// the working directory; that one alone where there is no root.
func (e Env) projectDirs() []string {
	var dirs []string
	for dir := e.Dir; ; dir = filepath.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
		if Exists(filepath.Join(dir, ".git")) {
			return dirs
		}
		if dir == filepath.Dir(dir) {
			return []string{e.Dir}
		}
	}
}

// findProgram returns where a program is, "" when it is not on the path.
func (e Env) findProgram(name string) string {
	if e.Program == nil {
		return ""
	}
	return e.Program(name)
}

// Exists reports whether there is a file or directory of that path.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// firstExisting is the first of the paths that is there, or the first.
func firstExisting(paths ...string) string {
	for _, path := range paths {
		if Exists(path) {
			return path
		}
	}
	return paths[0]
}
