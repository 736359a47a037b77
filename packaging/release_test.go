package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/testutil/volume"
)

// one is a release of one system, made from a directory.
func one(t *testing.T, root string) (release, error) {
	t.Helper()
	out, err := os.MkdirTemp("", "mcpproxy-release-") // it is shared by tests
	if err != nil {
		return release{}, err
	}
	r := release{Version: "1.2.3", Commit: strings.Repeat("c", 40), Date: time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC), Home: "https://example.com/mcpproxy", root: root, out: out}
	return r, r.make(t.Context(), []target{{"linux", "amd64"}})
}

// made is the release of this directory. It is built once.
var made struct {
	sync.Once
	release
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if made.out != "" {
		_ = os.RemoveAll(made.out)
	}
	os.Exit(code)
}

// madeRelease returns the release of this directory.
func madeRelease(t *testing.T) release {
	t.Helper()
	volume.SkipUnlessNightly(t, volume.Packages)
	if _, err := os.Stat("../ui/node_modules/preact/LICENSE"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the licences of the web UI are not there: npm ci --prefix ui")
		}
		t.Skip("the licences of the web UI are not there: npm ci --prefix ui")
	}
	made.Do(func() { made.release, made.err = one(t, "..") })
	if made.err != nil {
		t.Fatal(made.err)
	}
	return made.release
}

// Two builds of a commit give the same bytes. Whether compilers do is checked by hand, because it takes as long as two
// builds from nothing.
func TestTwoBuildsGiveTheSameBytes(t *testing.T) {
	first := madeRelease(t)
	root := t.TempDir()
	files, err := exec.Command("git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(files), "\x00"), "\x00") {
		to := filepath.Join(root, name)
		data, err := os.ReadFile(filepath.Join("..", name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not committed yet
		}
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	modules, err := filepath.Abs("../ui/node_modules")
	if err := errors.Join(err, os.Symlink(modules, filepath.Join(root, "ui", "node_modules"))); err != nil {
		t.Fatal(err)
	}
	second, err := one(t, root)
	defer os.RemoveAll(second.out)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(first.out)
	if err != nil || len(entries) != 7 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		a, errA := os.ReadFile(filepath.Join(first.out, e.Name()))
		b, errB := os.ReadFile(filepath.Join(second.out, e.Name()))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %d and %d bytes, %v %v", e.Name(), len(a), len(b), errA, errB)
		}
		if bytes.Contains(a, []byte(root)) || bytes.Contains(b, []byte(root)) {
			t.Errorf("%s has the directory of its sources in it", e.Name())
		}
	}
}

// entries returns the headers of the files in a compressed archive.
func entries(t *testing.T, path string) (all []*tar.Header) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, head)
	}
}

func TestArchive(t *testing.T) {
	r := madeRelease(t)
	heads := entries(t, filepath.Join(r.out, "mcpproxy_1.2.3_linux_amd64.tar.gz"))
	var names []string
	for _, h := range heads {
		names = append(names, h.Name)
		if !h.ModTime.Equal(r.Date) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%+v", h)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("not in order: %q", names)
	}
	for _, want := range []string{"mcpproxy", "LICENSE", "README.md", "THIRD_PARTY_LICENSES", "completions/_mcpproxy", "completions/mcpproxy.bash", "completions/mcpproxy.fish", "completions/mcpproxy.ps1", "man/man1/mcpproxy.1", "man/man1/mcpproxy-service-install.1"} {
		if !slices.Contains(names, "mcpproxy_1.2.3_linux_amd64/"+want) {
			t.Errorf("no %s in %q", want, names)
		}
	}
}

func TestChecksums(t *testing.T) {
	r := madeRelease(t)
	cmd := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	cmd.Dir = r.out
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != 6 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestArguments(t *testing.T) {
	for name, args := range map[string][]string{
		"no version":      {"-home", "https://example.com"},
		"a bad version":   {"-version", "v1.2.3", "-home", "https://example.com"},
		"no home":         {"-version", "1.2.3"},
		"an unknown goal": {"-version", "1.2.3", "-home", "https://example.com", "-only", "plan9/amd64"},
		"not empty":       {"-version", "1.2.3", "-home", "https://example.com", "-out", ".", "-allow-dirty"},
		"too much":        {"-version", "1.2.3", "-home", "https://example.com", "x"},
	} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
