package archtest

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// belowMCP are the packages that mcp imports.
var belowMCP = []string{"mcp/wirejson"}

// TestProtocolNamesAreInOnePackage: the protocol's names of methods, headers, members of _meta and versions are in package
// mcp, for all packages that may import it.
func TestProtocolNamesAreInOnePackage(t *testing.T) {
	c := newTypeChecker(t)
	words := map[string]string{}
	mcp := c.checkPackage(module + "/internal/mcp")
	if mcp == nil {
		t.Fatal("there is no package mcp")
	}
	for _, name := range mcp.Scope().Names() {
		if word, ok := mcp.Scope().Lookup(name).(*types.Const); ok && word.Val().Kind() == constant.String {
			if value := constant.StringVal(word.Val()); word.Exported() && strings.ContainsAny(value, "/-") {
				words[value] = name
			}
		}
	}
	if len(words) < 40 {
		t.Fatalf("found %d words of the protocol: tell this test where they are", len(words))
	}
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		own, _ := tableRowOf(t, p.tableName())
		if f.test || own.isTestOnly() || own.area == toolArea || p.tableName() == "mcp" || slices.Contains(belowMCP, p.tableName()) {
			return
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			value, _ := strconv.Unquote(lit.Value)
			if name := words[value]; name != "" {
				t.Errorf("%s: %s is mcp.%s", positionText(lit), lit.Value, name)
			}
			return true
		})
	})
}
