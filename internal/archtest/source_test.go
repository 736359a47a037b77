package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// module is the path of the module, and root its directory.
const (
	module = "mcpproxy"
	root   = "../.."
)

// A sourceFile is one Go file of the module.
type sourceFile struct {
	name    string // from the root, with slashes
	test    bool   // a _test.go file
	syntax  *ast.File
	imports []string
	lines   int
}

// A sourcePackage is one directory with Go files.
type sourcePackage struct {
	dir   string // from the root, with slashes: "internal/gate/policy"
	files []*sourceFile
}

// tableName is the name of the package in the table, such as "policy" or "cmd/mcpproxy".
func (p *sourcePackage) tableName() string { return strings.TrimPrefix(p.dir, "internal/") }

var fileSet = token.NewFileSet()

// readPackages reads every Go file of the module once. It reports and skips a file that does not parse. The compiler
// reports more about it.
var readPackages = sync.OnceValues(func() ([]*sourcePackage, error) {
	byDir := map[string]*sourcePackage{}
	var all []*sourcePackage
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && file != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(file, "go.mod")); d.IsDir() && file != root && err == nil {
			return filepath.SkipDir // a separate module, which the product cannot import
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		f := parseSourceFile(file)
		if f == nil {
			return nil
		}
		dir := path.Dir(f.name)
		if byDir[dir] == nil {
			byDir[dir] = &sourcePackage{dir: dir}
			all = append(all, byDir[dir])
		}
		byDir[dir].files = append(byDir[dir].files, f)
		return nil
	})
	return all, err
})

func parseSourceFile(file string) *sourceFile {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil // the file was removed in the meantime
	}
	syntax, err := parser.ParseFile(fileSet, file, data, parser.ParseComments)
	if err != nil {
		return nil
	}
	rel, err := filepath.Rel(root, file)
	if err != nil {
		return nil
	}
	f := &sourceFile{
		name: filepath.ToSlash(rel), test: strings.HasSuffix(file, "_test.go"), syntax: syntax,
		lines: strings.Count(string(data), "\n"),
	}
	for _, spec := range syntax.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			f.imports = append(f.imports, p)
		}
	}
	return f
}

// eachPackage calls fn for every package of the module.
func eachPackage(t *testing.T, fn func(p *sourcePackage)) {
	t.Helper()
	all, err := readPackages()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d packages found in %s", len(all), root)
	}
	for _, p := range all {
		fn(p)
	}
}

// eachFile calls fn for every file of the module that is not a test.
func eachFile(t *testing.T, fn func(p *sourcePackage, f *sourceFile)) {
	t.Helper()
	eachPackage(t, func(p *sourcePackage) {
		for _, f := range p.files {
			if !f.test {
				fn(p, f)
			}
		}
	})
}

// positionText returns the position of a node for messages.
func positionText(n ast.Node) string {
	p := fileSet.Position(n.Pos())
	return strings.TrimPrefix(filepath.ToSlash(p.Filename), root+"/") + ":" + strconv.Itoa(p.Line)
}

// isSelector reports whether e is pkg.name.
func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}
