package archtest

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A place is a row of the table in docs/architecture.md. Areas are in the order in which they first
// appear, from top to bottom.
type place struct {
	area  string
	depth int // how many areas are above
}

const (
	testArea = "tests" // only tests and bench import it
	toolArea = "tools" // imports every area
)

func (p place) testOnly() bool { return p.area == testArea }

var tableRow = regexp.MustCompile("(?m)^\\| ([a-z]+) \\| `([a-z0-9/]+)` \\| .+ \\|$")

var table = sync.OnceValues(func() (map[string]place, error) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		return nil, err
	}
	places := map[string]place{}
	var areas []string
	for _, row := range tableRow.FindAllStringSubmatch(string(data), -1) {
		if _, twice := places[row[2]]; twice {
			return nil, fmt.Errorf("docs/architecture.md has %s twice", row[2])
		}
		if !slices.Contains(areas, row[1]) {
			areas = append(areas, row[1])
		}
		places[row[2]] = place{area: row[1], depth: slices.Index(areas, row[1])}
	}
	return places, nil
})

// placeOf returns the place of a package, and whether the table has it.
func placeOf(t *testing.T, name string) (place, bool) {
	t.Helper()
	places, err := table()
	if err != nil {
		t.Fatal(err)
	}
	p, known := places[name]
	return p, known
}

// testOnly reports whether a package is for tests alone.
func testOnly(t *testing.T, name string) bool {
	t.Helper()
	p, _ := placeOf(t, name)
	return p.testOnly()
}

func TestImportsGoDown(t *testing.T) {
	eachPackage(t, func(p *sourcePackage) {
		own, known := placeOf(t, p.name())
		if !known {
			t.Errorf("%s: package %s is not in the table of docs/architecture.md: add it to its area", p.files[0].name, p.name())
			return
		}
		for _, f := range p.files {
			for _, imported := range f.imports {
				name, ours := ourPackage(imported)
				if !ours || f.test || own.testOnly() || p.name() == "bench" {
					continue
				}
				switch its, known := placeOf(t, name); {
				case its.testOnly():
					t.Errorf("%s imports %s, which is for tests only", f.name, name)
				case known && its.depth < own.depth && own.area != toolArea:
					t.Errorf("%s (area %s) imports %s (area %s): an area imports only areas below it", f.name, own.area, name, its.area)
				case known && its.area == toolArea && own.area != toolArea:
					t.Errorf("%s imports %s, which is a tool", f.name, name)
				}
			}
		}
	})
}

// ourPackage returns how the table calls an imported package, and whether it is
// one of this module.
func ourPackage(imported string) (string, bool) {
	name, ours := strings.CutPrefix(imported, module+"/")
	return strings.TrimPrefix(name, "internal/"), ours
}

// TestTableIsCurrent: a line for a package that is gone misleads.
func TestTableIsCurrent(t *testing.T) {
	there := map[string]bool{}
	eachPackage(t, func(p *sourcePackage) { there[p.name()] = true })
	places, err := table()
	if err != nil {
		t.Fatal(err)
	}
	for name := range places {
		if !there[name] {
			t.Errorf("the table of docs/architecture.md has %s, which does not exist", name)
		}
	}
}

// reserved are modules that one place alone may use.
var reserved = []struct {
	imports []string
	where   []string
	why     string
}{
	{[]string{"database/sql", "database/sql/driver", "modernc.org/sqlite", "github.com/pressly/goose"}, []string{"store"},
		"SQL is the store's: the others use its methods"},
	{[]string{"github.com/jackc/pgx"}, []string{"store"},
		"SQL is the store's: the others use its methods"},
	{[]string{"github.com/spf13/cobra", "github.com/spf13/pflag"}, []string{"cli"},
		"commands and flags are the cli's"},
	{[]string{"github.com/modelcontextprotocol/go-sdk"}, []string{"testutil/mcptest", "bench"},
		"the official SDK is for tests and as a peer of measurements: its types lose what they do not know"},
	{[]string{"github.com/fsnotify/fsnotify"}, []string{"config"},
		"the file is config's"},
	{[]string{"github.com/tailscale/hujson"}, []string{"clients/textedit", "clients", "config"},
		"JSON with comments is read and edited by textedit, for config and clients"},
	{[]string{"os/exec"}, []string{"upstream/process", "cli/browser.go", "app/autostart", "packaging", "bench", "demo", "testutil/mcptest", "testutil/faultfs", "testutil/faultrun", "testutil/pgtest"},
		"upstream/process starts processes and ends them; cli opens the browser; autostart runs the managers of services"},
	{[]string{module + "/internal/mcp/transport"}, []string{"upstream", "upstream/compat", "app"},
		"a connection sends what it is given: who calls a tool goes to a Surface, which wants the proof"},
	{[]string{"filippo.io/age", "github.com/zalando/go-keyring"}, []string{"upstream/secret"},
		"what is secret and kept is sealed in one place"},
	{[]string{"golang.org/x/crypto/argon2"}, []string{"gate/presence"},
		"a passphrase opens one thing"},
	{[]string{"testing"}, []string{"testutil/mcptest", "store/storetest", "testutil/pgtest", "gate/approval/approvaltest", "catalog/catalogtest", "gate/presence/presencetest"},
		"tests stand in _test.go files"},
}

func TestReservedImports(t *testing.T) {
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		for _, imported := range f.imports {
			for _, r := range reserved {
				matches := slices.ContainsFunc(r.imports, func(i string) bool { return imported == i || strings.HasPrefix(imported, i+"/") })
				if matches && !slices.Contains(r.where, p.name()) && !slices.Contains(r.where, strings.TrimPrefix(f.name, "internal/")) {
					t.Errorf("%s imports %s: %s", f.name, imported, r.why)
				}
			}
		}
	})
}

// TestCommandsAskTheClient: what the command line wants of the daemon goes through
// api's typed client, as anybody else's requests do.
func TestCommandsAskTheClient(t *testing.T) {
	around := []string{"net/http", module + "/internal/store", module + "/internal/gate", module + "/internal/catalog"}
	client := false
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		if p.name() != "cli" {
			return
		}
		for _, imported := range f.imports {
			client = client || imported == module+"/internal/api"
			if slices.Contains(around, imported) {
				t.Errorf("%s imports %s: a command asks the daemon through api's client", f.name, imported)
			}
		}
	})
	if !client {
		t.Error("no command uses api's client: this test looks at nothing")
	}
}

// parts are packages of which another package may use these declarations alone.
var parts = []struct{ user, imported, names string }{
	{"cli", "mcpserver", "BuiltinDefinitions"},
	{"app", "mcp/transport", "ServerAccount"},
}

func TestPartsAlone(t *testing.T) {
	for _, part := range parts {
		used := 0
		eachFile(t, func(p *sourcePackage, f *sourceFile) {
			if p.name() != part.user || !slices.Contains(f.imports, module+"/internal/"+part.imported) {
				return
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && x.Name == path.Base(part.imported) {
					used++
					if !slices.Contains(strings.Fields(part.names), s.Sel.Name) {
						t.Errorf("%s: %s uses %s.%s: only %s", at(s), part.user, part.imported, s.Sel.Name, part.names)
					}
				}
				return true
			})
		})
		if used == 0 {
			t.Errorf("%s does not use %s: remove the line", part.user, part.imported)
		}
	}
}
