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

// maxLength is the largest body of a plain request, in bytes.
const maxLength = 1 << 20

var (
	errOdd     = errors.New("the request is not plain")
	errPartial = errors.New("the head is not complete")
)

// request is the head of a plain request.
type request struct {
	size   int // of the head, in bytes
	path   string
	host   string
	length int64 // of the body, in bytes
	header http.Header
}

// blank is what every request is made of; never written to.
var blank http.Request

// http is the request as net/http passes it to a handler.
func (r *request) http(ctx context.Context, remote string, body io.ReadCloser) *http.Request {
	h := blank.WithContext(ctx)
	h.Method, h.URL, h.RequestURI = http.MethodPost, &url.URL{Path: r.path}, r.path
	h.Proto, h.ProtoMajor, h.ProtoMinor = "HTTP/1.1", 1, 1
	h.Header, h.Host, h.RemoteAddr = r.header, r.host, remote
	h.ContentLength, h.Body = r.length, http.NoBody
	if r.length > 0 {
		h.Body = body
	}
	return h
}

// maxFields is how many header lines a plain request has at most.
const maxFields = 32

// names are the header lines that the connection has seen: a client sends the
// same ones with each request, so they are made strings of once.
type names struct {
	paths  [2]string
	fields [maxFields]field
	size   int // of the last header, so that the next one gets no more room than it takes
}

type field struct {
	name   []byte // as sent
	key    string // in the canonical spelling
	values []string
}

var (
	newline   = []byte("\r\n")
	keepAlive = []byte("keep-alive") // some write it Keep-Alive
)

// parse reads a head that begins at head. errPartial: more has to come;
// errOdd: it is not plain.
func (s *names) parse(head []byte) (*request, error) {
	line, rest, whole := bytes.Cut(head, newline)
	const before, after = "POST ", " HTTP/1.1"
	if !bytes.HasPrefix(line, []byte(before)[:min(len(line), len(before))]) {
		return nil, errOdd
	}
	if !whole {
		return nil, partial(line)
	}
	path, ok := bytes.CutSuffix(bytes.TrimPrefix(line, []byte(before)), []byte(after))
	if !ok || len(path) == 0 || path[0] != '/' || !all(path, &pathByte) {
		return nil, errOdd
	}
	r := &request{path: s.path(path), length: -1, header: make(http.Header, s.size)}
	for lines := 0; ; lines++ {
		if line, rest, whole = bytes.Cut(rest, newline); !whole {
			return nil, partial(line)
		}
		if len(line) == 0 {
			break
		}
		if lines == maxFields {
			return nil, errOdd
		}
		if err := s.field(r, line, lines); err != nil {
			return nil, err
		}
	}
	if r.host == "" || r.length < 0 {
		return nil, errOdd
	}
	r.size, s.size = len(head)-len(rest), len(r.header)
	return r, nil
}

// partial is for a head of which line is the last that has come: more has to
// come, unless its lines end in another way.
func partial(line []byte) error {
	if bytes.IndexByte(line, '\n') >= 0 {
		return errOdd
	}
	return errPartial
}

// path makes a string of a path.
func (s *names) path(path []byte) string {
	for _, known := range s.paths {
		if known == string(path) {
			return known
		}
	}
	s.paths[1], s.paths[0] = s.paths[0], string(path)
	return s.paths[0]
}

// field reads the i-th header line.
func (s *names) field(r *request, line []byte, i int) error {
	name, value, ok := bytes.Cut(line, []byte{':'})
	value = bytes.Trim(value, " \t")
	if !ok || len(name) == 0 || !all(name, &tokenByte) || !all(value, &valueByte) {
		return errOdd
	}
	f := s.find(name, i)
	switch f.key {
	case "Host":
		if r.host != "" || len(value) == 0 || !all(value, &hostByte) {
			return errOdd
		}
		r.host = f.value(value)[0]
		return nil // net/http has it as Request.Host alone
	case "Content-Length":
		n, err := strconv.ParseUint(string(value), 10, 63)
		if r.length >= 0 || err != nil || n > maxLength {
			return errOdd
		}
		r.length = int64(n)
	case "Connection":
		if !bytes.EqualFold(value, keepAlive) {
			return errOdd
		}
	case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Http2-Settings", "Keep-Alive", "Te", "Proxy-Connection":
		return errOdd
	}
	if before := r.header[f.key]; before != nil {
		r.header[f.key] = append(before[:len(before):len(before)], string(value))
		return nil
	}
	r.header[f.key] = f.value(value)
	return nil
}

// find returns what is kept of the i-th line, for a line with this name.
func (s *names) find(name []byte, i int) *field {
	f := &s.fields[i]
	if !bytes.Equal(f.name, name) {
		*f = field{name: bytes.Clone(name), key: textproto.CanonicalMIMEHeaderKey(string(name))}
	}
	return f
}

// value returns the value as a header has it. Nobody writes to it.
func (f *field) value(v []byte) []string {
	if len(f.values) == 0 || f.values[0] != string(v) {
		f.values = []string{string(v)}
	}
	return f.values[:1:1]
}

// set is a set of bytes.
type set [256]bool

func all(b []byte, in *set) bool {
	for _, c := range b {
		if !in[c] {
			return false
		}
	}
	return true
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// What the parts of a plain head are made of. They are narrower than the
// grammar where that spares a rule.
var (
	pathByte  = setOf(letters + "/-._~@:")
	hostByte  = setOf(letters + "-.:[]_")
	tokenByte = setOf(letters + "!#$%&'*+-.^_`|~")
	valueByte = func() set {
		s := set{'\t': true}
		for c := ' '; c <= '~'; c++ {
			s[c] = true
		}
		return s
	}()
)

func setOf(members string) (s set) {
	for i := range len(members) {
		s[members[i]] = true
	}
	return s
}
