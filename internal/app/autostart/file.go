package autostart

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/problem"
)

// fileMarker is in every file that this package writes.
const fileMarker = "Written by `mcpproxy service install`"

// writeServiceFile writes the file of the service, readable only by its owner, and reports whether that changed it.
func writeServiceFile(path, text string) (changed bool, err error) {
	was, err := readOwnServiceFile(path)
	if err != nil || was == text {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, newStepError("The file of the service cannot be written", err)
	}
	if err := ondisk.ReplaceFile(path, []byte(text)); err != nil {
		return false, newStepError("The file of the service cannot be written", err)
	}
	return true, nil
}

// removeServiceFile removes the file of the service, and reports whether it existed.
func removeServiceFile(path string) (was bool, err error) {
	text, err := readOwnServiceFile(path)
	if err != nil || text == "" {
		return false, err
	}
	if err := os.Remove(path); err != nil {
		return false, newStepError("The file of the service cannot be removed", err)
	}
	return true, nil
}

// readOwnServiceFile returns the text of a file that this package has written, or "" if there is no file. It rejects
// any other file.
func readOwnServiceFile(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", newStepError("The file of the service cannot be read", err)
	}
	if info.Mode().IsRegular() && info.Size() < 1<<20 {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", newStepError("The file of the service cannot be read", err)
		}
		if strings.Contains(string(text), fileMarker) {
			return string(text), nil
		}
	}
	return "", problem.New(problem.Conflict, path+" was not written by `mcpproxy service install`.",
		"Move the file away if nothing needs it, and run the command again.")
}
