package transport

import (
	"bytes"
	_ "embed"
	"strings"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/wordlist"
)

// Bounds on the header lines of an answer that are passed on to a client. What
// is beyond them is left out: some clients take a head of 16 KiB and no more,
// and ours is in it, too.
const (
	maxPassedFields = 64
	maxPassedBytes  = 12 << 10
	maxFieldName    = 64
)

// field takes what a header line says of the answer; lower is its name as lowered
// returns it. passes: it is kept for the client, if it is one that a client may get.
func (a *Response) field(lower, name, value []byte, passes bool) {
	switch string(lower) {
	case "content-type":
		a.Media = mediaOf(value)
	case "content-encoding":
		a.gzipped = bytes.EqualFold(value, []byte("gzip")) || bytes.EqualFold(value, []byte("x-gzip"))
		a.Encoded = !a.gzipped && !bytes.EqualFold(value, []byte("identity"))
	case "mcp-session-id":
		a.Session = string(value)
	case "location":
		a.Location = string(value)
	case "www-authenticate":
		if a.Challenge != "" {
			a.Challenge += ", "
		}
		a.Challenge += string(value)
	case "connection":
		if passes {
			a.passHop(value)
		}
	}
	if !passes || len(a.fields) >= maxPassedFields || a.passed+len(name)+len(value) > maxPassedBytes || !endToEnd(lower) || !printable(value) {
		return
	}
	a.passed += len(name) + len(value)
	a.fields = append(a.fields, mcp.Field{Name: string(name), Value: string(value)})
}

// passHop takes a Connection line, which names header lines that are for us
// alone besides saying what becomes of the connection.
func (a *Response) passHop(value []byte) {
	for item := range bytes.SplitSeq(value, []byte{','}) {
		item = bytes.TrimSpace(item)
		if !bytes.EqualFold(item, []byte("keep-alive")) && !bytes.EqualFold(item, []byte("close")) {
			a.hops = append(a.hops, string(item))
		}
	}
}

// Passable returns the header lines of the answer that its client may get,
// valid for as long as anybody wants them.
func (a *Response) Passable() []mcp.Field {
	if len(a.hops) == 0 {
		return a.fields
	}
	var rest []mcp.Field
	for _, f := range a.fields {
		hop := false
		for _, name := range a.hops {
			hop = hop || strings.EqualFold(name, f.Name)
		}
		if !hop {
			rest = append(rest, f)
		}
	}
	return rest
}

//go:embed withheld.txt
var withheldText string

// withheld are the header lines that are not for the client, in lower case.
var withheld = func() (w struct {
	names    map[string]bool
	prefixes []string
}) {
	f := wordlist.Read(withheldText)
	w.names, w.prefixes = f.Of("names").Set(), f.Of("prefixes").Words()
	return w
}()

// endToEnd reports whether a header line is for the client, by its name as
// lowered returns it.
func endToEnd(lower []byte) bool {
	if withheld.names[string(lower)] || !isToken(string(lower)) {
		return false
	}
	for _, p := range withheld.prefixes {
		if bytes.HasPrefix(lower, []byte(p)) {
			return false
		}
	}
	return true
}

// lowered appends a name in lower case to buf, which has room for maxFieldName;
// nothing when it is longer.
func lowered(buf, name []byte) []byte {
	if len(name) > cap(buf) {
		return buf
	}
	for _, b := range name {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		buf = append(buf, b)
	}
	return buf
}

// printable reports whether a value can stand in a head.
func printable(value []byte) bool {
	for _, b := range value {
		if b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return true
}
