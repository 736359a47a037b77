// Package secret keeps what nobody else may read: the logins to servers, and
// the values that the configuration names by ${keyring:NAME}.
//
// It guarantees that a value is in the keyring of the system, or, where there is
// none or it does not take the value, sealed with age in the data directory, and
// in no other file; that files are 0600 and replaced whole; that two processes
// that write at once lose nothing; and that no error or line of a log holds a value.
//
// Against somebody who reads as the same user the sealed file is no protection:
// its key is beside it. Who may use a value is decided elsewhere: a Store gives
// any value to its caller.
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

// What Get fails with.
var (
	// ErrMissing: there is no secret of that name.
	ErrMissing = errors.New("there is no such secret")
	// ErrLocked: it was put into the keyring of the system, which this process
	// cannot ask: there is no session, or it is locked.
	ErrLocked = errors.New("it is in the keyring of the system, which cannot be used from here")
)

// Info is what is known of a secret without its value.
type Info struct {
	Place    Place     `json:"kept"`
	SetAt    time.Time `json:"set_at"`
	Revision string    `json:"revision"` // another one after each Set
	// Older says that a value from before is in the keyring too, which could not
	// be asked when this one was set.
	Older bool `json:"older_in_keyring,omitempty"`
}

// Store keeps secrets by their names. A keyring cannot list what is in it, so that
// the names stand in an index, without values: secrets.json. A value counts
// whether the index has its name or not; a name in the index whose value is gone
// is missing.
type Store struct {
	vault *Vault
	dir   string
}

const indexName = "secrets.json"

// maxIndex bounds the index in bytes: more than maxCount names need.
const maxIndex = 1 << 20

// Open returns the Store of a data directory. Nothing is read or made yet.
func Open(dir string, logger *slog.Logger) *Store {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Store{vault: OpenVault(dir, "secrets", logger), dir: dir}
}

var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// CheckName refuses what cannot be the name of a secret. Names of environment
// variables can; dots and dashes are allowed too.
func CheckName(name string) error {
	if len(name) > MaxName || !namePattern.MatchString(name) {
		return fmt.Errorf("the name of a secret has letters, digits, underscores, dots and dashes, begins with a letter or underscore, and has at most %d characters", MaxName)
	}
	return nil
}

// CheckValue refuses what cannot be the value of a secret. The error does not
// repeat it.
func CheckValue(value string) error {
	switch {
	case value == "":
		return errors.New("the value is empty")
	case len(value) > MaxValue:
		return fmt.Errorf("the value has %d bytes, more than %d", len(value), MaxValue)
	case strings.ContainsRune(value, 0):
		return errors.New("the value holds a NUL character")
	case !utf8.ValidString(value):
		return errors.New("the value is not text in UTF-8")
	}
	return nil
}

// ringKey is the key of a secret in the vault: none of a login, which has a URL.
func ringKey(name string) string { return "secret " + name }

// Get returns the value of a secret: ErrMissing, ErrLocked, or what kept it from
// being read.
func (s *Store) Get(ctx context.Context, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	value, err := s.vault.Load(ctx, ringKey(name))
	switch {
	case err != nil:
		return "", err
	case value != nil:
		return string(value), nil
	}
	all, err := s.List()
	if err != nil {
		return "", err
	}
	if all[name].Place == Keyring && s.vault.ring.isOff() {
		return "", ErrLocked
	}
	return "", ErrMissing
}

// Set stores the value of a secret in the place of the one before, and returns
// what is known of it.
func (s *Store) Set(ctx context.Context, name, value string) (Info, error) {
	if err := errors.Join(CheckName(name), CheckValue(value)); err != nil {
		return Info{}, err
	}
	var info Info
	err := s.change(ctx, func(all map[string]Info) error {
		before, there := all[name]
		if !there && len(all) >= maxCount {
			return fmt.Errorf("there are %d secrets already, which is the most", maxCount)
		}
		place, err := s.vault.save(ctx, ringKey(name), []byte(value))
		if err != nil {
			return err
		}
		older := place == File && (before.Place == Keyring || before.Older)
		info = Info{place, time.Now().UTC().Truncate(time.Second), newRevision(), older}
		all[name] = info
		return nil
	})
	return info, err
}

// Delete removes a secret: ErrMissing when there was neither a value nor a name.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return s.change(ctx, func(all map[string]Info) error {
		known, there := all[name]
		if (known.Place == Keyring || known.Older) && s.vault.ring.isOff() {
			return ErrLocked // the value would stay there, and nobody would know
		}
		value, err := s.vault.Load(ctx, ringKey(name))
		if err == nil && value == nil && !there {
			return ErrMissing
		}
		delete(all, name)
		return s.vault.Delete(ctx, ringKey(name))
	})
}

// List returns what the index knows. It asks no keyring, so that a value may be
// gone all the same.
func (s *Store) List() (map[string]Info, error) {
	path := filepath.Join(s.dir, indexName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return map[string]Info{}, nil
	case err != nil:
		return nil, fmt.Errorf("read the names of the secrets: %w", err)
	case info.Size() > maxIndex:
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxIndex)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the names of the secrets: %w", err)
	}
	all := map[string]Info{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("%s is not what was written: move it away; the values stay, and `mcpproxy secrets set` notes their names again", path)
	}
	maps.DeleteFunc(all, func(name string, _ Info) bool { return CheckName(name) != nil })
	return all, nil
}

// Names are the names in an index, sorted.
func Names(all map[string]Info) []string { return slices.Sorted(maps.Keys(all)) }

// newRevision is another one each time.
func newRevision() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// change changes the index, while no other process does.
func (s *Store) change(ctx context.Context, do func(all map[string]Info) error) error {
	unlock, err := lock(ctx, filepath.Join(s.dir, indexName+".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	all, err := s.List()
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
	return ondisk.Replace(filepath.Join(s.dir, indexName), append(raw, '\n'))
}
