package activity

import (
	"crypto/sha256"
	"encoding/hex"
)

// hashChained returns the hash of an entry with this chained text, if it follows the entry with the hash prev.
func hashChained(prev Hash, text []byte) Hash {
	d := sha256.New()
	var head [hexLen + 1]byte
	hex.Encode(head[:], prev[:])
	head[hexLen] = ' '
	d.Write(head[:])
	d.Write(text)
	return Hash(d.Sum(nil))
}

// hashPayload returns the hash of an entry with this payload, if it follows the entry with the hash prev. ok is false
// if the erasable part of the payload was changed.
func hashPayload(prev Hash, payload []byte) (h Hash, ok bool) {
	sealed, open, old := splitPayload(payload)
	if old || open == nil {
		return hashChained(prev, payload), true
	}
	chained, ok := appendSealedWithCommitments(make([]byte, 0, len(sealed)+commitsMax), sealed, open)
	return hashChained(prev, chained), ok
}

// isNextInChain reports whether an entry with this payload and hash follows prev, and its erasable part is unchanged or
// erased.
func isNextInChain(prev Hash, payload []byte, h Hash) bool {
	is, ok := hashPayload(prev, payload)
	return ok && is == h
}

// HashPayloadAfter returns the hash of an entry with this payload, if it follows the entry with the hash before. It
// returns nil if before is not a hash or the payload was changed.
func HashPayloadAfter(before, payload []byte) []byte {
	if len(before) != len(Hash{}) {
		return nil
	}
	h, ok := hashPayload(Hash(before), payload)
	if !ok {
		return nil
	}
	return h[:]
}
