package secret

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/zalando/go-keyring"
)

// StorageLocation is where a value is stored.
type StorageLocation string

// The locations.
const (
	Keyring StorageLocation = "keyring"
	File    StorageLocation = "file"
)

// NoKeyringEnv is the environment variable that disables the system keyring when it is
// set.
const NoKeyringEnv = "MCPPROXY_NO_KEYRING"

// Vault is the keyring with an encrypted file as fallback. A value is in one of them; the
// file takes precedence.
type Vault struct {
	keyring *systemKeyring
	file    *encryptedFile
}

// OpenVault returns a vault of a data directory: the system keyring or, if there is none
// or it rejects a value, <kind>.age, whose key is <kind>.key. Vaults of one directory
// share the keys in the keyring.
func OpenVault(dir, kind string, logger *slog.Logger) *Vault {
	sum := sha256.Sum256([]byte(dir))
	return &Vault{
		keyring: &systemKeyring{suffix: " " + hex.EncodeToString(sum[:6]), kind: kind, logger: logger, off: !keyringAvailable()},
		file:    &encryptedFile{dir: dir, kind: kind, logger: logger},
	}
}

// Load returns the value of a key, nil without one.
func (v *Vault) Load(ctx context.Context, key string) ([]byte, error) {
	value, err := v.file.loadValue(key)
	if value != nil || err != nil {
		return value, err
	}
	return v.keyring.load(ctx, key)
}

// Save stores a value.
func (v *Vault) Save(ctx context.Context, key string, value []byte) error {
	_, err := v.saveReturningLocation(ctx, key, value)
	return err
}

// saveReturningLocation is Save, and returns where the value is.
func (v *Vault) saveReturningLocation(ctx context.Context, key string, value []byte) (StorageLocation, error) {
	if v.keyring.save(ctx, key, value) == nil {
		return Keyring, v.file.putValue(ctx, key, nil)
	}
	return File, v.file.putValue(ctx, key, value)
}

// Delete removes a value, if there is one.
func (v *Vault) Delete(ctx context.Context, key string) error {
	return errors.Join(v.file.putValue(ctx, key, nil), v.keyring.delete(ctx, key))
}

// systemKeyring is the keyring of the system.
type systemKeyring struct {
	suffix string // distinguishes data directories
	kind   string // what it stores, for messages
	logger *slog.Logger

	mu  sync.Mutex // guards off
	off bool       // unavailable or not responding
}

const (
	keyringService = "mcpproxy"
	keyringTimeout = 5 * time.Second
)

var errNoKeyring = errors.New("no system keyring is available")

// keyringAvailable reports whether to try: without a session bus the library would start
// one.
func keyringAvailable() bool {
	if os.Getenv(NoKeyringEnv) != "" {
		return false
	}
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	}
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	_, err := os.Stat(filepath.Join("/run/user", fmt.Sprint(os.Getuid()), "bus"))
	return err == nil
}

// runOperation runs a keyring operation, and disables the keyring if it does not respond: it may
// wait for a user who is not there.
func (r *systemKeyring) runOperation(ctx context.Context, f func() error) error {
	if r.isDisabled() {
		return errNoKeyring
	}
	result := make(chan error, 1)
	go func() { result <- f() }()
	limit := time.NewTimer(keyringTimeout)
	defer limit.Stop()
	select {
	case err := <-result:
		if err == nil || errors.Is(err, keyring.ErrNotFound) || errors.Is(err, keyring.ErrSetDataTooBig) {
			return err
		}
		return r.disable(err)
	case <-limit.C:
		return r.disable(errors.New("it does not answer"))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isDisabled reports whether the keyring is disabled.
func (r *systemKeyring) isDisabled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.off
}

// disable disables the keyring.
func (r *systemKeyring) disable(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.off {
		r.logger.Info("the system keyring cannot be used; an encrypted file is used instead", "for", r.kind, "error", err)
	}
	r.off = true
	return errNoKeyring
}

func (r *systemKeyring) load(ctx context.Context, key string) ([]byte, error) {
	var value string
	err := r.runOperation(ctx, func() (err error) { value, err = keyring.Get(keyringService, key+r.suffix); return err })
	switch {
	case err == nil:
		return []byte(value), nil
	case errors.Is(err, keyring.ErrNotFound), errors.Is(err, errNoKeyring):
		return nil, nil
	}
	return nil, err
}

func (r *systemKeyring) save(ctx context.Context, key string, value []byte) error {
	return r.runOperation(ctx, func() error { return keyring.Set(keyringService, key+r.suffix, string(value)) })
}

func (r *systemKeyring) delete(ctx context.Context, key string) error {
	err := r.runOperation(ctx, func() error { return keyring.Delete(keyringService, key+r.suffix) })
	if errors.Is(err, keyring.ErrNotFound) || errors.Is(err, errNoKeyring) {
		return nil
	}
	return err
}
