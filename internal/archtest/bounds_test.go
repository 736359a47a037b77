package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a reader holds in one's head has a bound: a type has at most mostMethods
// methods, a package imports at most mostImports of ours, and the files of a
// package refer one way, with no cycle among them.
const (
	mostMethods = 40
	mostImports = 10
)

// importAll are the packages whose job is to bring the others together: api declares
// the operations of each noun. Of the
// door see docs/adr/0049-one-idea-from-client-to-server.md.
var importAll = []string{"api", "app", "cli", "door", "gateway"}

func TestBounds(t *testing.T) {
	eachPackage(t, func(p *sourcePackage) {
		for name, n := range methods(filesOf(p)) {
			if n > mostMethods {
				t.Errorf("%s.%s has %d methods, %d is the most", p.name(), name, n, mostMethods)
			}
		}
		if n := len(oursImported(p)); n > mostImports && !slices.Contains(importAll, p.name()) {
			t.Errorf("%s imports %d packages of ours, %d is the most", p.name(), n, mostImports)
		}
		if cycles := cyclesIn(filesOf(p)); len(cycles) > 0 {
			t.Errorf("files of %s refer to one another in a circle:\n\t%s", p.name(), strings.Join(cycles, "\n\t"))
		}
	})
}

// methods counts the methods of each type.
func methods(files []*ast.File) map[string]int {
	count := map[string]int{}
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				receiver := types.ExprString(fn.Recv.List[0].Type)
				name, _, _ := strings.Cut(strings.TrimPrefix(receiver, "*"), "[")
				count[name]++
			}
		}
	}
	return count
}

// oursImported returns the packages of this module that p imports.
func oursImported(p *sourcePackage) map[string]bool {
	ours := map[string]bool{}
	for _, f := range p.files {
		for _, imported := range f.imports {
			if name, ok := ourPackage(imported); ok && !f.test {
				ours[name] = true
			}
		}
	}
	return ours
}

// references are what files use of one another: file → file → names.
type references map[string]map[string]map[string]bool

// cyclesIn returns the references among the files of a package that are part of
// a cycle: a file that uses a type, function, variable or constant of another
// one, from which references lead back to it. A pair of files counts once,
// whatever the number of uses. A method is its type's, wherever it stands: it
// refers to the file of the type, and a call of it to nothing.
func cyclesIn(files []*ast.File) []string {
	declared := map[string][]string{} // name → files, several when systems differ
	for _, f := range files {
		for _, name := range declares(f) {
			declared[name] = append(declared[name], fileName(f))
		}
	}
	uses := references{}
	for _, f := range files {
		from := fileName(f)
		uses[from] = map[string]map[string]bool{}
		for _, id := range f.Unresolved { // in the file itself
			for _, to := range declared[id.Name] {
				if uses[from][to] == nil {
					uses[from][to] = map[string]bool{}
				}
				uses[from][to][id.Name] = true
			}
		}
	}
	var cycles []string
	for from := range uses {
		for to, names := range uses[from] {
			if uses.lead(to, from, map[string]bool{}) {
				cycles = append(cycles, fmt.Sprintf("%s → %s (%s)", from, to, strings.Join(slices.Sorted(maps.Keys(names)), ", ")))
			}
		}
	}
	slices.Sort(cycles)
	return cycles
}

func fileName(f *ast.File) string {
	return filepath.Base(fileSet.Position(f.Package).Filename)
}

// declares returns the names that a file declares for its package.
func declares(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						names = append(names, id.Name)
					}
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "_" })
}

// lead reports whether references go from one file to the other.
func (r references) lead(from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	for next := range r[from] {
		if !seen[next] && r.lead(next, to, seen) {
			return true
		}
	}
	return false
}

// TestBoundsSee: methods of every kind are counted, and a cycle is found, also
// one by way of a third file, where what only leads to it is not.
func TestBoundsSee(t *testing.T) {
	var files []*ast.File
	for _, source := range []string{
		"type T struct{ u atomic.Pointer[U] }; func (T) a() {}; func (*T) b() {}; func (t T) c() { t.d() }",
		"type U struct{ v V }; type G[X any] struct{}; func (*G[X]) a() {}",
		"type V struct{ t *T }; func (T) d() {}",
		"type W struct{ t T; p atomic.Pointer[U] }; var _ = W{t: T{}}; func w() { t := 1; _ = t }; func t() {}",
	} {
		name := fmt.Sprintf("fixture%d.go", len(files))
		f, err := parseFixture(name, "package fixture\n"+source)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if got, want := methods(files), (map[string]int{"T": 4, "G": 1}); !maps.Equal(got, want) {
		t.Errorf("methods %v, want %v", got, want)
	}
	want := []string{"fixture0.go → fixture1.go (U)", "fixture1.go → fixture2.go (V)", "fixture2.go → fixture0.go (T)"}
	if got := cyclesIn(files); !slices.Equal(got, want) {
		t.Errorf("cycles %v, want %v", got, want)
	}
}
