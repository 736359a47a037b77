package archtest

import (
	"slices"
	"strings"
	"testing"
)

// layers is the table: a package may import those of a lower layer only.
var layers = map[string]int{
	"tool": 0, "problem": 0, "strictjson": 0,
	"policy": 1, "search": 1, "scan": 1, "schema": 1, "redact": 1, "result": 1, "jsonrpc": 1, "browser": 1, "reach": 1, "alias": 1, "http1": 1,
	"config": 2, "auth": 2, "activity": 2, "approval": 2, "effect": 2, "oauth": 2,
	"store": 3, "upstream": 3, "guard": 3,
	"catalog": 4, "bridge": 4,
	"gateway":   5,
	"mcpserver": 6, "api": 6,
	"app": 7,
	"cli": 8, "demo": 8,
	"cmd/mcpproxy": 9, "bench": 9, "bench/retrieval": 9, "bench/effects": 9,
}

// testOnly are the packages that only tests, and the measurements, may import.
var testOnly = []string{"archtest", "mcptest", "e2e", "store/storetest", "approval/approvaltest"}

func TestImportsGoDown(t *testing.T) {
	eachPackage(t, func(p *sourcePackage) {
		own, known := layers[p.name()]
		if !known && !slices.Contains(testOnly, p.name()) {
			t.Errorf("%s: package %s is not in the table of layers: put it where it belongs", p.files[0].name, p.name())
			return
		}
		for _, f := range p.files {
			for _, imported := range f.imports {
				name, ours := strings.CutPrefix(imported, module+"/")
				name = strings.TrimPrefix(name, "internal/")
				switch layer, known := layers[name]; {
				case !ours || f.test || slices.Contains(testOnly, p.name()):
				case slices.Contains(testOnly, name) && p.name() == "bench":
				case slices.Contains(testOnly, name):
					t.Errorf("%s imports %s, which is for tests only", f.name, name)
				case !known:
					t.Errorf("%s imports %s, which is not in the table of layers", f.name, name)
				case layer >= own:
					t.Errorf("%s (layer %d) imports %s (layer %d): imports go down", f.name, own, name, layer)
				}
			}
		}
	})
}

// TestTableIsCurrent: a line for a package that is gone misleads.
func TestTableIsCurrent(t *testing.T) {
	there := map[string]bool{}
	eachPackage(t, func(p *sourcePackage) { there[p.name()] = true })
	for name := range layers {
		if !there[name] {
			t.Errorf("the table of layers has %s, which does not exist", name)
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
	{[]string{"github.com/spf13/cobra", "github.com/spf13/pflag"}, []string{"cli"},
		"commands and flags are the cli's"},
	{[]string{"github.com/danielgtaylor/huma"}, []string{"api"},
		"REST is the api's"},
	{[]string{"github.com/modelcontextprotocol/go-sdk"}, []string{"mcptest", "bench"},
		"the official SDK is for tests and as a peer of measurements: its types lose what they do not know"},
	{[]string{"github.com/fsnotify/fsnotify", "github.com/tailscale/hujson"}, []string{"config"},
		"the file is config's"},
	{[]string{"os/exec"}, []string{"upstream", "browser", "bench", "demo", "mcptest"},
		"processes are started by upstream, which also ends them, and the browser by browser"},
	{[]string{"filippo.io/age", "github.com/zalando/go-keyring"}, []string{"oauth"},
		"what is secret and kept is sealed in one place"},
	{[]string{"testing"}, []string{"mcptest", "store/storetest", "approval/approvaltest"},
		"tests stand in _test.go files"},
}

func TestReservedImports(t *testing.T) {
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		for _, imported := range f.imports {
			for _, r := range reserved {
				matches := slices.ContainsFunc(r.imports, func(i string) bool { return imported == i || strings.HasPrefix(imported, i+"/") })
				if matches && !slices.Contains(r.where, p.name()) {
					t.Errorf("%s imports %s: %s", f.name, imported, r.why)
				}
			}
		}
	})
}
