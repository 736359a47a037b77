package activity

import (
	"crypto/sha256"
	"encoding/hex"
)

// chainHash returns the hash of payload after prev.
func chainHash(prev Hash, payload []byte) Hash {
	sealed, _, _ := parts(payload)
	d := sha256.New()
	var head [hexLen + 1]byte
	hex.Encode(head[:], prev[:])
	head[hexLen] = ' '
	d.Write(head[:])
	d.Write(sealed)
	return Hash(d.Sum(nil))
}

// follows reports whether an entry with this payload and hash is what came after prev: its
// open part, too, is what it was, or erased.
func follows(prev Hash, payload []byte, h Hash) bool {
	if chainHash(prev, payload) != h {
		return false
	}
	sealed, open, old := parts(payload)
	return old || opens(sealed, open)
}

// ChainHash returns the hash of the entry with this payload in a chain, after the one
// whose hash is before; nil when that is no hash.
func ChainHash(before, payload []byte) []byte {
	if len(before) != len(Hash{}) {
		return nil
	}
	h := chainHash(Hash(before), payload)
	return h[:]
}
