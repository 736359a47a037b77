// Package strictjson is the one strict parse of JSON that comes from outside
// and that policy looks at: what it accepts means the same to every JSON
// parser, so what was judged is what is forwarded.
//
// It guarantees that an accepted text is RFC 8259 JSON in valid UTF-8 without
// lone surrogates, without two members of one object whose names are equal
// when case is folded (as Go, among others, would take one for the other), and
// within the bounds on size and depth. It never panics and never recurses
// deeper than the bound. It does not decode values into Go types and it does
// not know JSON-RPC.
package strictjson

// Limits bound a text. Zero means the default.
type Limits struct {
	Bytes int // default 4 MiB
	Depth int // default 64
}

// Error says where and why a text was refused. Offset counts bytes.
type Error struct {
	Offset int
	Reason string
}
