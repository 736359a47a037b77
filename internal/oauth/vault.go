package oauth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"filippo.io/age"
	"github.com/zalando/go-keyring"

	"mcpproxy/internal/ondisk"
)

// Vault stores secrets by their keys. A value that is not there is nil.
type Vault interface {
	Load(ctx context.Context, key string) ([]byte, error)
	Save(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
}

// NoKeyring is the environment variable that keeps the vault out of the
// keyring of the system when it is set to anything.
const NoKeyring = "MCPPROXY_NO_KEYRING"

// OpenVault returns the vault of a data directory: the keyring of the system,
// or, where there is none or it does not take a value, a sealed file.
func OpenVault(dir string, logger *slog.Logger) Vault {
	sum := sha256.Sum256([]byte(dir))
	return &vault{
		ring: &ring{suffix: " " + hex.EncodeToString(sum[:6]), logger: logger, off: !ringThere()},
		file: &sealed{dir: dir, logger: logger},
	}
}

// vault is the keyring with the file behind it. A value stands in one of them.
type vault struct {
	ring *ring
	file *sealed
}

// Load implements Vault.
func (v *vault) Load(ctx context.Context, key string) ([]byte, error) {
	value, err := v.file.load(key)
	if value != nil || err != nil {
		return value, err
	}
	return v.ring.load(ctx, key)
}

// Save implements Vault.
func (v *vault) Save(ctx context.Context, key string, value []byte) error {
	if v.ring.save(ctx, key, value) == nil {
		return v.file.put(key, nil)
	}
	return v.file.put(key, value)
}

// Delete implements Vault.
func (v *vault) Delete(ctx context.Context, key string) error {
	return errors.Join(v.file.put(key, nil), v.ring.delete(ctx, key))
}

// ring is the keyring of the system.
type ring struct {
	suffix string // tells data directories apart
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
	r.mu.Lock()
	off := r.off
	r.mu.Unlock()
	if off {
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

// giveUp has the keyring not be asked again.
func (r *ring) giveUp(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.off {
		r.logger.Info("the keyring of the system cannot be used: logins are kept in a sealed file", "error", err)
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

// sealed is a file that only the holder of a key can read, and the key in
// another file that only the user can read.
type sealed struct {
	dir    string
	logger *slog.Logger
	mu     sync.Mutex // one reads and writes at a time
}

const (
	sealedFile = "logins.age"
	sealedKey  = "logins.key"
	maxSealed  = 16 << 20
)

func (s *sealed) load(key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	return all[key], err
}

// put stores a value, or removes it when it is nil.
func (s *sealed) put(key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	if err != nil {
		// What cannot be opened is kept aside: it may be opened elsewhere.
		aside := filepath.Join(s.dir, sealedFile+".unreadable")
		s.logger.Warn("the sealed logins cannot be read: they are kept aside", "file", aside, "error", err)
		if err := os.Rename(filepath.Join(s.dir, sealedFile), aside); err != nil {
			return fmt.Errorf("put the unreadable logins aside: %w", err)
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
	return s.write(all)
}

func (s *sealed) read() (map[string][]byte, error) {
	f, err := os.Open(filepath.Join(s.dir, sealedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the sealed logins: %w", err)
	}
	defer func() { _ = f.Close() }()
	identity, err := s.identity(false)
	if err != nil {
		return nil, err
	}
	plain, err := age.Decrypt(io.LimitReader(f, maxSealed), identity)
	if err != nil {
		return nil, fmt.Errorf("open the sealed logins: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(plain, maxSealed))
	if err != nil {
		return nil, fmt.Errorf("read the sealed logins: %w", err)
	}
	var all map[string][]byte
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, errors.New("the sealed logins are not what was written")
	}
	return all, nil
}

func (s *sealed) write(all map[string][]byte) error {
	identity, err := s.identity(true)
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
		return fmt.Errorf("seal the logins: %w", err)
	}
	_, err = w.Write(raw)
	if err := errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("seal the logins: %w", err)
	}
	return ondisk.Replace(filepath.Join(s.dir, sealedFile), out.Bytes())
}

// identity returns the key of the file, made when it may be and there is none.
func (s *sealed) identity(mayMake bool) (*age.X25519Identity, error) {
	path := filepath.Join(s.dir, sealedKey)
	raw, err := os.ReadFile(path)
	if err == nil {
		id, err := age.ParseX25519Identity(string(bytes.TrimSpace(raw)))
		if err != nil {
			return nil, fmt.Errorf("the key of the sealed logins in %s is not one: move it away to start anew", path)
		}
		return id, os.Chmod(path, 0o600)
	}
	if !errors.Is(err, fs.ErrNotExist) || !mayMake {
		return nil, fmt.Errorf("read the key of the sealed logins: %w", err)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("make a key for the logins: %w", err)
	}
	return id, ondisk.Replace(path, []byte(id.String()+"\n"))
}
