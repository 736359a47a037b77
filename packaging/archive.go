package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// file is a file or directory of an archive or a package.
type file struct {
	name string // path with slashes; a directory ends with a slash
	mode fs.FileMode
	data []byte
	uid  int // user and group ID
}

// shared returns the files that every archive and package contains in addition to the program.
func (r *release) shared(n notices) ([]file, error) {
	files := []file{{name: "THIRD_PARTY_LICENSES", mode: 0o644, data: n.text()}}
	for _, name := range []string{"LICENSE", "README.md"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, mode: 0o644, data: r.absolute(data)})
	}
	for name, page := range manPages(r.Version, r.Date) {
		files = append(files, file{name: "man/man1/" + name, mode: 0o644, data: page})
	}
	for shell, name := range map[string]string{"bash": "mcpproxy.bash", "zsh": "_mcpproxy", "fish": "mcpproxy.fish", "powershell": "mcpproxy.ps1"} {
		script, err := completionScript(shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "completions/" + name, mode: 0o644, data: script})
	}
	sortFiles(files)
	return files, nil
}

// The links of a page that stay in the repository, and its pictures.
var (
	pages    = regexp.MustCompile(`\]\(([A-Za-z][^):]*)\)`)
	pictures = regexp.MustCompile(`(src|srcset)="(docs/[^"]+)"`)
)

// absolute makes the links of a page absolute, because archives do not contain their targets.
func (r *release) absolute(page []byte) []byte {
	page = pages.ReplaceAll(page, []byte("]("+r.Home+"/blob/v"+r.Version+"/$1)"))
	return pictures.ReplaceAll(page, []byte(`$1="`+r.Home+"/raw/v"+r.Version+`/$2"`))
}

func sortFiles(files []file) {
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
}

// stem returns the common beginning of the file names for one system.
func (r *release) stem(t target) string { return "mcpproxy_" + r.Version + "_" + t.os + "_" + t.arch }

// archiveName returns the name of a system's archive.
func (r *release) archiveName(t target) string {
	if t.os == "windows" {
		return r.stem(t) + ".zip"
	}
	return r.stem(t) + ".tar.gz"
}

// archive writes the archive of a system, with everything in one directory.
func (r *release) archive(t target, program []byte, shared []file) error {
	files := append([]file{{name: t.binary(), mode: 0o755, data: program}}, shared...)
	for i := range files {
		files[i].name = r.stem(t) + "/" + files[i].name
	}
	pack := tarball
	if t.os == "windows" {
		pack = zipped
	}
	data, err := pack(files, r.Date)
	if err != nil {
		return err
	}
	return r.write(r.archiveName(t), data)
}

// write writes a file of the release.
func (r *release) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// tarball packs files in the order of their names, all with the same time.
func tarball(files []file, date time.Time) ([]byte, error) {
	sortFiles(files)
	var out bytes.Buffer
	compress, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compress)
	for _, f := range files {
		head := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: date, Uid: f.uid, Gid: f.uid, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			head.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err = compress.Close()
	return out.Bytes(), err
}

// zipped is like tarball, in the ZIP format for Windows.
func zipped(files []file, date time.Time) ([]byte, error) {
	sortFiles(files)
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range files {
		head := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date.UTC()}
		head.SetMode(f.mode)
		w, err := archive.CreateHeader(head)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}

// gzipped compresses one file, as packages require for manual pages.
func gzipped(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// sum returns the SHA-256 of a file of the release.
func (r *release) sum(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(r.out, name))
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

// checksums writes SHA256SUMS, as sha256sum -c reads it.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out) // in the order of their names
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, e := range entries {
		sum, err := r.sum(e.Name())
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, e.Name())
	}
	return r.write("SHA256SUMS", []byte(out.String()))
}
