package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != got {
		t.Errorf("%s: %v, got\n%s", name, err, got)
	}
}

// The manifests for Homebrew, winget and container builds, with their checksums.
func TestManifests(t *testing.T) {
	r := release{Version: "1.2.3", Date: time.Date(2026, 11, 23, 23, 0, 0, 0, time.UTC), Home: "https://example.com/mcpproxy", out: t.TempDir()}
	for _, target := range all {
		if err := r.write(r.archiveName(target), []byte(target.String())); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.manifests(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mcpproxy.rb", "Containerfile", "MCPProxy.MCPProxy.yaml", "MCPProxy.MCPProxy.installer.yaml", "MCPProxy.MCPProxy.locale.en-US.yaml"} {
		text, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, string(text))
	}
	if err := os.Remove(filepath.Join(r.out, r.archiveName(all[4]))); err != nil {
		t.Fatal(err)
	}
	if err := r.manifests(); err == nil {
		t.Error("there are checksums of an archive that is not there")
	}
}

// The paths of the installed files of each package.
func TestLayouts(t *testing.T) {
	shared, err := (&release{Version: "1.2.3", root: ".."}).shared(notices{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packagers {
		files, err := p.layout([]byte("program"), shared)
		if err != nil {
			t.Fatal(err)
		}
		var list strings.Builder
		for _, f := range files {
			if !strings.HasPrefix(f.name, "/usr/share/man/man1/mcpproxy-") {
				list.WriteString(f.mode.String() + " " + f.name + "\n")
			}
		}
		golden(t, "layout-"+p.format, list.String())
	}
}

// The README of an archive links to pages and pictures of the project, which the archive does not contain.
func TestReadmeLeadsSomewhere(t *testing.T) {
	shared, err := (&release{Version: "1.2.3", Home: "https://example.com/mcpproxy", root: ".."}).shared(notices{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range shared {
		if f.name != "README.md" {
			continue
		}
		text := string(f.data)
		for _, want := range []string{"](https://example.com/mcpproxy/blob/v1.2.3/docs/guide/install.md)", `src="https://example.com/mcpproxy/raw/v1.2.3/docs/pictures/`, "](https://go.dev/dl/)"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s", want)
			}
		}
		for _, left := range []string{"](docs/", "](CHANGELOG.md", `="docs/`} {
			if strings.Contains(text, left) {
				t.Errorf("%s is left", left)
			}
		}
		return
	}
	t.Error("there is no README.md")
}

func TestLicences(t *testing.T) {
	dir := t.TempDir()
	mit, err := os.ReadFile("../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, text, want string }{
		"MIT":      {"LICENSE", string(mit), "MIT"},
		"ISC":      {"LICENSE.md", "Permission to use, copy, modify, and/or distribute\nthis software for any purpose", "ISC"},
		"two BSDs": {"COPYING", "Redistribution and use in source and binary forms … may be used to endorse\n  or promote products", "BSD-3-Clause"},
		"unknown":  {"LICENSE", "Ask me.", ""},
		"none":     {"README", string(mit), ""},
		"empty":    {"LICENSE", " \n", ""},
	} {
		of := filepath.Join(dir, name)
		if err := os.Mkdir(of, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(of, c.file), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		files, err := licenceFiles(of)
		if err != nil {
			t.Fatal(err)
		}
		component := component{purl: name}
		if err := component.read(files); (err == nil) != (c.want != "") || component.licence != c.want {
			t.Errorf("%s: %q, %v", name, component.licence, err)
		}
	}
}

// A module without a licence stops a release.
func TestBillWantsAllLicences(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self) // like any Go program, it consists of modules
	if err != nil {
		t.Fatal(err)
	}
	r := release{Version: "1.2.3", out: t.TempDir()}
	if err := r.bill(all[0], program, notices{}); err == nil || !strings.Contains(err.Error(), "whose licence is not among those") {
		t.Error(err)
	}
}
