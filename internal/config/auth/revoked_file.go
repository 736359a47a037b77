package auth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mcpproxy/internal/ondisk"
)

// RevokedFile is the file in the data directory with the ids of revoked tokens. It prevents a restored older database
// from making them valid again.
const RevokedFile = "revoked_tokens"

// maxRevoked limits the ids in the file. The oldest are dropped.
const maxRevoked = 10_000

// readRevokedIDs returns the ids in the file, oldest first.
func readRevokedIDs(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, RevokedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(text)), err
}

// addRevokedID adds an id to the file.
func addRevokedID(dir, id string) error {
	all, err := readRevokedIDs(dir)
	if err != nil {
		return err
	}
	all = append(all[max(0, len(all)-maxRevoked+1):], id)
	return ondisk.ReplaceFile(filepath.Join(dir, RevokedFile), []byte(strings.Join(all, "\n")+"\n"))
}
