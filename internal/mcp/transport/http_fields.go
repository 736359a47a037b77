package transport

import (
	"bytes"
	_ "embed"
	"strings"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/sectionfile"
)

// Limits for the response headers that are forwarded to a client. Headers beyond them are omitted. Some clients accept
// only 16 KiB, including MCPProxy's own headers.
const (
	maxPassedFields = 64
	maxPassedBytes  = 12 << 10
	maxFieldName    = 64
)

// addHeader handles a response header. lower is its name in lower case. If passes is set, the header is kept for the
// client if it may be forwarded.
func (a *HTTPResponse) addHeader(lower, name, value []byte, passes bool) {
	switch string(lower) {
	case "content-type":
		a.Media = parseMediaKind(value)
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
			a.addHopByHopNames(value)
		}
	}
	if !passes || len(a.headers) >= maxPassedFields || a.headerBytes+len(name)+len(value) > maxPassedBytes || !isForwardable(lower) || !isPrintable(value) {
		return
	}
	a.headerBytes += len(name) + len(value)
	a.headers = append(a.headers, mcp.Header{Name: string(name), Value: string(value)})
}

// addHopByHopNames records the hop-by-hop header names of a Connection header.
func (a *HTTPResponse) addHopByHopNames(value []byte) {
	for item := range bytes.SplitSeq(value, []byte{','}) {
		item = bytes.TrimSpace(item)
		if !bytes.EqualFold(item, []byte("keep-alive")) && !bytes.EqualFold(item, []byte("close")) {
			a.hops = append(a.hops, string(item))
		}
	}
}

// forwardableHeaders returns the headers that may be forwarded to the client. They stay valid after Close.
func (a *HTTPResponse) forwardableHeaders() []mcp.Header {
	if len(a.hops) == 0 {
		return a.headers
	}
	var rest []mcp.Header
	for _, f := range a.headers {
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

// withheld contains the headers that are not forwarded, in lower case.
var withheld = func() (w struct {
	names    map[string]bool
	prefixes []string
}) {
	f := sectionfile.Parse(withheldText)
	w.names, w.prefixes = f.SectionByHead("names").WordSet(), f.SectionByHead("prefixes").Words()
	return w
}()

// isForwardable reports whether a header is forwarded, by its name in lower case.
func isForwardable(lower []byte) bool {
	if withheld.names[string(lower)] || !isHTTPToken(string(lower)) {
		return false
	}
	for _, p := range withheld.prefixes {
		if bytes.HasPrefix(lower, []byte(p)) {
			return false
		}
	}
	return true
}

// appendLower appends a name in lower case to buf. It appends nothing if the name is longer than maxFieldName.
func appendLower(buf, name []byte) []byte {
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

// isPrintable reports whether a value is valid in a head.
func isPrintable(value []byte) bool {
	for _, b := range value {
		if b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return true
}
