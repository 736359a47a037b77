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

// signEvery is the number of entries between two that are signed: each whose number is
// a multiple of it. It is part of the format.
const signEvery = 4096

// signAfter is how long entries may come before one of them is signed.
const signAfter = time.Hour

// signingKey is the action of the record that says with which key is signed from there
// on.
const signingKey = "signing_key"

// Key is what a log signs with. A nil one signs nothing.
type Key struct {
	path string
	key  ed25519.PrivateKey
}

// openKey reads the key in a file, or makes one.
func openKey(path string) (*Key, error) {
	if path == "" {
		return nil, nil
	}
	k := &Key{path: path}
	err := k.read()
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if _, k.key, err = ed25519.GenerateKey(nil); err == nil {
		err = k.write()
	}
	return k, err
}

func (k *Key) read() error {
	text, err := os.ReadFile(k.path)
	if err != nil {
		return fmt.Errorf("read the key of the activity log: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("%s is no key: put the right one there, or move it away to have a new one made", k.path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	own, ok := key.(ed25519.PrivateKey)
	if err != nil || !ok {
		return errors.Join(fmt.Errorf("%s is no Ed25519 key: put the right one there, or move it away to have a new one made", k.path), err)
	}
	k.key = own
	return os.Chmod(k.path, 0o600)
}

func (k *Key) write() error {
	der, err := x509.MarshalPKCS8PrivateKey(k.key)
	if err == nil {
		err = ondisk.ReplaceFile(k.path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	if err != nil {
		return fmt.Errorf("keep the key of the activity log: %w", err)
	}
	return nil
}

// keep writes the key again when its file was deleted.
func (k *Key) keep() error {
	if k == nil {
		return nil
	}
	if _, err := os.Lstat(k.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(filepath.Dir(k.path)); err != nil {
		return nil // the folder comes first
	}
	return k.write()
}

// public is the public key; nil where nothing is signed.
func (k *Key) public() []byte {
	if k == nil {
		return nil
	}
	return k.key.Public().(ed25519.PublicKey)
}

// Sign returns c, signed.
func (k *Key) Sign(c Checkpoint) Checkpoint {
	c.Key, c.Time = k.public(), c.Time.UTC().Truncate(time.Microsecond)
	c.Signature = ed25519.Sign(k.key, c.statement())
	return c
}

// checkpoints has the projector sign places of the chain.
type checkpoints struct {
	*Key
	last time.Time // when the last one was signed
}

// add signs what is to be signed of entries that are about to be stored.
func (c *checkpoints) add(chain string, entries []Entry, now time.Time) {
	if c.Key == nil {
		return
	}
	for i := range entries {
		e := &entries[i]
		if e.Seq%signEvery != 0 && (i < len(entries)-1 || now.Sub(c.last) < signAfter) {
			continue
		}
		signed := c.Sign(Checkpoint{Chain: chain, Seq: e.Seq, Hash: e.Hash, Time: now})
		e.Signature, c.last = &signed, now
	}
}

// keyRecord says with which key is signed from now on.
func keyRecord(public []byte) Record {
	return Record{Type: System, Status: Success, Actor: "system", Metadata: Metadata{Action: signingKey, Detail: hex.EncodeToString(public)}}
}

// String is the public key in hexadecimal digits; empty where nothing is signed.
func (k *Key) String() string { return hex.EncodeToString(k.public()) }

// SignText signs what an export says of itself. It is nil where nothing is signed.
func (k *Key) SignText(text []byte) []byte {
	if k == nil {
		return nil
	}
	return ed25519.Sign(k.key, text)
}

// keyOf returns the key that a payload puts on record, nil for other ones.
func keyOf(payload []byte) []byte {
	if !strings.Contains(string(payload[max(0, len(payload)-256):]), `"action":"`+signingKey+`","detail":"`) {
		return nil
	}
	p, err := decodePayload(payload)
	if err != nil || p.Type != System || p.Metadata.Action != signingKey {
		return nil
	}
	key, err := hex.DecodeString(p.Metadata.Detail)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil
	}
	return key
}
