package config

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Who brought a text into force, where no actor is known.
const (
	ByHand    = "file"  // a person who edited the file
	ByCommand = "admin" // a person, by a command that changes one thing: see AddServer
)

// InForce is the text of the configuration that is in force. Data is nil where
// there was no file; the secrets are in it.
type InForce struct {
	Data  []byte
	Since time.Time
	By    string
	Keys  []string // what it changed, as Differences has them
}

// ETag identifies the text.
func (f InForce) ETag() string { return ETag(f.Data) }

// ETag identifies the bytes of a file; nil stands for none.
func ETag(data []byte) string {
	if data == nil {
		return "none"
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}
