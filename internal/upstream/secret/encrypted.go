package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"filippo.io/age"

	"mcpproxy/internal/ondisk"
)

// How long a process waits for another writer: longer than that one waits for the
// keyring.
const (
	lockTimeout      = 15 * time.Second
	lockPollInterval = 10 * time.Millisecond
)

// lockFile makes this process the only writer until unlock is called.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	look := time.NewTicker(lockPollInterval)
	defer look.Stop()
	for {
		f, err := ondisk.LockFile(path)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, ondisk.ErrLocked) {
			return nil, err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("another process writes to %s: %w", path, ctx.Err())
		}
	}
}

// encryptedFile is a file encrypted with age; the key is in a second file that only the
// user can read.
type encryptedFile struct {
	dir    string
	kind   string // base name of the files
	logger *slog.Logger
	mu     sync.Mutex // serializes reads and writes
}

const maxEncryptedFile = 16 << 20

func (s *encryptedFile) filePath(end string) string { return filepath.Join(s.dir, s.kind+end) }

func (s *encryptedFile) loadValue(key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.readAll()
	return all[key], err
}

// putValue stores a value, or removes it when it is nil.
func (s *encryptedFile) putValue(ctx context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value == nil { // a missing value needs no file
		if all, err := s.readAll(); err == nil && all[key] == nil {
			return nil
		}
	}
	unlock, err := lockFile(ctx, s.filePath(".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	all, err := s.readAll()
	if err != nil {
		// A file that cannot be decrypted is kept: another key may open it.
		aside := s.filePath(".age.unreadable")
		s.logger.Warn("an encrypted file cannot be read, and is renamed", "file", aside, "error", err)
		if err := os.Rename(s.filePath(".age"), aside); err != nil {
			return fmt.Errorf("put the unreadable file aside: %w", err)
		}
	}
	if _, there := all[key]; !there && value == nil {
		return nil
	}
	if all == nil {
		all = map[string][]byte{}
	}
	all[key] = value
	if value == nil {
		delete(all, key)
	}
	return s.writeAll(all)
}

func (s *encryptedFile) readAll() (map[string][]byte, error) {
	f, err := os.Open(s.filePath(".age"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the sealed %s: %w", s.kind, err)
	}
	defer func() { _ = f.Close() }()
	identity, err := s.loadOrCreateIdentity(false)
	if err != nil {
		return nil, err
	}
	plain, err := age.Decrypt(io.LimitReader(f, maxEncryptedFile), identity)
	if err != nil {
		return nil, fmt.Errorf("open the sealed %s: %w", s.kind, err)
	}
	raw, err := io.ReadAll(io.LimitReader(plain, maxEncryptedFile))
	if err != nil {
		return nil, fmt.Errorf("read the sealed %s: %w", s.kind, err)
	}
	var all map[string][]byte
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("the sealed %s are damaged", s.kind)
	}
	return all, nil
}

func (s *encryptedFile) writeAll(all map[string][]byte) error {
	identity, err := s.loadOrCreateIdentity(true)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, identity.Recipient())
	if err != nil {
		return fmt.Errorf("seal the %s: %w", s.kind, err)
	}
	_, err = w.Write(raw)
	if err := errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("seal the %s: %w", s.kind, err)
	}
	return ondisk.ReplaceFile(s.filePath(".age"), out.Bytes())
}

// loadOrCreateIdentity returns the key of the file. It creates one if there is none and mayMake is
// set.
func (s *encryptedFile) loadOrCreateIdentity(mayMake bool) (*age.X25519Identity, error) {
	path := s.filePath(".key")
	raw, err := os.ReadFile(path)
	if err == nil {
		id, err := age.ParseX25519Identity(string(bytes.TrimSpace(raw)))
		if err != nil {
			return nil, fmt.Errorf("the key of the encrypted %s in %s is invalid: move it away to start again", s.kind, path)
		}
		return id, os.Chmod(path, 0o600)
	}
	if !errors.Is(err, fs.ErrNotExist) || !mayMake {
		return nil, fmt.Errorf("read the key of the encrypted %s: %w", s.kind, err)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("create a key for the encrypted %s: %w", s.kind, err)
	}
	return id, ondisk.ReplaceFile(path, []byte(id.String()+"\n"))
}
