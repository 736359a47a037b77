package wire

import (
	"bytes"
	"net/http"
	"strings"
)

// Bounds on the header lines of an answer that are passed on to a client. What
// is beyond them is left out: some clients take a head of 16 KiB and no more,
// and ours is in it, too.
const (
	maxPassedFields = 64
	maxPassedBytes  = 12 << 10
	maxFieldName    = 64
)

// passField keeps a header line of an answer for the client, if it is one that
// a client may get.
func (a *Response) passField(name, value []byte) {
	if len(a.fields) >= maxPassedFields || a.passed+len(name)+len(value) > maxPassedBytes || !endToEnd(name) || !printable(value) {
		return
	}
	a.passed += len(name) + len(value)
	a.fields = append(a.fields, Field{Name: string(name), Value: string(value)})
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
func (a *Response) Passable() []Field {
	if len(a.hops) == 0 {
		return a.fields
	}
	var rest []Field
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

// passAll is passField for the headers of net/http.
func (a *Response) passAll(h http.Header) {
	for name, values := range h {
		for _, v := range values {
			if name == "Connection" {
				a.passHop([]byte(v))
			} else {
				a.passField([]byte(name), []byte(v))
			}
		}
	}
}

// endToEnd reports whether a header line of that name is for the client. Not for
// it is what is about the connection or the bytes of the body, which is put
// into another envelope; what is ours to say or ours to be told, above all
// credentials; and what a browser would take for the policy of our address.
func endToEnd(name []byte) bool {
	var buf [maxFieldName]byte
	if len(name) == 0 || len(name) > len(buf) || !isToken(string(name)) {
		return false
	}
	lower := lowered(buf[:0], name)
	switch string(lower) {
	case "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length", "content-type",
		"content-encoding", "content-range", "content-location", "accept-ranges", "content-md5", "digest", "content-digest", "repr-digest",
		"signature", "signature-input", "date", "server", "alt-svc", "location", "refresh", "host", "x-accel-buffering",
		"mcp-session-id", "set-cookie", "set-cookie2", "www-authenticate", "authentication-info", "authorization",
		"strict-transport-security", "x-frame-options", "x-content-type-options", "x-xss-protection", "referrer-policy",
		"permissions-policy", "feature-policy", "clear-site-data", "origin-agent-cluster", "timing-allow-origin",
		"service-worker-allowed", "sourcemap", "x-sourcemap", "nel", "report-to", "reporting-endpoints", "expect-ct", "public-key-pins",
		"accept-ch", "critical-ch", "set-login", "speculation-rules", "use-as-dictionary", "x-dns-prefetch-control", "x-permitted-cross-domain-policies":
		return false
	}
	for _, prefix := range [...]string{"proxy-", "access-control-", "cross-origin-", "content-security-policy", "document-", "integrity-policy", "attribution-reporting-",
		"secure-session-", "sec-", "x-accel-"} {
		if bytes.HasPrefix(lower, []byte(prefix)) {
			return false
		}
	}
	return true
}

// lowered appends a name in lower case to buf.
func lowered(buf, name []byte) []byte {
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
