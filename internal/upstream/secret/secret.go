// Package secret stores logins to servers and the values of ${keyring:NAME}. It uses the system keyring or, as fallback, an
// age-encrypted file of the data directory.
//
// Files:
//   - secret.go: Store, secrets by name with an index; follow.go notices changes of it.
//   - vault.go: Vault, the keyring with the file as fallback; encrypted.go: the file.
//
// Guarantees:
//   - A value is in the keyring or in the encrypted file, and in no other file.
//   - Files have mode 0600 and are replaced atomically. Concurrent writers lose nothing.
//   - No error or log line contains a value.
//
// The encrypted file does not protect from programs of the same user: its key is next to it. A Store gives any value to its
// caller; access is decided elsewhere.
package secret

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mcpproxy/internal/ondisk"
)

// Bounds of a Store.
const (
	MaxName  = 128      // characters
	MaxValue = 64 << 10 // bytes
	maxCount = 1000     // secrets
)

// Errors of Get.
var (
	// ErrMissing: there is no secret of that name.
	ErrMissing = errors.New("the secret does not exist")
	// ErrLocked: the value is in the system keyring, which is not available: no session,
	// or locked.
	ErrLocked = errors.New("it is in the keyring of the system, which cannot be used from here")
)

// SecretInfo is a secret's metadata.
type SecretInfo struct {
	Place    StorageLocation `json:"kept"`
	SetAt    time.Time       `json:"set_at"`
	Revision string          `json:"revision"` // changes with each Set
	// OlderInKeyring says that the keyring still has an earlier value, because it was not
	// available when this one was set.
	OlderInKeyring bool `json:"older_in_keyring,omitempty"`
}

// Store stores secrets by name. Keyrings cannot list entries, so the names are in an
// index without values, secrets.json. A value counts even if the index lacks its name; a
// name without a value is missing.
type Store struct {
	vault *Vault
	dir   string
}

const indexName = "secrets.json"

// maxIndex bounds the index in bytes, enough for maxCount names.
const maxIndex = 1 << 20

// OpenStore returns the Store of a data directory. It reads and creates nothing yet.
func OpenStore(dir string, logger *slog.Logger) *Store {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Store{vault: OpenVault(dir, "secrets", logger), dir: dir}
}

var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// CheckName returns an error unless the name is valid. Names of environment variables
// are; dots and dashes are allowed too.
func CheckName(name string) error {
	if len(name) > MaxName || !namePattern.MatchString(name) {
		return fmt.Errorf("the name of a secret has letters, digits, underscores, dots and dashes, begins with a letter or underscore, and has at most %d characters", MaxName)
	}
	return nil
}

// CheckValue returns an error unless the value is valid. The error does not repeat it.
func CheckValue(value string) error {
	switch {
	case value == "":
		return errors.New("the value is empty")
	case len(value) > MaxValue:
		return fmt.Errorf("the value has %d bytes, more than %d", len(value), MaxValue)
	case strings.ContainsRune(value, 0):
		return errors.New("the value contains a NUL character")
	case !utf8.ValidString(value):
		return errors.New("the value is not text in UTF-8")
	}
	return nil
}

// vaultKey returns the key of a secret in the vault. It differs from the keys of logins,
// which contain a URL.
func vaultKey(name string) string { return "secret " + name }

// Get returns the value of a secret, or ErrMissing, ErrLocked or a read error.
func (s *Store) Get(ctx context.Context, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	value, err := s.vault.Load(ctx, vaultKey(name))
	switch {
	case err != nil:
		return "", err
	case value != nil:
		return string(value), nil
	}
	all, err := s.ListIndex()
	if err != nil {
		return "", err
	}
	if all[name].Place == Keyring && s.vault.keyring.isDisabled() {
		return "", ErrLocked
	}
	return "", ErrMissing
}

// Set stores the value of a secret and returns its metadata.
func (s *Store) Set(ctx context.Context, name, value string) (SecretInfo, error) {
	if err := errors.Join(CheckName(name), CheckValue(value)); err != nil {
		return SecretInfo{}, err
	}
	var info SecretInfo
	err := s.changeIndex(ctx, func(all map[string]SecretInfo) error {
		before, there := all[name]
		if !there && len(all) >= maxCount {
			return fmt.Errorf("there are already %d secrets, which is the limit", maxCount)
		}
		place, err := s.vault.saveReturningLocation(ctx, vaultKey(name), []byte(value))
		if err != nil {
			return err
		}
		older := place == File && (before.Place == Keyring || before.OlderInKeyring)
		info = SecretInfo{place, time.Now().UTC().Truncate(time.Second), newRevision(), older}
		all[name] = info
		return nil
	})
	return info, err
}

// Delete removes a secret: ErrMissing if there is neither a value nor a name.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return s.changeIndex(ctx, func(all map[string]SecretInfo) error {
		known, there := all[name]
		if (known.Place == Keyring || known.OlderInKeyring) && s.vault.keyring.isDisabled() {
			return ErrLocked // the value would stay there unnoticed
		}
		value, err := s.vault.Load(ctx, vaultKey(name))
		if err == nil && value == nil && !there {
			return ErrMissing
		}
		delete(all, name)
		return s.vault.Delete(ctx, vaultKey(name))
	})
}

// ListIndex returns the index. It does not ask the keyring, so a value may be missing.
func (s *Store) ListIndex() (map[string]SecretInfo, error) {
	path := filepath.Join(s.dir, indexName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return map[string]SecretInfo{}, nil
	case err != nil:
		return nil, fmt.Errorf("read the names of the secrets: %w", err)
	case info.Size() > maxIndex:
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxIndex)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the names of the secrets: %w", err)
	}
	all := map[string]SecretInfo{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("%s is damaged: move it away; the values stay, and `mcpproxy secrets set` records their names again", path)
	}
	maps.DeleteFunc(all, func(name string, _ SecretInfo) bool { return CheckName(name) != nil })
	return all, nil
}

// SortedNames returns the names of an index, sorted.
func SortedNames(all map[string]SecretInfo) []string { return slices.Sorted(maps.Keys(all)) }

// newRevision returns a random revision.
func newRevision() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// changeIndex changes the index while no other process does.
func (s *Store) changeIndex(ctx context.Context, do func(all map[string]SecretInfo) error) error {
	unlock, err := lockFile(ctx, filepath.Join(s.dir, indexName+".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	all, err := s.ListIndex()
	if err != nil {
		return err
	}
	if err := do(all); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return ondisk.ReplaceFile(filepath.Join(s.dir, indexName), append(raw, '\n'))
}
