package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"testing"
)

// handWrittenReaders are the functions, and one package, that may process quotes, backslashes and escapes outside of
// wirejson, with the reason.
var handWrittenReaders = map[string]string{
	"mcp/wirejson":                       "it is the one",
	"store/redact":                       "finds credentials in any text, of which JSON is one",
	"store/activity.scanStringByte":      "ends a text that was cut anywhere, and so is no JSON",
	"clients/textedit.TokenLength":       "JSON with comments",
	"gate/classify.hasTooManyCommands":   "the quotes of shell lines",
	"gate/classify.isSelfContained":      "the quotes of SQL",
	"upstream/oauth.sanitizeErrorCode":   "leaves characters out of a code",
	"catalog/scan.decodeEscapeAt":        "undoes escapes of many languages in prose",
	"store.readEscape":                   "takes words out of texts that may be cut, and hold JSON in JSON",
	"catalog/tool.appendCanonicalString": "the canonical form: its bytes are what pins are of",
}

// TestOneReaderOfJSON: code that scans for the end of a JSON string, or decodes or writes its escapes, is a second JSON
// parser, and two parsers disagree sooner or later. The test finds the usual forms of such code.
func TestOneReaderOfJSON(t *testing.T) {
	unused := maps.Clone(handWrittenReaders)
	eachFile(t, func(p *sourcePackage, f *sourceFile) {
		if f.test {
			return
		}
		for _, name := range stringReaders(f.syntax) {
			delete(unused, p.tableName())
			if place := p.tableName() + "." + name; handWrittenReaders[place] != "" {
				delete(unused, place)
			} else if handWrittenReaders[p.tableName()] == "" {
				t.Errorf("%s: %s reads or writes strings with escapes by hand: use wirejson (Cursor, Unescape, AppendString), or say in the list why not", f.name, name)
			}
		}
	})
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("%s is in the list of those that read strings by hand, and does not", name)
	}
}

// stringReaders returns the functions of a file that name a quote and a backslash as
// bytes and loop, or a backslash and the u of an escape.
func stringReaders(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		loops, bytes := false, map[string]bool{}
		ast.Inspect(fn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				loops = true
			case *ast.BasicLit:
				bytes[n.Value] = bytes[n.Value] || n.Kind == token.CHAR
			}
			return true
		})
		if bytes[`'\\'`] && (bytes[`'u'`] || bytes[`'"'`] && loops) {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// TestSecondJSONReaderIsFound: the check finds earlier cases of a second parser, and accepts code that only builds an object
// or distinguishes kinds of values.
func TestSecondJSONReaderIsFound(t *testing.T) {
	f, err := parser.ParseFile(fileSet, "fixture.go", `package fixture
func (c *cursor) str() { for { i := bytes.IndexByte(c.in, '"'); for c.in[i-1] == '\\' { i-- } } }
func unescape(raw []byte) rune { switch raw[1] { case 'n': return '\n'; case 'u': return hex4(raw[2:]) }; if raw[0] == '\\' { return 0 }; return 1 }
func appendEscape(dst []byte, c byte) []byte { return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15]) }
func appendString(dst []byte, s string) []byte { for _, r := range s { if r == '"' || r == '\\' { dst = append(dst, '\\') }; dst = append(dst, byte(r)) }; return dst }
func object(list []string) []byte { out := []byte{'{'}; for _, s := range list { out = append(rawjson.AppendString(out, s), ':', '"', '"') }; return append(out, '}') }
func plain(v []byte) bool { return v[0] == '"' && bytes.IndexByte(v, '\\') < 0 }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := stringReaders(f), []string{"str", "unescape", "appendEscape", "appendString"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
