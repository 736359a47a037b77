// Command check runs vet on every package and its tests for one or more systems, and
// staticcheck on the packages without tests, from source. With -types it checks types alone,
// which finds what a build for another system finds most, a name that does not exist there.
// Unlike `go vet` and the command staticcheck it compiles nothing, and looks at declarations
// of dependencies, not at their bodies. It takes a third of their CPU time with empty caches.
//
//	go run -modfile=tools.mod ./.ci/check linux/amd64
//	go run -modfile=tools.mod ./.ci/check -types windows/amd64 darwin/arm64
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

func main() {
	typesOnly := flag.Bool("types", false, "check types only")
	flag.Parse()
	root, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ok := flag.NArg() > 0
	for _, system := range flag.Args() {
		goos, goarch, valid := strings.Cut(system, "/")
		if !valid {
			fmt.Fprintf(os.Stderr, "%q: want OS/ARCH, for example windows/amd64\n", system)
			os.Exit(2)
		}
		ok = checkSystem(root, goos, goarch, !*typesOnly) && ok
	}
	if !ok {
		os.Exit(1)
	}
}

// checkSystem loads all packages of root for one system, analyzes them if asked to, and prints what is wrong.
func checkSystem(root, goos, goarch string, analyzed bool) bool {
	loaded, err := loadPackages(root, goos, goarch, analyzed)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s/%s: %v\n", goos, goarch, err)
		return false
	}
	found := uniqueErrors(loaded)
	for _, e := range found {
		fmt.Fprintf(os.Stderr, "%s/%s: %s\n", goos, goarch, e)
	}
	fmt.Printf("%s/%s: %d packages and test packages\n", goos, goarch, len(loaded))
	if len(loaded) == 0 || len(found) > 0 {
		return false
	}
	return !analyzed || passesAnalysis(loaded)
}

func loadPackages(root, goos, goarch string, withTypesInfo bool) ([]*packages.Package, error) {
	mode := packages.LoadAllSyntax | packages.NeedModule | packages.NeedForTest
	if !withTypesInfo {
		mode &^= packages.NeedTypesInfo
	}
	return packages.Load(&packages.Config{
		Mode:  mode,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		Tests: true,
		ParseFile: func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
			own := strings.HasPrefix(name, root+string(filepath.Separator))
			parsed := parser.SkipObjectResolution
			if withTypesInfo || own {
				parsed |= parser.ParseComments // a comment says that something is deprecated
			}
			file, err := parser.ParseFile(fset, name, src, parsed)
			// The bodies of log and testing say which of their functions do not return.
			if dir := filepath.Base(filepath.Dir(name)); file != nil && !own && dir != "log" && dir != "testing" {
				dropFunctionBodies(file)
			}
			return file, err
		},
	}, "./...")
}

// passesAnalysis runs vet and staticcheck on packages without errors and prints what they find.
func passesAnalysis(loaded []*packages.Package) bool {
	packages.Visit(loaded, nil, func(p *packages.Package) {
		p.IllTyped = false // functions of dependencies lack their bodies, and imports seem unused
	})
	plain := slices.DeleteFunc(slices.Clone(loaded), func(p *packages.Package) bool {
		return p.ForTest != "" || strings.HasSuffix(p.PkgPath, ".test")
	})
	ok := printFindings(vetAnalyzers(), loaded)
	return printFindings(staticcheckAnalyzers(), plain) && ok
}

// printFindings runs analyzers on packages, prints what they find, and reports whether that is nothing.
func printFindings(analyzers []*analysis.Analyzer, on []*packages.Package) bool {
	graph, err := checker.Analyze(analyzers, on, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	ok := true
	for _, a := range graph.Roots {
		ok = ok && a.Err == nil && len(a.Diagnostics) == 0
		if r, is := a.Result.(unused.Result); is {
			for _, o := range r.Unused {
				fmt.Fprintf(os.Stderr, "%s: %s %s is unused (U1000)\n", o.Position, o.Kind, o.Name)
				ok = false
			}
		}
	}
	if err := graph.PrintText(os.Stderr, -1); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	return ok
}

// staticcheckAnalyzers returns what the command staticcheck runs by default.
func staticcheckAnalyzers() []*analysis.Analyzer {
	var all []*analysis.Analyzer
	for _, a := range slices.Concat(simple.Analyzers, staticcheck.Analyzers, stylecheck.Analyzers, []*lint.Analyzer{unused.Analyzer}) {
		if !a.Doc.NonDefault {
			all = append(all, a.Analyzer)
		}
	}
	return all
}

// vetAnalyzers returns the analyzers of `go vet` as of Go 1.26: two came later.
func vetAnalyzers() []*analysis.Analyzer {
	return slices.DeleteFunc(slices.Clone(vet.Suite), func(a *analysis.Analyzer) bool {
		return a.Name == "scannererr" || a.Name == "sqlrowserr"
	})
}

// uniqueErrors returns each error once: a package and its test variant report the same.
func uniqueErrors(loaded []*packages.Package) []string {
	var found []string
	for _, p := range loaded {
		if strings.HasSuffix(p.PkgPath, ".test") {
			continue // the generated main function, which has no body here
		}
		for _, e := range p.Errors {
			found = append(found, e.Error())
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// dropFunctionBodies removes the bodies of functions. Of a dependency only declarations matter.
func dropFunctionBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
