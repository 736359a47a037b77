package wirejson

import (
	"math/rand/v2"
	"strconv"
)

// The default limits.
const (
	defaultBytes = 4 << 20
	defaultDepth = 64
)

// Limits are the limits of a JSON text. Zero means the default.
type Limits struct {
	Bytes int // default 4 MiB
	Depth int // default 64
}

// Check reports whether data is exactly one JSON value that meets the guarantees of the package. The error
// is an *Error.
func Check(data []byte, lim Limits) error {
	if lim.Bytes <= 0 {
		lim.Bytes = defaultBytes
	}
	if lim.Depth <= 0 {
		lim.Depth = defaultDepth
	}
	if len(data) > lim.Bytes {
		return &Error{lim.Bytes, "the text is longer than " + strconv.Itoa(lim.Bytes) + " bytes", true}
	}
	var names [inlineNames]memberName
	var frames [inlineDepth]int
	s := scanner{data: data, depth: lim.Depth, strict: true, seed: [2]uint64{rand.Uint64(), rand.Uint64()}}
	i := s.scanValue(skipSpace(data, 0), frames[:0], names[:0])
	if i >= 0 {
		if i = skipSpace(data, i); i < len(data) {
			i = s.failAt(i, "there is something after the value")
		}
	}
	if i < 0 {
		return s.toError()
	}
	return nil
}
