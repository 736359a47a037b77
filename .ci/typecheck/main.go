// Command typecheck checks the types of every package and its tests for other
// systems, from source and without a compiler. It finds what a build or vet for
// such a system finds most: a name that does not exist there.
//
//	go run -modfile=tools.mod ./.ci/typecheck windows/amd64 darwin/arm64
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	root, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ok := true
	for _, system := range os.Args[1:] {
		goos, goarch, valid := strings.Cut(system, "/")
		if !valid {
			fmt.Fprintf(os.Stderr, "%q: want OS/ARCH, for example windows/amd64\n", system)
			os.Exit(2)
		}
		ok = check(root, goos, goarch) && ok
	}
	if !ok {
		os.Exit(1)
	}
}

// check loads all packages of root for one system and prints their errors.
func check(root, goos, goarch string) bool {
	loaded, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax &^ packages.NeedTypesInfo,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		Tests: true,
		ParseFile: func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
			file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
				dropBodies(file)
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s/%s: %v\n", goos, goarch, err)
		return false
	}
	found := errorsOf(loaded)
	for _, e := range found {
		fmt.Fprintf(os.Stderr, "%s/%s: %s\n", goos, goarch, e)
	}
	fmt.Printf("%s/%s: %d packages and test packages\n", goos, goarch, len(loaded))
	return len(loaded) > 0 && len(found) == 0
}

// errorsOf returns each error once: a package and its test variant report the same.
func errorsOf(loaded []*packages.Package) []string {
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

// dropBodies removes the bodies of functions. Of a dependency only declarations matter.
func dropBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
