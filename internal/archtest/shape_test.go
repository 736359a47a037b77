package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func parseFixture(name, source string) (*ast.File, error) {
	return parser.ParseFile(fileSet, name, source, 0)
}

var sentenceEnd = regexp.MustCompile(`[.!?:](\s|$)`)

// TestPackageComments: every package comment states the package's job, its guarantees and its limits.
func TestPackageComments(t *testing.T) {
	negative := regexp.MustCompile(`(?i)\b(not|no|never|nothing|neither|nobody|only)\b`)
	eachPackage(t, func(p *sourcePackage) {
		var comments []string
		name := ""
		for _, f := range p.files {
			if f.test {
				continue
			}
			name = f.syntax.Name.Name
			if f.syntax.Doc != nil {
				comments = append(comments, f.syntax.Doc.Text())
			}
		}
		if name == "" { // tests alone
			return
		}
		opening := "Package " + name + " "
		if name == "main" {
			opening = "Command " + p.dir[strings.LastIndexByte(p.dir, '/')+1:] + " "
		}
		switch {
		case len(comments) == 0:
			t.Errorf("%s has no package comment", p.dir)
		case len(comments) > 1:
			t.Errorf("%s has %d package comments, want one", p.dir, len(comments))
		case !strings.HasPrefix(comments[0], opening):
			t.Errorf("the comment of %s begins with %.30q, want %q", p.dir, comments[0], opening)
		case name == "main": // a sentence will do
		case len(sentenceEnd.FindAllString(comments[0], -1)) < 3:
			t.Errorf("the comment of %s has fewer than three sentences: its job, what it guarantees, what it does not do", p.dir)
		case !negative.MatchString(comments[0]):
			t.Errorf("the comment of %s does not say what the package does not do", p.dir)
		}
	})
}

func TestPackageNames(t *testing.T) {
	vague := []string{"util", "utils", "common", "manager", "service", "helper", "helpers", "misc", "shared", "base", "core", "lib"}
	eachPackage(t, func(p *sourcePackage) {
		if last := p.dir[strings.LastIndexByte(p.dir, '/')+1:]; slices.Contains(vague, last) {
			t.Errorf("%s: a package is a noun with one job", p.dir)
		}
	})
}

// requestStructs are the structs that live as long as one request. A request uses one configuration from its beginning
// to its end.
var requestStructs = map[string]bool{"gate.resolvedCall": true, "mcpserver.builtinToolCall": true, "ops.trialEvaluator": true}

// TestNoStoredConfig: there is one configuration, and a stored pointer to it becomes outdated. A function that returns it is
// fine.
func TestNoStoredConfig(t *testing.T) {
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		if p.tableName() == "config" {
			return
		}
		eachStruct(f, func(name string, s *ast.StructType) {
			for _, field := range s.Fields.List {
				if !requestStructs[p.tableName()+"."+name] && containsType(field.Type, func(e ast.Expr) bool { return isSelector(e, "config", "Config") }) {
					t.Errorf("%s: a struct keeps the configuration: take a func() *config.Config, or the values you need", positionText(field))
				}
			}
		})
	})
}

// eachStruct calls fn for every struct type in f, with its name if it has one.
func eachStruct(f *sourceFile, fn func(name string, s *ast.StructType)) {
	names := map[*ast.StructType]string{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				names[s] = n.Name.Name
			}
		case *ast.StructType:
			fn(names[n], n)
		}
		return true
	})
}

// TestNoStoredContext: a context belongs to a call.
func TestNoStoredContext(t *testing.T) {
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		if isTestOnlyPackage(t, p.tableName()) {
			return
		}
		eachStruct(f, func(_ string, s *ast.StructType) {
			for _, field := range s.Fields.List {
				if isSelector(field.Type, "context", "Context") {
					t.Errorf("%s: a struct keeps a context: pass it as the first parameter", positionText(field))
				}
			}
		})
	})
}

// containsType reports whether a value of type e contains one of the searched type. Parameters and results of functions do not
// count.
func containsType(e ast.Expr, is func(ast.Expr) bool) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncType); ok {
			return false
		}
		if x, ok := n.(ast.Expr); ok && is(x) {
			found = true
		}
		return !found
	})
	return found
}

// TestNoMapsOfAny: values that cross a package border have a type.
func TestNoMapsOfAny(t *testing.T) {
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		if f.syntax.Name.Name == "main" || isTestOnlyPackage(t, p.tableName()) {
			return
		}
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && isReceiverExported(d) && containsMapOfAny(d.Type) {
					t.Errorf("%s: %s has a map[string]any in its signature", positionText(d), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && exposesMapOfAny(s.Type) {
						t.Errorf("%s: %s shows a map[string]any", positionText(s), s.Name.Name)
					}
				}
			}
		}
	})
}

func isReceiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	exported := true
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = exported && id.IsExported()
			return false
		}
		return true
	})
	return exported
}

// exposesMapOfAny checks the exported part of a type: the type itself, the methods of an interface, and the exported
// fields of a struct.
func exposesMapOfAny(e ast.Expr) bool {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		return containsMapOfAny(e)
	}
	for _, f := range fields.List {
		shown := len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported)
		if shown && containsMapOfAny(f.Type) {
			return true
		}
	}
	return false
}

func containsMapOfAny(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if m, ok := n.(*ast.MapType); ok && isIdent(m.Key, "string") && isAny(m.Value) {
			found = true
		}
		return !found
	})
	return found
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func isAny(e ast.Expr) bool {
	i, ok := e.(*ast.InterfaceType)
	return isIdent(e, "any") || ok && len(i.Methods.List) == 0
}

// TestNoInit: package app runs everything that happens at start, in order.
func TestNoInit(t *testing.T) {
	eachFile(t, func(_ *sourcePackage, f *sourceFile) {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: an init function", positionText(fn))
			}
		}
	})
}

// TestSQLOnlyInStore: no string outside package store contains an SQL statement.
func TestSQLOnlyInStore(t *testing.T) {
	statement := regexp.MustCompile(`(?i)^\s*(select\s.+\sfrom\s|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s|create\s+(virtual\s+)?(table|index)\s|alter\s+table\s|pragma\s+\w+)`)
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		if p.tableName() == "store" {
			return
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(lit.Value); err == nil && statement.MatchString(text) {
				t.Errorf("%s: SQL outside store: %.40q", positionText(lit), text)
			}
			return true
		})
	})
}

// longFunctions are the functions that may exceed the length limit, with the reason.
var longFunctions = map[string]string{}

func TestFunctionsFitAPage(t *testing.T) {
	const most = 100
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := fileSet.Position(fn.End()).Line - fileSet.Position(fn.Pos()).Line + 1
			if lines > most && longFunctions[p.tableName()+"."+fn.Name.Name] == "" {
				t.Errorf("%s: %s has %d lines, at most %d", positionText(fn), fn.Name.Name, lines, most)
			}
		}
	})
}

// TestFilesAreShort: nearly all files have fewer than 500 lines. The others are
// listed with -v.
func TestFilesAreShort(t *testing.T) {
	const most, share = 500, 10
	all, long := 0, 0
	eachFile(t, func(_ *sourcePackage, f *sourceFile) {
		all++
		if f.lines > most {
			long++
			t.Logf("%s has %d lines", f.name, f.lines)
		}
	})
	if long*share > all {
		t.Errorf("%d of %d files have more than %d lines", long, all, most)
	}
}

// TestTypeRulesFindViolations: the rules about types find the forbidden cases, and accept the allowed ones.
func TestTypeRulesFindViolations(t *testing.T) {
	f, err := parseFixture("fixture.go", `package fixture
type keeps struct { a []*config.Config; b atomic.Pointer[config.Config]; c map[string]config.Config }
type asks struct { f func() *config.Config; c *config.Server }
type Shown struct { M map[string]any }
type Hidden struct { m map[string]any }
type Asked interface { F(map[string]interface{}) }
func Takes(m []map[string]any) {}
func Gives() map[string]string { return nil }
func (hidden) Method() map[string]any { return nil }
`)
	if err != nil {
		t.Fatal(err)
	}
	file := &sourceFile{syntax: f}
	kept := map[string]int{}
	eachStruct(file, func(name string, s *ast.StructType) {
		for _, field := range s.Fields.List {
			if containsType(field.Type, func(e ast.Expr) bool { return isSelector(e, "config", "Config") }) {
				kept[name]++
			}
		}
	})
	if len(kept) != 1 || kept["keeps"] != 3 {
		t.Errorf("found %v, want three fields of keeps", kept)
	}
	var shown []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if isReceiverExported(d) && containsMapOfAny(d.Type) {
				shown = append(shown, d.Name.Name)
			}
		case *ast.GenDecl:
			if s := d.Specs[0].(*ast.TypeSpec); exposesMapOfAny(s.Type) {
				shown = append(shown, s.Name.Name)
			}
		}
	}
	if want := []string{"Shown", "Asked", "Takes"}; !slices.Equal(shown, want) {
		t.Errorf("found %v, want %v", shown, want)
	}
}
