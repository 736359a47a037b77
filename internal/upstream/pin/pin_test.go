package pin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/mcp/dialpolicy"
)

func TestFindLaunch(t *testing.T) {
	for line, want := range map[string]string{
		"npx -y pkg":                                 "npm pkg@ bin= flags=[-y] args=[]",
		"npx -y @a/b@1.2 --root /x":                  "npm @a/b@1.2 bin= flags=[-y] args=[--root /x]",
		"npx.cmd --package @a/b@latest tool x":       "npm @a/b@latest bin=tool flags=[] args=[x]",
		"cmd /c npx -y pkg":                          "npm pkg@ bin= flags=[-y] args=[]",
		"npx --registry=http://r/ pkg":               "npm pkg@ bin= flags=[--registry=http://r/] args=[]",
		"npx --registry http://r/ pkg":               "npm pkg@ bin= flags=[--registry http://r/] args=[]",
		"uvx mcp-git --repo x":                       "pypi mcp-git@ bin=mcp-git flags=[] args=[--repo x]",
		"uvx mcp-git@latest":                         "pypi mcp-git@ bin=mcp-git flags=[] args=[]",
		"uvx --python 3.12 --from pkg[a]==1.0 tool":  "pypi pkg[a]@1.0 bin=tool flags=[--python 3.12] args=[]",
		"docker run -i --rm -e A=b -v /a:/b img:1 x": "docker img@1 bin= flags=[-i --rm -e A=b -v /a:/b] args=[x]",
		"docker run -i ghcr.io:443/o/img":            "docker ghcr.io:443/o/img@ bin= flags=[-i] args=[]",
		"npx --ignore-scripts pkg":                   "npm pkg@ bin= flags=[--ignore-scripts] args=[]",
		"npx -c 'x y'":                               "why: MCPProxy does not know the flag -c",
		"npx -p a -p b tool":                         "why: it names several packages",
		"npx -y github:a/b":                          "why: the package is not from an npm registry",
		"npx -y a/b":                                 "why: the package is not from an npm registry",
		"npx -y ./local":                             "why: the package is not from an npm registry",
		"npx -y":                                     "why: the command names no package",
		"uvx --from git+https://x/y tool":            "why: the package is not one version from a Python index",
		"uvx --from pkg>=1 tool":                     "why: the package is not one version from a Python index",
		"docker run -i img@sha256:00":                "why: the image has a digest already",
		"docker run --unknown x img":                 "why: MCPProxy does not know the flag --unknown",
		"docker compose up":                          "none",
		"node server.js":                             "none",
		"sh -c 'npx -y pkg'":                         "none",
	} {
		words := strings.Fields(line)
		l, why, ok := FindLaunch(words[0], words[1:])
		got := fmt.Sprintf("%s %s@%s bin=%s flags=%v args=%v", l.Kind, l.Name, l.Wanted, l.Bin, l.Flags, l.Args)
		switch {
		case !ok && why == "":
			got = "none"
		case !ok:
			got = "why: " + why
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestPinText(t *testing.T) {
	for _, text := range []string{"npm:@a/b@1.2.3#sha512-a+/=", "pypi:x@1#sha256-00", "docker:ghcr.io:443/o/i@latest#sha256:00"} {
		if p, err := Parse(text); err != nil || p.String() != text {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "npm:a@1", "npm:a#x", "npm:@a#x", "gem:a@1#x", "npm:a@1#", "npm:-a@1#x", "npm:a@1 #x"} {
		if p, err := Parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, p)
		}
	}
}

// An image starts by its digest, with all flags and arguments. A pin of another package fits no command.
func TestPinnedCommand(t *testing.T) {
	p := Pin{Docker, "img", "1", "sha256:00"}
	command, args, err := Pinned(p, "/mcpproxy", "/d", "docker", []string{"run", "-i", "-e", "A=b", "img:1", "x", "-i"})
	if err != nil || command != "docker" || !slices.Equal(args, []string{"run", "-i", "-e", "A=b", "img@sha256:00", "x", "-i"}) {
		t.Errorf("%s %q, %v", command, args, err)
	}
	if _, _, err := Pinned(p, "/mcpproxy", "/d", "docker", []string{"run", "-i", "other:1"}); err == nil {
		t.Error("a pin of another image is accepted")
	}
	p = Pin{NPM, "a", "1", "x"}
	command, args, err = Pinned(p, "/mcpproxy", "/d", "npx", []string{"-y", "a", "b"})
	if err != nil || command != "/mcpproxy" || !slices.Equal(args, []string{Command, "npm:a@1#x", "/d", "npx", "-y", "a", "b"}) {
		t.Errorf("%s %q, %v", command, args, err)
	}
}

// In a sandbox, the runner itself chooses the pinned version.
func TestExactCommand(t *testing.T) {
	for line, want := range map[string]string{
		"npx -y a b": "npx -y a@1 b", "npx -y --package a tool x": "npx -y --package a@1 tool x", "npx -y a@2 b": "npx -y a@1 b",
	} {
		words := strings.Fields(line)
		command, args, err := Exact(Pin{NPM, "a", "1", "x"}, words[0], words[1:])
		if got := command + " " + strings.Join(args, " "); got != want || err != nil {
			t.Errorf("%s: %s, %v", line, got, err)
		}
	}
	command, args, err := Exact(Pin{PyPI, "a", "1", "x"}, "uvx", []string{"a", "b"})
	if got := command + " " + strings.Join(args, " "); got != "uvx --from a==1 a b" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

// fakeProgram writes a shell script that prints an answer, and its arguments to the file ran.
func fakeProgram(t *testing.T, dir, name, answer string) (ran string) {
	t.Helper()
	ran = filepath.Join(dir, name+".ran")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> '%s'\ncat <<'END'\n%s\nEND\n", ran, answer)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return ran
}

// TestPythonIndex: the newest final version, the integrity over all its files, and withdrawn versions are read from the
// index. Another file changes the integrity.
func TestPythonIndex(t *testing.T) {
	file := func(name, sum, more string) string {
		return fmt.Sprintf(`{"filename":%q,"hashes":{"sha256":%q},"upload-time":"2026-01-0%dT00:00:00Z"%s}`, name, sum, len(sum), more)
	}
	files := []string{file("my_pkg-1.9-py3-none-any.whl", "a", ""), file("my_pkg-1.10.0-py3-none-any.whl", "bb", ""), file("my_pkg-1.10.0.tar.gz", "ccc", ""), file("my_pkg-2.0rc1.tar.gz", "dddd", "")}
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/simple/my-pkg/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"versions":["1.9","1.10.0","2.0rc1"],"files":[%s]}`, strings.Join(files, ","))
	}))
	defer index.Close()
	l, _, ok := FindLaunch("uvx", []string{"My.Pkg"})
	if !ok {
		t.Fatal("no launch")
	}
	env := []string{"UV_DEFAULT_INDEX=" + index.URL + "/simple/"}
	v, err := l.Resolve(t.Context(), "", env)
	if err != nil || v.Version != "1.10.0" || v.Published.Day() != 2 || v.Deprecated != "" {
		t.Fatalf("%+v, %v", v, err)
	}
	files = append(files, file("my_pkg-1.10.0-cp312-win.whl", "eeeee", `,"yanked":"broken"`))
	changed, err := l.Resolve(t.Context(), "1.10.0", env)
	if err != nil || changed.Integrity == v.Integrity || changed.Deprecated != "withdrawn: broken" {
		t.Errorf("%+v, %v", changed, err)
	}
	if _, err := l.Resolve(t.Context(), "3.0", env); err == nil {
		t.Error("a version that does not exist is found")
	}
	t.Setenv("UV_DEFAULT_INDEX", index.URL+"/simple")
	_, err = l.CheckPyPI(context.Background(), Pin{PyPI, "My.Pkg", "1.10.0", v.Integrity}, t.TempDir())
	if mismatch, is := errors.AsType[*MismatchError](err); !is || mismatch.Found != changed.Integrity {
		t.Errorf("a replaced version gives %v", err)
	}
}

func TestImageDigest(t *testing.T) {
	dir := t.TempDir()
	ran := fakeProgram(t, dir, "docker", `[{"RepoDigests":["ghcr.io/o/img@sha256:abc"],"Created":"2026-01-02T00:00:00Z"}]`)
	l, _, ok := FindLaunch(filepath.Join(dir, "docker"), []string{"run", "-i", "ghcr.io/o/img:1"})
	if !ok {
		t.Fatal("no launch")
	}
	v, err := l.Resolve(t.Context(), l.Wanted, os.Environ())
	if err != nil || v.Pin.String() != "docker:ghcr.io/o/img@1#sha256:abc" {
		t.Errorf("%+v, %v", v, err)
	}
	text, err := os.ReadFile(ran)
	if err != nil || string(text) != "pull --quiet ghcr.io/o/img:1\nimage inspect ghcr.io/o/img:1\n" {
		t.Errorf("%s, %v", text, err)
	}
}

// TestIndexCannotLeadInside: an index that redirects to the address of a machine's credentials is not followed.
func TestIndexCannotLeadInside(t *testing.T) {
	index := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/meta-data/", http.StatusFound))
	defer index.Close()
	l, _, _ := FindLaunch("uvx", []string{"--default-index", index.URL, "pkg"})
	_, err := l.Resolve(t.Context(), "", nil)
	if _, is := errors.AsType[*dialpolicy.AddressNotAllowedError](err); !is {
		t.Errorf("%v", err)
	}
}

// TestPrune: packages of pins stay, and all others go, with what an interrupted deletion has left.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	keep, old := Pin{NPM, "a", "1", "x"}, Pin{NPM, "a", "2", "x"}
	in := func(p Pin, suffix string) string { return filepath.Join(dir, string(p.Kind), p.folder()+suffix) }
	python := Pin{PyPI, "a", "1", "x"}
	for _, path := range []string{in(keep, ""), in(old, ""), in(old, removedSuffix), in(python, "")} {
		if err := os.MkdirAll(filepath.Join(path, "node_modules"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []Pin{keep, old} {
		if err := os.WriteFile(in(p, lockSuffix), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pins := []string{keep.String(), "", "no pin"}
	for range 2 { // the second one removes what the first one could not rename
		if err := Prune(dir, pins)(); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{in(keep, "") + "/node_modules", in(keep, lockSuffix)} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("a package that is needed is gone: %v", err)
		}
	}
	for _, path := range []string{in(old, ""), in(old, lockSuffix), in(old, removedSuffix), in(python, "")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	if err := Prune(filepath.Join(dir, "none"), nil)(); err != nil {
		t.Error(err)
	}
}
