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

// importAll are the packages whose job is to bring the others together.
var importAll = []string{"app", "cli", "door", "gateway"}

// ceilings are the places that are over a bound, with today's number. A number
// falls with what it stands for, and no line is added.
var ceilings = map[string]int{
	"cycles in mcptest": 2,
}

func TestCeilings(t *testing.T) {
	measured, why := map[string]int{}, map[string][]string{}
	eachPackage(t, func(p *sourcePackage) {
		for name, n := range methods(filesOf(p)) {
			if n > mostMethods {
				measured["methods of "+p.name()+"."+name] = n
			}
		}
		if n := len(oursImported(p)); n > mostImports && !slices.Contains(importAll, p.name()) {
			measured["imports of "+p.name()] = n
		}
		if cycles := cyclesIn(filesOf(p)); len(cycles) > 0 {
			measured["cycles in "+p.name()], why["cycles in "+p.name()] = len(cycles), cycles
		}
	})
	for place, n := range measured {
		if n > ceilings[place] {
			t.Errorf("%s: %d, which is more than the table of ceilings has (%d)\n\t%s", place, n, ceilings[place], strings.Join(why[place], "\n\t"))
		}
	}
	for place, n := range ceilings {
		if n > measured[place] {
			t.Errorf("%s: the table of ceilings has %d, today it is %d: lower the number, or remove the line", place, n, measured[place])
		}
	}
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

// TestCeilingsSee: methods of every kind are counted, and a cycle is found, also
// one by way of a third file, where what only leads to it is not.
func TestCeilingsSee(t *testing.T) {
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
