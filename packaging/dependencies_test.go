package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const dependenciesHead = `# Dependencies

Written by ` + "`go test ./packaging -run Dependencies -update`" + `. The first two tables list what the released programs contain, for all
systems. The third table lists what only tests use. Versions are pinned in ` + "`go.mod`" + ` and ` + "`ui/package-lock.json`" + `. A new
module needs a reason in ` + "`internal/archtest/modules.txt`" + `.

Security: on 2026-11-30, all entries of the Go vulnerability database of 2026-11-05 about listed versions were about packages that
MCPProxy does not use: ` + "`" + `golang.org/x/crypto/openpgp` + "`" + `, and ` + "`" + `html` + "`" + ` and ` + "`" + `http2` + "`" + ` of ` + "`" + `golang.org/x/net` + "`" + `. The standard library is that of the Go that builds: Go 1.26.8 has
open entries about ` + "`" + `net/http` + "`" + ` and ` + "`" + `crypto/tls` + "`" + `, so build releases with the newest patch. To check again, run
` + "`govulncheck ./...`" + ` and ` + "`npm audit --prefix ui --omit dev`" + `.
`

// TestDependenciesPage checks that the reference lists every dependency with its version, release date, licence and use.
func TestDependenciesPage(t *testing.T) {
	if testing.Short() {
		t.Skip("lists the packages of the program, which takes seconds")
	}
	if _, err := os.Stat("../ui/node_modules"); err != nil {
		t.Skip("needs the packages of the web UI: npm ci --prefix ui")
	}
	r := release{root: ".."}
	program, err := r.licences(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	reasons := moduleReasons(t)
	modules, packages := map[string]component{}, map[string]component{}
	for _, c := range program {
		switch {
		case strings.HasPrefix(c.purl, "pkg:npm/"):
			packages[c.name] = c
		case c.name != "stdlib":
			modules[c.name] = c
		}
	}
	tests := map[string]component{}
	for name := range reasons {
		if _, used := modules[name]; !used {
			tests[name] = component{name: name}
		}
	}
	dates := moduleDates(t, &r, modules, tests)
	var out bytes.Buffer
	out.WriteString(dependenciesHead)
	writeModules(&out, "Go modules in the program", modules, dates, reasons)
	out.WriteString("\n## npm packages in the web UI\n\n| package | version | licence |\n| --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", name, packages[name].version, packages[name].licence)
	}
	writeModules(&out, "Go modules for tests only", tests, dates, reasons)
	path := filepath.Join("..", "docs", "reference", "dependencies.md")
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(want, out.Bytes()) {
		t.Errorf("%s is not current (%v): go test ./packaging -run Dependencies -update", path, err)
	}
}

func writeModules(out *bytes.Buffer, title string, modules map[string]component, dates, reasons map[string]string) {
	fmt.Fprintf(out, "\n## %s\n\n| module | version | released | licence | use |\n| --- | --- | --- | --- | --- |\n", title)
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		c := modules[name]
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", name, c.version, dates[name], c.licence, cmp.Or(reasons[name], "of another module"))
	}
}

// moduleReasons returns the reason for each direct dependency.
func moduleReasons(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../internal/archtest/modules.txt")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for line := range strings.Lines(string(text)) {
		module, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		reasons[module] = reason
	}
	return reasons
}

// moduleDates returns the release dates of modules. It completes the modules that only tests use.
func moduleDates(t *testing.T, r *release, program, tests map[string]component) map[string]string {
	t.Helper()
	args := append([]string{"list", "-m", "-f", "{{.Path}}\t{{.Version}}\t{{with .Time}}{{.Format \"2006-01-02\"}}{{end}}\t{{.Dir}}"}, slices.Collect(maps.Keys(program))...)
	out, err := r.command(context.Background(), nil, "go", append(args, slices.Collect(maps.Keys(tests))...)...)
	if err != nil {
		t.Fatal(err)
	}
	dates := map[string]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 4 {
			t.Fatalf("go list -m: %q", line)
		}
		dates[f[0]] = f[2]
		if c, ok := tests[f[0]]; ok {
			files, err := licenceFiles(f[3])
			if err != nil {
				t.Fatal(err)
			}
			if err := c.read(files); err != nil {
				t.Fatal(err)
			}
			c.version = f[1]
			tests[f[0]] = c
		}
	}
	return dates
}
