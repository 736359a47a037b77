package autostart

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/problem"
)

// ExecutablePath returns the path by which this program was started. A package manager keeps it stable across versions. It rejects a binary of go run, which is
// deleted when it ends.
func ExecutablePath() (string, error) {
	file, err := os.Executable()
	if err != nil {
		return "", newStepError("The path of this program is unknown", err)
	}
	if strings.Contains(filepath.ToSlash(file), "/go-build") {
		return "", problem.New(problem.Usage, "This program was built by `go run`, which deletes it when it ends.", "Install it first, with a package or `go install ./cmd/mcpproxy`.")
	}
	if named, err := exec.LookPath(os.Args[0]); err == nil && sameFile(named, file) {
		if named, err = filepath.Abs(named); err == nil {
			return named, nil
		}
	}
	return file, nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// ServiceSearchPath returns a PATH for a service: the existing directories of a shell's PATH, without duplicates. A directory below a temporary directory, such
// as fnm creates for each shell, is replaced by its target or left out.
func ServiceSearchPath(path string, temporary ...string) string {
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		if isBelowAny(dir, temporary) {
			dir, _ = filepath.EvalSymlinks(dir)
		}
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || !filepath.IsAbs(dir) || isBelowAny(dir, temporary) || slices.Contains(dirs, dir) {
			continue
		}
		dirs = append(dirs, dir)
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

func isBelowAny(dir string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool {
		rel, err := filepath.Rel(parent, dir)
		return parent != "" && err == nil && filepath.IsLocal(rel)
	})
}
