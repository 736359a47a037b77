// Package wirejson is the only reader and writer of JSON bytes: the strict parse
// of what comes from outside and policy looks at (Check), a cursor and what
// stands on it, to find and change members without touching other bytes, and
// strings with their escapes, both ways.
//
// It guarantees that what Check accepts means the same to every JSON parser, so
// that what was judged is what is forwarded: RFC 8259 JSON in valid UTF-8
// without lone surrogates, without numbers beyond a float64, without two members
// of one object whose names are equal when case is folded (as Go, among others,
// would take one for the other), without member names that hold a NUL (where
// C strings end), and within the bounds on size and depth. Check never recurses,
// and up to 64 members per object and 64 levels it allocates nothing. No
// function panics, whatever the text. What is written reads back the same.
//
// The package does not decode values into Go types beyond strings, integers and
// booleans, and does not know JSON-RPC.
//
// Scan, the strict walk, stands at the bottom; on it rawjson (Check), cursor and
// text (strings); on these names, read and member.
package wirejson

import (
	"math/rand/v2"
	"strconv"
)

// The default limits.
const (
	DefaultBytes = 4 << 20
	DefaultDepth = 64
)

// Limits bound a text. Zero means the default.
type Limits struct {
	Bytes int // default 4 MiB
	Depth int // default 64
}

// Check reports whether data is exactly one JSON value, of any kind, that keeps
// the promises of the package. The error is an *Error.
func Check(data []byte, lim Limits) error {
	if lim.Bytes <= 0 {
		lim.Bytes = DefaultBytes
	}
	if lim.Depth <= 0 {
		lim.Depth = DefaultDepth
	}
	if len(data) > lim.Bytes {
		return &Error{lim.Bytes, "the text is longer than " + strconv.Itoa(lim.Bytes) + " bytes", true}
	}
	var names [inlineNames]name
	var frames [inlineDepth]int
	s := scanner{data: data, depth: lim.Depth, strict: true, seed: [2]uint64{rand.Uint64(), rand.Uint64()}}
	i := s.value(skipSpace(data, 0), frames[:0], names[:0])
	if i >= 0 {
		if i = skipSpace(data, i); i < len(data) {
			i = s.fail(i, "there is something after the value")
		}
	}
	if i < 0 {
		return s.error()
	}
	return nil
}
