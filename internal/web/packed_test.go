package web

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"flag"
	"io"
	"io/fs"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "pack dist into dist.zip")

// TestPackedIsBuilt checks that the embedded archive contains the built files of dist, byte for byte.
func TestPackedIsBuilt(t *testing.T) {
	built := os.DirFS("dist")
	if *update {
		if err := os.WriteFile("dist.zip", pack(t, built), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	packed, err := zip.NewReader(bytes.NewReader(distZip), int64(len(distZip)))
	if err != nil {
		t.Fatal(err)
	}
	one, other := contents(t, built), contents(t, packed)
	for name := range one {
		if one[name] != other[name] {
			t.Errorf("%s differs from the file in dist; run go test ./internal/web -update", name)
		}
	}
	if len(one) != len(other) || len(one) == 0 {
		t.Errorf("the archive has %d files and dist has %d; run go test ./internal/web -update", len(other), len(one))
	}
}

func contents(t *testing.T, files fs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// pack returns a zip archive of files, in order and without modification times.
func pack(t *testing.T, files fs.FS) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
