// Package web serves the web UI under /ui/, from files that are part of the
// program.
//
// It guarantees that nothing but these files is served, that every answer forbids
// the page whatever is not of its own origin (no script but its own files, no
// frame, no form, no request elsewhere, no referrer), and that a browser keeps a
// file for good only when its name holds its hash. It knows nobody: the files are
// for everyone, and what the page shows it asks REST for. Host and Origin are
// checked before it, as for everything.
package web

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/gate/presence"
)

// Path is where the UI is mounted.
const Path = "/ui/"

// Address is where a browser of this machine finds the UI of who listens there; byName is
// that passkeys are asked for, which an address cannot have.
func Address(listener net.Addr, byName bool) string {
	host, port, _ := net.SplitHostPort(listener.String()) // a listener has both
	if byName {
		return presence.Origin(port) + Path
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + Path
}

const (
	index  = "index.html"
	assets = "assets/" // whose names hold their hashes
)

// policy is the Content-Security-Policy of the UI.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// packed is dist as a zip file, which is a third of it: go test ./internal/web -update.
//
//go:embed dist.zip
var packed []byte

// Handler answers everything under Path, and sends who asks for something else
// there.
type Handler struct {
	files  map[string]*file
	byName func() bool
}

// New returns the handler of the files that were built. While byName reports true a page at a
// loopback address is sent to the name of that.
func New(byName func() bool) (*Handler, error) {
	dist, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return nil, fmt.Errorf("the files of the web UI: %w", err)
	}
	return serving(dist, byName)
}

// serving returns the handler of these files.
func serving(dist fs.FS, byName func() bool) (*Handler, error) {
	h := &Handler{files: map[string]*file{}, byName: byName}
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			h.files[name] = &file{name: name, forms: sync.OnceValues(func() (forms, error) { return formsOf(dist, name) })}
		}
		return err
	})
	if err == nil && h.files[index] == nil {
		err = errors.New("there is no " + index)
	}
	if err != nil {
		return nil, fmt.Errorf("the files of the web UI: %w", err)
	}
	return h, nil
}

// ServeHTTP answers one request. An address without a file is one of the page's
// own, which knows what to show there.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-cache",
	} {
		header.Set(name, value)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "The web UI is read with GET.", http.StatusMethodNotAllowed)
		return
	}
	name, under := strings.CutPrefix(r.URL.Path, Path)
	if !under {
		header.Set("Location", Path) // without the query, which means nothing to the page
		w.WriteHeader(http.StatusFound)
		return
	}
	asset := strings.HasPrefix(name, assets)
	if origin := named(r.Host); origin != "" && !asset && h.byName() {
		// The browser takes along what is after the #: the code that signs in.
		header.Set("Location", origin+r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	found := h.files[name]
	switch {
	case asset && found == nil:
		http.Error(w, "The web UI has no such file. Load the page anew.", http.StatusNotFound)
		return
	case asset:
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	case found == nil:
		found = h.files[index]
	}
	found.serve(w, r)
}

// named returns the origin by name of a Host that is a loopback address, "" for others.
func named(host string) string {
	at, err := netip.ParseAddrPort(host)
	if err != nil {
		addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil {
			return ""
		}
		at = netip.AddrPortFrom(addr, 80)
	}
	if !at.Addr().IsLoopback() {
		return ""
	}
	return presence.Origin(strconv.Itoa(int(at.Port())))
}

// file is one file of the UI. Its forms are made when it is first asked for, so
// that a start does not wait for them.
type file struct {
	name  string
	forms func() (forms, error)
}

// forms are the bytes of a file as they are sent.
type forms struct {
	tag           string // of the plain ones, without quotes
	plain, zipped []byte // zipped is nil where it saves nothing
}

func formsOf(dist fs.FS, name string) (f forms, err error) {
	if f.plain, err = fs.ReadFile(dist, name); err != nil {
		return f, err
	}
	hash := sha256.Sum256(f.plain)
	f.tag = hex.EncodeToString(hash[:16])
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is one
	if _, err := io.Copy(z, bytes.NewReader(f.plain)); err != nil {
		return f, err
	}
	if err := z.Close(); err != nil {
		return f, err
	}
	if out.Len() < len(f.plain)*9/10 {
		f.zipped = out.Bytes()
	}
	return f, nil
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	made, err := f.forms()
	if err != nil {
		http.Error(w, "The file cannot be read.", http.StatusInternalServerError)
		return
	}
	body, tag := made.plain, made.tag
	if made.zipped != nil {
		w.Header().Set("Vary", "Accept-Encoding")
		if takesGzip(r.Header.Values("Accept-Encoding")) {
			w.Header().Set("Content-Encoding", "gzip")
			body, tag = made.zipped, tag+"-gz"
		}
	}
	w.Header().Set("Etag", `"`+tag+`"`)
	w.Header().Set("Content-Type", contentType(f.name))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// takesGzip reports whether a client says that it takes gzip.
func takesGzip(values []string) bool {
	for coding := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(weight, "q=0.") != "" || weight == ""
		}
	}
	return false
}

// contentType is the type of a file, the same on every system.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".json", ".map":
		return "application/json"
	}
	return "application/octet-stream"
}
