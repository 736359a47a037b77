// Package web serves the web UI under /ui/ from files embedded in the program.
//
// Guarantees:
//   - It serves only these files.
//   - The Content-Security-Policy restricts a page to its own origin and its own scripts, without frames and forms. No
//     referrer is sent.
//   - Browsers cache a file permanently only if its name contains its hash.
//
// It does not authenticate: the files are public, and the page requests its data from the REST API. The daemon checks
// Host and Origin before this handler runs.
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

// Path is the path of the web UI.
const Path = "/ui/"

// UIAddress returns the URL of the UI for a browser on this machine. If byName is true, the URL has a host name,
// because passkeys do not work with an IP address.
func UIAddress(listener net.Addr, byName bool) string {
	host, port, _ := net.SplitHostPort(listener.String()) // the address of a listener has a host and a port
	if byName {
		return presence.PageOrigin(port) + Path
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + Path
}

const (
	index  = "index.html"
	assets = "assets/" // the names of files in this folder contain their hashes
)

// policy is the Content-Security-Policy of the UI.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// distZip is dist as a zip file, which is a third of its size. To update it, run go test ./internal/web -update.
//
//go:embed dist.zip
var distZip []byte

// Handler serves everything under Path and redirects other requests to Path.
type Handler struct {
	files        map[string]*uiFile
	usesPasskeys func() bool
}

// New returns a handler of the embedded files. While byName returns true, it redirects a page at a loopback address to
// the host name.
func New(byName func() bool) (*Handler, error) {
	dist, err := zip.NewReader(bytes.NewReader(distZip), int64(len(distZip)))
	if err != nil {
		return nil, fmt.Errorf("the files of the web UI: %w", err)
	}
	return newHandler(dist, byName)
}

// newHandler returns a handler of the files in dist.
func newHandler(dist fs.FS, byName func() bool) (*Handler, error) {
	h := &Handler{files: map[string]*uiFile{}, usesPasskeys: byName}
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			h.files[name] = &uiFile{name: name, forms: sync.OnceValues(func() (encodedFile, error) { return encodeFile(dist, name) })}
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

// ServeHTTP responds to one request. It returns the index page for a path without a file, because the page handles its
// own routes.
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
		header.Set("Location", Path[1:]) // relative, because a proxy may have removed a path in front; without the query, which the page does not use
		w.WriteHeader(http.StatusFound)
		return
	}
	asset := strings.HasPrefix(name, assets)
	if origin := hostNameOriginOfLoopback(r.Host); origin != "" && !asset && h.usesPasskeys() {
		// The browser keeps the fragment, which contains the sign-in code.
		header.Set("Location", origin+r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	found := h.files[name]
	switch {
	case asset && found == nil:
		http.Error(w, "The web UI has no such file. Reload the page.", http.StatusNotFound)
		return
	case asset:
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	case found == nil:
		h.files[index].serveFile(w, r, strings.Count(strings.TrimPrefix(r.URL.EscapedPath(), Path), "/"))
		return
	}
	found.serveFile(w, r, 0)
}

// hostNameOriginOfLoopback returns the origin with a host name if host is a loopback address, otherwise "".
func hostNameOriginOfLoopback(host string) string {
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
	return presence.PageOrigin(strconv.Itoa(int(at.Port())))
}

// uiFile is one file of the UI. It is compressed on first use, to keep startup fast.
type uiFile struct {
	name  string
	forms func() (encodedFile, error)
}

// encodedFile contains the bytes of a file, uncompressed and compressed.
type encodedFile struct {
	tag           string // ETag of the uncompressed bytes, without quotes
	plain, zipped []byte // zipped is nil if compression saves little
}

func encodeFile(dist fs.FS, name string) (f encodedFile, err error) {
	if f.plain, err = fs.ReadFile(dist, name); err != nil {
		return f, err
	}
	hash := sha256.Sum256(f.plain)
	f.tag = hex.EncodeToString(hash[:16])
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid, so there is no error
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

// serveFile answers with the file. Its addresses are relative to the path of the UI, and the request is depth folders
// below.
func (f *uiFile) serveFile(w http.ResponseWriter, r *http.Request, depth int) {
	made, err := f.forms()
	if err != nil {
		http.Error(w, "The file cannot be read.", http.StatusInternalServerError)
		return
	}
	body, tag := made.plain, made.tag
	if depth > 0 {
		body, tag = bytes.ReplaceAll(body, []byte(`="./`), []byte(`="`+strings.Repeat("../", depth))), tag+"-"+strconv.Itoa(depth)
	} else if made.zipped != nil {
		w.Header().Set("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header.Values("Accept-Encoding")) {
			w.Header().Set("Content-Encoding", "gzip")
			body, tag = made.zipped, tag+"-gz"
		}
	}
	w.Header().Set("Etag", `"`+tag+`"`)
	w.Header().Set("Content-Type", mediaType(f.name))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reports whether the Accept-Encoding headers of a client accept gzip.
func acceptsGzip(values []string) bool {
	for coding := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(weight, "q=0.") != "" || weight == ""
		}
	}
	return false
}

// mediaType returns the media type of a file. It does not depend on the system.
func mediaType(name string) string {
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
