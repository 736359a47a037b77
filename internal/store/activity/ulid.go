package activity

import (
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// ulidAlphabet contains the characters of ULIDs in the order of their values, so that sorting ULIDs as text sorts them
// by value.
const ulidAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const ulidLen = 26

// ulidGenerator generates increasing ULIDs with any clock. If the clock stops or goes back, the generator increments
// the random part of the last ULID. It is not safe for concurrent use.
type ulidGenerator struct {
	ms int64 // 48 bits of time
	hi uint16
	lo uint64
}

// newULIDGeneratorAfter returns a generator whose ULIDs are greater than all ULIDs of millisecond ms.
func newULIDGeneratorAfter(ms int64) ulidGenerator {
	return ulidGenerator{ms: ms, hi: math.MaxUint16, lo: math.MaxUint64}
}

func (s *ulidGenerator) nextULID(now time.Time) string {
	if ms := now.UnixMilli(); ms > s.ms {
		s.ms = ms
		s.hi = uint16(rand.Uint32()) >> 1 // leaves room to increment within the millisecond
		s.lo = rand.Uint64()
	} else {
		s.increment()
	}
	return s.formatULID()
}

// increment adds a random amount to the random part, so that neighboring IDs are hard to guess and two instances
// generate different IDs in the same millisecond.
func (s *ulidGenerator) increment() {
	before := s.lo
	s.lo += 1 + uint64(rand.Uint32())
	if s.lo > before {
		return
	}
	if s.hi++; s.hi == 0 {
		s.ms++
	}
}

func (s *ulidGenerator) formatULID() string {
	var b [ulidLen]byte
	ms := uint64(s.ms)
	for i := 9; i >= 0; i-- {
		b[i] = ulidAlphabet[ms&31]
		ms >>= 5
	}
	// 80 bits, 16 in hi and 64 in lo, are written from the right, five bits per character.
	hi, lo := uint64(s.hi), s.lo
	for i := ulidLen - 1; i >= 10; i-- {
		b[i] = ulidAlphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(b[:])
}

// parseULIDMillis returns the time of a ULID. ok is false if id is not a ULID.
func parseULIDMillis(id string) (ms int64, ok bool) {
	if len(id) != ulidLen || !IsIDPrefix(id) {
		return 0, false
	}
	for i := range 10 {
		ms = ms<<5 | int64(strings.IndexByte(ulidAlphabet, id[i]))
	}
	return ms, true
}

// IsIDPrefix reports whether s, in upper case, can be the beginning of an ID.
func IsIDPrefix(s string) bool {
	return s != "" && len(s) <= ulidLen && strings.Trim(s, ulidAlphabet) == ""
}
