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

// Place is where a value is.
type Place string

// The places.
const (
	Keyring Place = "keyring"
	File    Place = "file"
)

// NoKeyring is the environment variable that keeps the vault out of the
// keyring of the system when it is set to anything.
const NoKeyring = "MCPPROXY_NO_KEYRING"

// Vault is the keyring with a sealed file behind it. A value stands in one of
// them; what is in the file counts.
type Vault struct {
	ring *ring
	file *sealed
}

// OpenVault returns a vault of a data directory: the keyring of the system,
// or, where there is none or it does not take a value, <kind>.age, whose key is
// <kind>.key. Vaults of one directory share the keys in the keyring.
func OpenVault(dir, kind string, logger *slog.Logger) *Vault {
	sum := sha256.Sum256([]byte(dir))
	return &Vault{
		ring: &ring{suffix: " " + hex.EncodeToString(sum[:6]), kind: kind, logger: logger, off: !ringThere()},
		file: &sealed{dir: dir, kind: kind, logger: logger},
	}
}

// Load returns the value of a key, nil when there is none.
func (v *Vault) Load(ctx context.Context, key string) ([]byte, error) {
	value, err := v.file.load(key)
	if value != nil || err != nil {
		return value, err
	}
	return v.ring.load(ctx, key)
}

// Save stores a value in the place of the one before.
func (v *Vault) Save(ctx context.Context, key string, value []byte) error {
	_, err := v.save(ctx, key, value)
	return err
}

// save is Save, and returns where the value is.
func (v *Vault) save(ctx context.Context, key string, value []byte) (Place, error) {
	if v.ring.save(ctx, key, value) == nil {
		return Keyring, v.file.put(ctx, key, nil)
	}
	return File, v.file.put(ctx, key, value)
}

// Delete removes a value, if there is one.
func (v *Vault) Delete(ctx context.Context, key string) error {
	return errors.Join(v.file.put(ctx, key, nil), v.ring.delete(ctx, key))
}

// ring is the keyring of the system.
type ring struct {
	suffix string // tells data directories apart
	kind   string // what is kept, for messages
	logger *slog.Logger

	mu  sync.Mutex // guards off
	off bool       // it is not there, or does not answer
}

const (
	ringService = "mcpproxy"
	ringTime    = 5 * time.Second
)

var errNoRing = errors.New("there is no keyring")

// ringThere reports whether it is worth asking: without a session bus the
// library would try to start one.
func ringThere() bool {
	if os.Getenv(NoKeyring) != "" {
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

// do asks the keyring, and never again when it does not answer: it may wait
// for a person who is not there.
func (r *ring) do(ctx context.Context, f func() error) error {
	if r.isOff() {
		return errNoRing
	}
	result := make(chan error, 1)
	go func() { result <- f() }()
	limit := time.NewTimer(ringTime)
	defer limit.Stop()
	select {
	case err := <-result:
		if err == nil || errors.Is(err, keyring.ErrNotFound) || errors.Is(err, keyring.ErrSetDataTooBig) {
			return err
		}
		return r.giveUp(err)
	case <-limit.C:
		return r.giveUp(errors.New("it does not answer"))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isOff reports whether the keyring is not asked.
func (r *ring) isOff() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.off
}

// giveUp has the keyring not be asked again.
func (r *ring) giveUp(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.off {
		r.logger.Info("the keyring of the system cannot be used: a sealed file is used", "for", r.kind, "error", err)
	}
	r.off = true
	return errNoRing
}

func (r *ring) load(ctx context.Context, key string) ([]byte, error) {
	var value string
	err := r.do(ctx, func() (err error) { value, err = keyring.Get(ringService, key+r.suffix); return err })
	switch {
	case err == nil:
		return []byte(value), nil
	case errors.Is(err, keyring.ErrNotFound), errors.Is(err, errNoRing):
		return nil, nil
	}
	return nil, err
}

func (r *ring) save(ctx context.Context, key string, value []byte) error {
	return r.do(ctx, func() error { return keyring.Set(ringService, key+r.suffix, string(value)) })
}

func (r *ring) delete(ctx context.Context, key string) error {
	err := r.do(ctx, func() error { return keyring.Delete(ringService, key+r.suffix) })
	if errors.Is(err, keyring.ErrNotFound) || errors.Is(err, errNoRing) {
		return nil
	}
	return err
}
