package activity

import "crypto/sha256"

// chainHash returns the hash of a text that is chained after prev.
func chainHash(prev Hash, text []byte) Hash {
	d := sha256.New()
	var head [hexLen + 1]byte
	prev.put(head[:])
	head[hexLen] = ' '
	d.Write(head[:])
	d.Write(text)
	return Hash(d.Sum(nil))
}

// payloadHash returns the hash of a payload after prev; ok is false when its open part is
// not as it was written.
func payloadHash(prev Hash, payload []byte) (h Hash, ok bool) {
	sealed, open, old := parts(payload)
	if old || open == nil {
		return chainHash(prev, payload), true
	}
	chained, ok := appendChained(make([]byte, 0, len(sealed)+commitsMax), sealed, open)
	return chainHash(prev, chained), ok
}

// follows reports whether an entry with this payload and hash is what came after prev: its
// open part, too, is what it was, or erased.
func follows(prev Hash, payload []byte, h Hash) bool {
	is, ok := payloadHash(prev, payload)
	return ok && is == h
}

// ChainHash returns the hash of the entry with this payload in a chain, after the one
// whose hash is before; nil when there is none.
func ChainHash(before, payload []byte) []byte {
	if len(before) != len(Hash{}) {
		return nil
	}
	h, ok := payloadHash(Hash(before), payload)
	if !ok {
		return nil
	}
	return h[:]
}
