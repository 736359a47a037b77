package auth

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// KeyFile is the file in the data directory with the API key.
const KeyFile = "api_key"

// keyPrefix makes a key recognizable, for users and for redact.
const keyPrefix = "mcpp_"

// MinKey is the minimum length of a configured key.
const MinKey = 16

const maxKey = 512

// LoadOrCreateKey returns the API key: the configured one, else the one in the data directory, else a new one. A new key has
// 256 random bits and is written to the data directory with mode 0600. Two processes that start at once get the same key. An
// existing file without a key is an error, because the old key may be in use.
func LoadOrCreateKey(dataDir, configured string) (string, error) {
	if configured != "" {
		if err := checkKey(configured); err != nil {
			return "", fmt.Errorf("the configured api_key %w: choose another key, or remove it so that MCPProxy creates one", err)
		}
		return configured, nil
	}
	path := filepath.Join(dataDir, KeyFile)
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return "", fmt.Errorf("create the data directory: %w", err)
	}
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("create an API key: %w", err)
	}
	if err := writeKeyUnlessExists(path, keyPrefix+hex.EncodeToString(random)); err != nil {
		return "", fmt.Errorf("store the API key: %w", err)
	}
	return readKey(path)
}

// RestoreMissingKeyFile writes the key of a running daemon to its file again if that was deleted.
func RestoreMissingKeyFile(dataDir, key string) error {
	path := filepath.Join(dataDir, KeyFile)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeKeyUnlessExists(path, key)
}

// readKey reads the key and restricts the file's mode.
func readKey(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read the API key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file: move it away, and MCPProxy creates a new key", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the API key: %w", err)
	}
	defer func() { _ = f.Close() }()
	if info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return "", fmt.Errorf("restrict access to the API key: %w", err)
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKey+2))
	if err != nil {
		return "", fmt.Errorf("read the API key: %w", err)
	}
	key := strings.TrimSpace(string(data))
	if err := checkKey(key); err != nil {
		return "", fmt.Errorf("the key in %s %w: remove the file, and MCPProxy creates a new key", path, err)
	}
	return key, nil
}

// checkKey returns an error for an invalid key. The error does not repeat the key.
func checkKey(key string) error {
	switch {
	case len(key) < MinKey:
		return fmt.Errorf("is shorter than %d characters", MinKey)
	case len(key) > maxKey:
		return fmt.Errorf("is longer than %d characters", maxKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("contains characters that are not allowed in a header")
	}
	return nil
}

// writeKeyUnlessExists writes a key atomically. If another process has written a key first, that key is kept.
func writeKeyUnlessExists(path, key string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), KeyFile+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.WriteString(key + "\n")
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	// A link, unlike a rename, fails if a key exists.
	if err := os.Link(tmp.Name(), path); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return os.Rename(tmp.Name(), path) // for a file system without links
}
