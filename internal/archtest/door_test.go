package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// The one door: in all the program, tests aside, there is one place from which
// a tool of an upstream is called, and it is in the gateway.
const (
	upstreamPath = module + "/internal/upstream"
	doorPackage  = "gateway"
)

func TestOneDoor(t *testing.T) {
	c := newChecker(t)
	up := c.check(upstreamPath)
	if up == nil || up.Scope().Lookup("Reply") == nil {
		t.Fatalf("package upstream has no type Reply any more: tell this test what a call of a tool gives")
	}
	var doors []string
	eachPackage(t, func(p *sourcePackage) {
		if p.name() == "upstream" || slices.Contains(testOnly, p.name()) {
			return
		}
		for _, place := range c.upstreamCalls(p) {
			doors = append(doors, place)
			if p.name() != doorPackage {
				t.Errorf("%s calls a tool of an upstream: only the gateway may, after it has decided and recorded", place)
			}
		}
	})
	if len(doors) != 1 {
		t.Errorf("there are %d places that call a tool of an upstream, want one: %s", len(doors), strings.Join(doors, ", "))
	}
}

// TestDoorIsSeen: the search finds what it is for, in every disguise.
func TestDoorIsSeen(t *testing.T) {
	c := newChecker(t)
	c.check(upstreamPath)
	const source = `package fixture
import ("context"; "sync/atomic"; up "mcpproxy/internal/upstream")
type caller interface{ Call(context.Context, string, up.Call) (up.Reply, error) }
type holder struct { *up.Set; i caller; p atomic.Pointer[up.Set] }
func direct(s *up.Set) { s.Call(nil, "", up.Call{}) }
func throughInterface(h holder) { h.i.Call(nil, "", up.Call{}) }
func embedded(h holder) { h.Call(nil, "", up.Call{}) }
func value(s *up.Set) any { return s.Call }
func expression() any { return (*up.Set).Call }
func unknownType(h *holder) { h.p.Load().Call(nil, "", up.Call{}) }
func harmless(s *up.Set) { s.State("") }
type own struct{}
func (own) ask() (up.Reply, error) { return up.Reply{}, nil }
func ownMethod(o own) { o.ask() }
`
	f, err := parseFixture(source)
	if err != nil {
		t.Fatal(err)
	}
	found := c.callsIn("fixture", []*ast.File{f})
	if len(found) != 6 {
		t.Errorf("found %d of 6 calls: %v", len(found), found)
	}
}

// A checker finds types out as far as this module declares them. What comes
// from elsewhere stays unknown, which is enough here, needs no build, and does
// not mind a package that does not compile.
type checker struct {
	byPath map[string]*sourcePackage
	done   map[string]*types.Package
}

func newChecker(t *testing.T) *checker {
	c := &checker{byPath: map[string]*sourcePackage{}, done: map[string]*types.Package{}}
	eachPackage(t, func(p *sourcePackage) { c.byPath[module+"/"+p.dir] = p })
	return c
}

// Import gives the packages of this module as far as they can be checked, and
// empty ones for all others.
func (c *checker) Import(path string) (*types.Package, error) {
	if p := c.check(path); p != nil {
		return p, nil
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	p := types.NewPackage(path, name)
	p.MarkComplete()
	return p, nil
}

func (c *checker) check(path string) *types.Package {
	if p, ok := c.done[path]; ok {
		return p
	}
	source := c.byPath[path]
	if source == nil {
		return nil
	}
	c.done[path] = nil // an import cycle ends here
	p, _ := c.checkFiles(path, filesOf(source))
	c.done[path] = p
	return p
}

func (c *checker) checkFiles(path string, files []*ast.File) (*types.Package, *types.Info) {
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: c, Error: func(error) {}, DisableUnusedImportCheck: true}
	p, _ := conf.Check(path, fileSet, files, info)
	return p, info
}

func filesOf(p *sourcePackage) []*ast.File {
	var files []*ast.File
	for _, f := range p.files {
		if !f.test {
			files = append(files, f.syntax)
		}
	}
	return files
}

// upstreamCalls gives the places in p that call a tool of an upstream, or take
// the method that does.
func (c *checker) upstreamCalls(p *sourcePackage) []string {
	return c.callsIn(module+"/"+p.dir, filesOf(p))
}

func (c *checker) callsIn(path string, files []*ast.File) []string {
	_, info := c.checkFiles(path, files)
	var places []string
	for _, f := range files {
		usesUpstream := slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+upstreamPath+`"` })
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			selection, known := info.Selections[s]
			switch {
			case known && isUpstreams(selection.Obj(), selection.Recv()) && givesReply(selection.Obj()),
				!known && isUpstreams(info.Uses[s.Sel], nil) && givesReply(info.Uses[s.Sel]):
				places = append(places, at(s))
			case !known && s.Sel.Name == "Call" && usesUpstream && info.Uses[s.Sel] == nil && !isPackage(info, s.X):
				// A method of something of unknown type, in a file that knows upstream.
				places = append(places, fmt.Sprintf("%s (of unknown type)", at(s)))
			}
			return true
		})
	}
	return places
}

// isPackage says whether e names an imported package, as in upstream.Call.
func isPackage(info *types.Info, e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	_, ok = info.Uses[id].(*types.PkgName)
	return ok
}

// isUpstreams says whether a function is one of package upstream, or a method of
// an interface, behind which it may be.
func isUpstreams(o types.Object, receiver types.Type) bool {
	if o == nil {
		return false
	}
	return receiver != nil && types.IsInterface(receiver) || o.Pkg() != nil && o.Pkg().Path() == upstreamPath
}

// givesReply says whether a function has an upstream.Reply among its results:
// what a call of a tool gives, under whatever name.
func givesReply(o types.Object) bool {
	f, ok := o.(*types.Func)
	if !ok {
		return false
	}
	results := f.Type().(*types.Signature).Results()
	for i := range results.Len() {
		named, ok := types.Unalias(results.At(i).Type()).(*types.Named)
		if ok && named.Obj().Name() == "Reply" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == upstreamPath {
			return true
		}
	}
	return false
}
