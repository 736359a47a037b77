package auth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mcpproxy/internal/ondisk"
)

// RevokedFile is the name of the file in the data directory that has the ids of
// revoked tokens: an older database in the place of the newer one makes none of them
// good again.
const RevokedFile = "revoked_tokens"

// maxRevoked is how many ids the file has; of more the oldest go.
const maxRevoked = 10_000

// revoked returns the ids in the file, the oldest first.
func revoked(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, RevokedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(text)), err
}

// revoke puts an id into the file.
func revoke(dir, id string) error {
	all, err := revoked(dir)
	if err != nil {
		return err
	}
	all = append(all[max(0, len(all)-maxRevoked+1):], id)
	return ondisk.Replace(filepath.Join(dir, RevokedFile), []byte(strings.Join(all, "\n")+"\n"))
}
