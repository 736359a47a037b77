package archtest

import (
	"go/ast"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRaceDetectorTestsAllGoroutines: .ci/race-packages, which searches the source text, lists each package that starts
// goroutines, and no package without tests.
func TestRaceDetectorTestsAllGoroutines(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	out, err := exec.Command(bash, filepath.Join(root, ".ci", "race-packages")).Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(string(out))
	eachPackage(t, func(p *sourcePackage) {
		if strings.HasPrefix(p.dir, "cmd/") || strings.HasPrefix(p.dir, "internal/e2e") {
			return
		}
		tested := slices.ContainsFunc(p.files, func(f *sourceFile) bool { return f.test })
		i := slices.Index(listed, "./"+p.dir)
		if i >= 0 {
			listed = slices.Delete(listed, i, i+1)
		}
		if where := findGoroutine(p); i < 0 && tested && where != nil {
			t.Errorf("%s: a goroutine, but .ci/race-packages does not print %s", positionText(where), p.dir)
		} else if i >= 0 && !tested {
			t.Errorf(".ci/race-packages prints %s, which has no tests", p.dir)
		}
	})
	if len(listed) > 0 {
		t.Errorf(".ci/race-packages prints what is no package: %q", listed)
	}
}

// findGoroutine returns a place where the package starts a goroutine, or nil.
func findGoroutine(p *sourcePackage) (where ast.Node) {
	for _, f := range p.files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				where = n
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Go" || s.Sel.Name == "AfterFunc" || isSelector(s, "synctest", "Test")) {
					where = n
				}
			}
			return where == nil
		})
	}
	return where
}
