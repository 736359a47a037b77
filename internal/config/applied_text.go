package config

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Authors of an applied text if no actor is known.
const (
	ByHand    = "file"  // a user who edited the file
	ByCommand = "admin" // a user, by a command that changes one thing: see AddServers
)

// AppliedText is the applied configuration text, with its secrets. Data is nil if there is no file.
type AppliedText struct {
	Data  []byte
	Since time.Time
	By    string
	Keys  []string // changed keys, as in Difference
}

// ETag identifies the text.
func (f AppliedText) ETag() string { return ETag(f.Data) }

// ETag identifies the bytes of a file; nil means that there is no file.
func ETag(data []byte) string {
	if data == nil {
		return "none"
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}
