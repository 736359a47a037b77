package activity

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mcpproxy/internal/ondisk"
)

// checkpointEvery is the distance between required checkpoints: every entry whose sequence number is a multiple of it
// is signed. It is part of the format.
const checkpointEvery = 4096

// checkpointInterval is the maximum time between checkpoints while entries are appended.
const checkpointInterval = time.Hour

// signingKeyAction is the action of the record that announces the key for later signatures.
const signingKeyAction = "signing_key"

// SigningKey is the key that signs a log. A nil key signs nothing.
type SigningKey struct {
	path string
	key  ed25519.PrivateKey
}

// loadOrCreateSigningKey reads the key from a file. If there is none, it creates the key and the file.
func loadOrCreateSigningKey(path string) (*SigningKey, error) {
	if path == "" {
		return nil, nil
	}
	k := &SigningKey{path: path}
	err := k.readFile()
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if _, k.key, err = ed25519.GenerateKey(nil); err == nil {
		err = k.writeFile()
	}
	return k, err
}

func (k *SigningKey) readFile() error {
	text, err := os.ReadFile(k.path)
	if err != nil {
		return fmt.Errorf("read the key of the activity log: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("%s is not a key: restore the right one, or move it away so that MCPProxy creates a new one", k.path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	own, ok := key.(ed25519.PrivateKey)
	if err != nil || !ok {
		return errors.Join(fmt.Errorf("%s is not an Ed25519 key: restore the right one, or move it away so that MCPProxy creates a new one", k.path), err)
	}
	k.key = own
	return os.Chmod(k.path, 0o600)
}

func (k *SigningKey) writeFile() error {
	der, err := x509.MarshalPKCS8PrivateKey(k.key)
	if err == nil {
		err = ondisk.ReplaceFile(k.path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	if err != nil {
		return fmt.Errorf("store the key of the activity log: %w", err)
	}
	return nil
}

// restoreDeletedFile writes the key file again if it was deleted.
func (k *SigningKey) restoreDeletedFile() error {
	if k == nil {
		return nil
	}
	if _, err := os.Lstat(k.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(filepath.Dir(k.path)); err != nil {
		return nil // the directory must be created first
	}
	return k.writeFile()
}

// publicKey returns the public key, or nil if nothing is signed.
func (k *SigningKey) publicKey() []byte {
	if k == nil {
		return nil
	}
	return k.key.Public().(ed25519.PublicKey)
}

// SignCheckpoint returns c with the key, the current time and the signature.
func (k *SigningKey) SignCheckpoint(c SignedCheckpoint) SignedCheckpoint {
	c.Key, c.Time = k.publicKey(), c.Time.UTC().Truncate(time.Microsecond)
	c.Signature = ed25519.Sign(k.key, c.signedText())
	return c
}

// checkpointScheduler signs entries at intervals.
type checkpointScheduler struct {
	*SigningKey
	last time.Time // time of the last signature
}

// signDueEntries adds a signature to those entries that require a checkpoint, before they are stored.
func (c *checkpointScheduler) signDueEntries(chain string, entries []Entry, now time.Time) {
	if c.SigningKey == nil {
		return
	}
	for i := range entries {
		e := &entries[i]
		if e.Seq%checkpointEvery != 0 && (i < len(entries)-1 || now.Sub(c.last) < checkpointInterval) {
			continue
		}
		signed := c.SignCheckpoint(SignedCheckpoint{Chain: chain, Seq: e.Seq, Hash: e.Hash, Time: now})
		e.Signature, c.last = &signed, now
	}
}

// newSigningKeyRecord returns a record that announces the key for later signatures.
func newSigningKeyRecord(public []byte) Record {
	return Record{Type: System, Status: Success, Actor: "system", Metadata: Metadata{Action: signingKeyAction, Detail: hex.EncodeToString(public)}}
}

// String returns the public key in hexadecimal, or "" if nothing is signed.
func (k *SigningKey) String() string { return hex.EncodeToString(k.publicKey()) }

// SignText signs the last line of an export, which describes the export. It returns nil if nothing is signed.
func (k *SigningKey) SignText(text []byte) []byte {
	if k == nil {
		return nil
	}
	return ed25519.Sign(k.key, text)
}

// parseSigningKeyRecord returns the key that a payload announces, or nil if there is none.
func parseSigningKeyRecord(payload []byte) []byte {
	if !strings.Contains(string(payload[max(0, len(payload)-256):]), `"action":"`+signingKeyAction+`","detail":"`) {
		return nil
	}
	p, err := decodePayload(payload)
	if err != nil || p.Type != System || p.Metadata.Action != signingKeyAction {
		return nil
	}
	key, err := hex.DecodeString(p.Metadata.Detail)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil
	}
	return key
}
