// Package strictjson is the one strict parse of JSON that comes from outside
// and that policy looks at: what it accepts means the same to every JSON
// parser, so what was judged is what is forwarded.
//
// It guarantees that an accepted text is RFC 8259 JSON in valid UTF-8 without
// lone surrogates, without numbers beyond a float64, without two members of
// one object whose names are equal when case is folded (as Go, among others,
// would take one for the other), without member names that hold a NUL (where
// C strings end), and within the bounds on size and depth. It never panics and
// never recurses. Up to 64 members per object and 64 levels it allocates
// nothing.
//
// For text that is only carried, not judged, End checks the grammar alone. The
// package does not decode values into Go types, and does not know JSON-RPC.
package strictjson

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

// Error says where and why a text was refused. Offset counts bytes.
type Error struct {
	Offset int
	Reason string
	// Bound is set when the text broke a limit on size or depth, which the
	// reason names: it may be good JSON.
	Bound bool
}

// Error gives offset and reason in one sentence.
func (e *Error) Error() string {
	what := "invalid JSON at byte "
	if e.Bound {
		what = "JSON over the limit at byte "
	}
	return what + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// Check says whether data is exactly one JSON value, of any kind, that keeps
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

// End gives the offset just behind the one JSON value that data begins with,
// without white space around it. It checks the grammar and the depth (0 means
// the default) and nothing else: not UTF-8, surrogates, names or ranges. It is
// made for large values that are carried and not judged. The error is an
// *Error.
func End(data []byte, depth int) (int, error) {
	if depth <= 0 {
		depth = DefaultDepth
	}
	s := scanner{data: data, depth: depth}
	if i := s.skip(); i >= 0 {
		return i, nil
	}
	return 0, s.error()
}

// skip is value without names, and without the stack when there is no need.
func (s *scanner) skip() int {
	switch Kind(s.data) {
	case '{', '[':
		var frames [inlineDepth]int
		return s.value(0, frames[:0], nil)
	}
	return s.value(0, nil, nil)
}
