package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// Outside of tests, exactly one place in the program uses session.NewToolCallPermit, and it is in the gate. Without
// this permit no connection sends a tool call.
const (
	sessionPath = module + "/internal/mcp/session"
	gatePackage = "gate"
)

func TestOneGate(t *testing.T) {
	if testing.Short() {
		t.Skip("it checks the types of the whole program")
	}
	c := newTypeChecker(t)
	if s := c.checkPackage(sessionPath); s == nil || s.Scope().Lookup("NewToolCallPermit") == nil {
		t.Fatalf("package session has no Judge any more: tell this test what the proof is that a call was decided about")
	}
	var places []string
	eachPackage(t, func(p *sourcePackage) {
		if isTestOnlyPackage(t, p.tableName()) {
			return
		}
		for _, place := range c.permitUses(module+"/"+p.dir, productFiles(p)) {
			places = append(places, place)
			if p.tableName() != gatePackage {
				t.Errorf("%s uses session.NewToolCallPermit: only the gate may, after it has decided and recorded", place)
			}
		}
	})
	if len(places) != 1 {
		t.Errorf("there are %d places that use session.NewToolCallPermit, want one: %s", len(places), strings.Join(places, ", "))
	}
}

// TestPermitCheckFindsEveryForm: the check finds each form of the forbidden use.
func TestPermitCheckFindsEveryForm(t *testing.T) {
	c := newTypeChecker(t)
	var files []*ast.File
	for i, source := range []string{
		`import "mcpproxy/internal/mcp/session"; func direct() { session.NewToolCallPermit("", nil, nil) }`,
		`import s "mcpproxy/internal/mcp/session"; func renamed() { s.NewToolCallPermit("", nil, nil) }; func value() any { return s.NewToolCallPermit }`,
		`import . "mcpproxy/internal/mcp/session"; func dotted() { NewToolCallPermit("", nil, nil) }; var judge = NewToolCallPermit`,
		`import "mcpproxy/internal/mcp/session"; type own struct{}; func (own) NewToolCallPermit() {}; func harmless(o own) session.Permit { o.NewToolCallPermit(); return session.Permit{} }`,
	} {
		f, err := parseFixture(fmt.Sprintf("fixture%d.go", i), "package fixture\n"+source)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if found := c.permitUses("fixture", files); len(found) != 5 {
		t.Errorf("found %d of 5 uses: %v", len(found), found)
	}
}

// permitUses returns the places that use session.NewToolCallPermit.
func (c *typeChecker) permitUses(path string, files []*ast.File) []string {
	_, info := c.checkFiles(path, files)
	var places []string
	for id, o := range info.Uses {
		if o.Name() == "NewToolCallPermit" && o.Pkg() != nil && o.Pkg().Path() == sessionPath && o.Parent() == o.Pkg().Scope() {
			places = append(places, positionText(id))
		}
	}
	slices.Sort(places)
	return places
}

// A typeChecker finds types as far as this module declares them. Types of other modules stay unknown, which is enough here. It
// needs no build, and accepts a package that does not compile.
type typeChecker struct {
	byPath map[string]*sourcePackage
	done   map[string]*types.Package
}

func newTypeChecker(t *testing.T) *typeChecker {
	c := &typeChecker{byPath: map[string]*sourcePackage{}, done: map[string]*types.Package{}}
	eachPackage(t, func(p *sourcePackage) { c.byPath[module+"/"+p.dir] = p })
	return c
}

// Import returns the packages of this module as far as they can be checked, and
// empty ones for all others.
func (c *typeChecker) Import(path string) (*types.Package, error) {
	if p := c.checkPackage(path); p != nil {
		return p, nil
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	p := types.NewPackage(path, name)
	p.MarkComplete()
	return p, nil
}

func (c *typeChecker) checkPackage(path string) *types.Package {
	if p, ok := c.done[path]; ok {
		return p
	}
	source := c.byPath[path]
	if source == nil {
		return nil
	}
	c.done[path] = nil // an import cycle ends here
	p, _ := c.checkFiles(path, productFiles(source))
	c.done[path] = p
	return p
}

func (c *typeChecker) checkFiles(path string, files []*ast.File) (*types.Package, *types.Info) {
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: c, Error: func(error) {}, DisableUnusedImportCheck: true}
	p, _ := conf.Check(path, fileSet, files, info)
	return p, info
}

func productFiles(p *sourcePackage) []*ast.File {
	var files []*ast.File
	for _, f := range p.files {
		if !f.test {
			files = append(files, f.syntax)
		}
	}
	return files
}
