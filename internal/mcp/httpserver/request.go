package httpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
)

// maxLength is the maximum size of the body of a plain request, in bytes.
const maxLength = 1 << 20

var (
	errNotPlain       = errors.New("the request is not plain")
	errIncompleteHead = errors.New("the head is not complete")
)

// requestHead is the head of a plain request.
type requestHead struct {
	size   int // size of the head, in bytes
	path   string
	host   string
	length int64 // length of the body, in bytes
	header http.Header
}

// blankRequest is the prototype of every request. It is never modified.
var blankRequest http.Request

// toHTTPRequest returns the request as net/http passes it to a handler.
func (r *requestHead) toHTTPRequest(ctx context.Context, remote string, body io.ReadCloser) *http.Request {
	h := blankRequest.WithContext(ctx)
	h.Method, h.URL, h.RequestURI = http.MethodPost, &url.URL{Path: r.path}, r.path
	h.Proto, h.ProtoMajor, h.ProtoMinor = "HTTP/1.1", 1, 1
	h.Header, h.Host, h.RemoteAddr = r.header, r.host, remote
	h.ContentLength, h.Body = r.length, http.NoBody
	if r.length > 0 {
		h.Body = body
	}
	return h
}

// maxHeaders limits the header lines of a plain request.
const maxHeaders = 32

// headerCache caches the header lines of a connection as strings, because a client repeats them with each request.
type headerCache struct {
	paths  [2]string
	fields [maxHeaders]cachedHeader
	size   int // size of the last header, as a size hint for the next one
}

type cachedHeader struct {
	name   []byte // as sent
	key    string // canonical
	values []string
}

var (
	newline   = []byte("\r\n")
	keepAlive = []byte("keep-alive") // some clients write Keep-Alive
)

// parseHead parses a head. It returns errIncompleteHead if the head is incomplete, and errNotPlain if net/http must
// serve the request.
func (s *headerCache) parseHead(head []byte) (*requestHead, error) {
	line, rest, whole := bytes.Cut(head, newline)
	const before, after = "POST ", " HTTP/1.1"
	if !bytes.HasPrefix(line, []byte(before)[:min(len(line), len(before))]) {
		return nil, errNotPlain
	}
	if !whole {
		return nil, incompleteLineErr(line)
	}
	path, ok := bytes.CutSuffix(bytes.TrimPrefix(line, []byte(before)), []byte(after))
	if !ok || len(path) == 0 || path[0] != '/' || !consistsOf(path, &pathByte) {
		return nil, errNotPlain
	}
	r := &requestHead{path: s.cachedPath(path), length: -1, header: make(http.Header, s.size)}
	for lines := 0; ; lines++ {
		if line, rest, whole = bytes.Cut(rest, newline); !whole {
			return nil, incompleteLineErr(line)
		}
		if len(line) == 0 {
			break
		}
		if lines == maxHeaders {
			return nil, errNotPlain
		}
		if err := s.parseHeaderLine(r, line, lines); err != nil {
			return nil, err
		}
	}
	if r.host == "" || r.length < 0 {
		return nil, errNotPlain
	}
	r.size, s.size = len(head)-len(rest), len(r.header)
	return r, nil
}

// incompleteLineErr returns errIncompleteHead, unless the incomplete line contains a bare LF.
func incompleteLineErr(line []byte) error {
	if bytes.IndexByte(line, '\n') >= 0 {
		return errNotPlain
	}
	return errIncompleteHead
}

// cachedPath returns a path as a string.
func (s *headerCache) cachedPath(path []byte) string {
	for _, known := range s.paths {
		if known == string(path) {
			return known
		}
	}
	s.paths[1], s.paths[0] = s.paths[0], string(path)
	return s.paths[0]
}

// parseHeaderLine parses the i-th header line.
func (s *headerCache) parseHeaderLine(r *requestHead, line []byte, i int) error {
	name, value, ok := bytes.Cut(line, []byte{':'})
	value = bytes.Trim(value, " \t")
	if !ok || len(name) == 0 || !consistsOf(name, &tokenByte) || !consistsOf(value, &valueByte) {
		return errNotPlain
	}
	f := s.cachedHeaderAt(name, i)
	switch f.key {
	case "Host":
		if r.host != "" || len(value) == 0 || !consistsOf(value, &hostByte) {
			return errNotPlain
		}
		r.host = f.cachedValue(value)[0]
		return nil // net/http stores it only in Request.Host
	case "Content-Length":
		n, err := strconv.ParseUint(string(value), 10, 63)
		if r.length >= 0 || err != nil || n > maxLength {
			return errNotPlain
		}
		r.length = int64(n)
	case "Connection":
		if !bytes.EqualFold(value, keepAlive) {
			return errNotPlain
		}
	case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Http2-Settings", "Keep-Alive", "Te", "Proxy-Connection":
		return errNotPlain
	}
	if before := r.header[f.key]; before != nil {
		r.header[f.key] = append(before[:len(before):len(before)], string(value))
		return nil
	}
	r.header[f.key] = f.cachedValue(value)
	return nil
}

// cachedHeaderAt returns the cached i-th line if it has this name. Otherwise it returns a new one.
func (s *headerCache) cachedHeaderAt(name []byte, i int) *cachedHeader {
	f := &s.fields[i]
	if !bytes.Equal(f.name, name) {
		*f = cachedHeader{name: bytes.Clone(name), key: textproto.CanonicalMIMEHeaderKey(string(name))}
	}
	return f
}

// cachedValue returns the value of a header. Callers must not modify it.
func (f *cachedHeader) cachedValue(v []byte) []string {
	if len(f.values) == 0 || f.values[0] != string(v) {
		f.values = []string{string(v)}
	}
	return f.values[:1:1]
}

// byteSet is a set of bytes.
type byteSet [256]bool

func consistsOf(b []byte, in *byteSet) bool {
	for _, c := range b {
		if !in[c] {
			return false
		}
	}
	return true
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// The bytes that a plain head may contain. They are stricter than the grammar where that makes a rule unnecessary.
var (
	pathByte  = newByteSet(letters + "/-._~@:")
	hostByte  = newByteSet(letters + "-.:[]_")
	tokenByte = newByteSet(letters + "!#$%&'*+-.^_`|~")
	valueByte = func() byteSet {
		s := byteSet{'\t': true}
		for c := ' '; c <= '~'; c++ {
			s[c] = true
		}
		return s
	}()
)

func newByteSet(members string) (s byteSet) {
	for i := range len(members) {
		s[members[i]] = true
	}
	return s
}
