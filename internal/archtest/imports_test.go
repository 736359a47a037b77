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

// A tableRow is a row of the table in docs/architecture.md. Areas are in the order in which they first
// appear, from top to bottom.
type tableRow struct {
	area  string
	depth int // how many areas are above
}

const (
	testArea = "tests" // only tests and bench import it
	toolArea = "tools" // imports every area
)

func (p tableRow) isTestOnly() bool { return p.area == testArea }

var tableRowPattern = regexp.MustCompile("(?m)^\\| ([a-z]+) \\| `([a-z0-9/]+)` \\| .+ \\|$")

var readArchitectureTable = sync.OnceValues(func() (map[string]tableRow, error) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		return nil, err
	}
	places := map[string]tableRow{}
	var areas []string
	for _, row := range tableRowPattern.FindAllStringSubmatch(string(data), -1) {
		if _, twice := places[row[2]]; twice {
			return nil, fmt.Errorf("docs/architecture.md has %s twice", row[2])
		}
		if !slices.Contains(areas, row[1]) {
			areas = append(areas, row[1])
		}
		places[row[2]] = tableRow{area: row[1], depth: slices.Index(areas, row[1])}
	}
	return places, nil
})

// tableRowOf returns the table row of a package, and whether there is one.
func tableRowOf(t *testing.T, name string) (tableRow, bool) {
	t.Helper()
	places, err := readArchitectureTable()
	if err != nil {
		t.Fatal(err)
	}
	p, known := places[name]
	return p, known
}

// isTestOnlyPackage reports whether only tests may import a package.
func isTestOnlyPackage(t *testing.T, name string) bool {
	t.Helper()
	p, _ := tableRowOf(t, name)
	return p.isTestOnly()
}

func TestImportsGoDown(t *testing.T) {
	eachPackage(t, func(p *sourcePackage) {
		own, known := tableRowOf(t, p.tableName())
		if !known {
			t.Errorf("%s: package %s is not in the table of docs/architecture.md: add it to its area", p.files[0].name, p.tableName())
			return
		}
		for _, f := range p.files {
			for _, imported := range f.imports {
				name, ours := toTableName(imported)
				if !ours || f.test || own.isTestOnly() || p.tableName() == "bench" {
					continue
				}
				switch its, known := tableRowOf(t, name); {
				case its.isTestOnly():
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

// toTableName returns the name of an imported package in the table, and whether the package belongs to this module.
func toTableName(imported string) (string, bool) {
	name, ours := strings.CutPrefix(imported, module+"/")
	return strings.TrimPrefix(name, "internal/"), ours
}

// TestTableIsCurrent: the table has no line for a package that does not exist.
func TestTableIsCurrent(t *testing.T) {
	there := map[string]bool{}
	eachPackage(t, func(p *sourcePackage) { there[p.tableName()] = true })
	places, err := readArchitectureTable()
	if err != nil {
		t.Fatal(err)
	}
	for name := range places {
		if !there[name] {
			t.Errorf("the table of docs/architecture.md has %s, which does not exist", name)
		}
	}
}

// reservedImports are modules that only one package may use.
var reservedImports = []struct {
	imports []string
	where   []string
	why     string
}{
	{[]string{"database/sql", "database/sql/driver", "modernc.org/sqlite", "github.com/pressly/goose"}, []string{"store"},
		"SQL is the store's: the others use its methods"},
	{[]string{"github.com/jackc/pgx"}, []string{"store"},
		"SQL is the store's: the others use its methods"},
	{[]string{"github.com/spf13/cobra", "github.com/spf13/pflag"}, []string{"cli", "packaging"},
		"commands and flags are the cli's; packaging writes their manual pages"},
	{[]string{"github.com/zitadel/oidc/v3"}, []string{"testutil/authtest"},
		"an authorization server is for tests only"},
	{[]string{"github.com/modelcontextprotocol/go-sdk"}, []string{"testutil/mcptest", "bench"},
		"the official SDK is for tests and as a peer of measurements: its types lose what they do not know"},
	{[]string{"github.com/fsnotify/fsnotify"}, []string{"config"},
		"the file is config's"},
	{[]string{"github.com/tailscale/hujson"}, []string{"clients/textedit", "clients", "config"},
		"JSON with comments is read and edited by textedit, for config and clients"},
	{[]string{"os/exec"}, []string{"upstream/process", "upstream/pin", "upstream/sandbox", "cli/browser.go", "cli/pager.go", "app/autostart", "packaging", "bench", "demo", "testutil/mcptest", "testutil/faultfs", "testutil/faultrun", "testutil/pgtest"},
		"upstream/process starts processes and ends them; upstream/pin asks npm and docker about versions, and becomes the pinned package; upstream/sandbox asks interpreters where they are, and starts itself again; cli opens the browser and runs the pager; autostart runs the managers of services"},
	{[]string{module + "/internal/mcp/transport"}, []string{"upstream", "upstream/compat", "app"},
		"a connection sends what it is given: who calls a tool goes to a ServerEndpoint, which wants the proof"},
	{[]string{"filippo.io/age", "github.com/zalando/go-keyring"}, []string{"upstream/secret"},
		"what is secret and kept is sealed in one place"},
	{[]string{"golang.org/x/crypto/argon2"}, []string{"gate/presence"},
		"a passphrase opens one thing"},
	{[]string{"testing"}, []string{"testutil/authtest", "testutil/mcptest", "testutil/pgtest", "testutil/approvaltest", "testutil/catalogtest", "testutil/presencetest"},
		"tests stand in _test.go files"},
}

func TestReservedImports(t *testing.T) {
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		for _, imported := range f.imports {
			for _, r := range reservedImports {
				matches := slices.ContainsFunc(r.imports, func(i string) bool { return imported == i || strings.HasPrefix(imported, i+"/") })
				if matches && !slices.Contains(r.where, p.tableName()) && !slices.Contains(r.where, strings.TrimPrefix(f.name, "internal/")) {
					t.Errorf("%s imports %s: %s", f.name, imported, r.why)
				}
			}
		}
	})
}

// TestCommandsUseTheAPIClient: the command line calls the daemon through the typed client of package api, like every other
// program.
func TestCommandsUseTheAPIClient(t *testing.T) {
	around := []string{"net/http", module + "/internal/store", module + "/internal/gate", module + "/internal/catalog"}
	client := false
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		if p.tableName() != "cli" {
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

// allowedParts lists packages of which another package may use only these declarations.
var allowedParts = []struct{ user, imported, names string }{
	{"cli", "mcpserver", "BuiltinDefinitions"},
	{"app", "mcp/transport", "ServerAuthorizer"},
}

func TestPartsAlone(t *testing.T) {
	for _, part := range allowedParts {
		used := 0
		eachFile(t, func(p *sourcePackage, f *sourceFile) {
			if p.tableName() != part.user || !slices.Contains(f.imports, module+"/internal/"+part.imported) {
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
						t.Errorf("%s: %s uses %s.%s: only %s", positionText(s), part.user, part.imported, s.Sel.Name, part.names)
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
