package result

import (
	"strings"
	"testing"
)

const document = `{"items":[{"id":1,"name":"one","state":"open","tags":["a","b"],"user":{"login":"x"}},
 {"id":2,"name":"two \"q\"","state":"closed","tags":[],"user":null},{"id":9007199254740993,"name":"drei","state":"open","tags":["c"],"user":{"login":"y"}}],
 "total": 3, "big": 1e400, "f": 1.50, "s": "a,b,c", "é": "ü", "n": null, "b": true, "o": {"z":1,"a":2}}`

// TestSelections checks the output of expressions for the document, one value per line.
func TestSelections(t *testing.T) {
	for expression, want := range map[string]string{
		".total": "3", ".f": "1.50", ".big": "1e400", ".items[2].id": "9007199254740993", ".nothing": "null", ".nothing.at.all": "null",
		".items[].id": "1\n2\n9007199254740993", "[.items[].id]": "[1,2,9007199254740993]",
		"[.items[] | {id, name}][1:]":                                 `[{"id":2,"name":"two \"q\""},{"id":9007199254740993,"name":"drei"}]`,
		`.items | map(select(.state == "open") | .name) | join("; ")`: `"one; drei"`,
		"[.items[] | select(.user.login?) | .user.login]":             `["x","y"]`,
		".items | length": "3", ".s | split(\",\")": `["a","b","c"]`, `.s / ","`: `["a","b","c"]`, ".s * 3": "!string and number have no *",
		`."é"`: `"ü"`, `.["é"]`: `"ü"`, `.o | keys`: `["a","z"]`, ".o | keys_unsorted": `["z","a"]`, ".o | to_entries": `[{"key":"z","value":1},{"key":"a","value":2}]`,
		".o | with_entries(.value += 1)":                "", // updates are not supported
		".o | with_entries({key, value: (.value + 1)})": `{"z":2,"a":3}`,
		".items[-1].name":                               `"drei"`, ".items[5]": "null", ".items[:1][0].id": "1", ".s[2:]": `"b,c"`,
		`"\(.total) of \(.s)!"`: `"3 of a,b,c!"`, `{(.s): 1, "x\(1)": .total, b}`: `{"a,b,c":1,"x1":3,"b":true}`,
		`if .total > 2 then "many" elif .total > 0 then "few" else "none" end`: `"many"`,
		".n // \"none\"": `"none"`, "(.items[] | .user.login) // 1": "\"x\"\n\"y\"", ".n.x?": "null", ".s.x?": "", "try .s.x catch .": `"string has nothing at a string"`,
		".items | sort_by(.name) | map(.name)": `["drei","one","two \"q\""]`, ".items | group_by(.state) | map({state: .[0].state, n: length})": `[{"state":"closed","n":1},{"state":"open","n":2}]`,
		"[.items[].state] | unique": `["closed","open"]`, ".items | max_by(.id) | .id": "9007199254740993", "[.items[].tags] | add": `["a","b","c"]`, "[.items[].tags[]] | first": `"a"`,
		".items | first(.[]).id": "1", "[limit(2; .items[].id)]": "[1,2]", "any(.items[]; .id == 2)": "true", "all(.items[]; .id < 3)": "false",
		`.items | map(.name | test("^[a-z]+$"))`: "[true,false,true]", `.s | test("A"; "i")`: "true", "del(.items, .o.z, .big)": `{"total":3,"f":1.50,"s":"a,b,c","é":"ü","n":null,"b":true,"o":{"a":2}}`,
		"[.items[] | del(.tags, .user, .name)] | .[0]": `{"id":1,"state":"open"}`, ".items as $i | $i | length": "3", "[.items[] as $x | $x.id + 1]": "[2,3,9007199254740994]",
		"1 + 2 * 3 - 4 / 2": "5", "7 % 3": "1", "-.total": "-3", ".total == 3 and (.b | not)": "false", "[1,[2,[3]]] | flatten": "[1,2,3]", "{a: 1} + {b: 2} + {a: 3}": `{"a":3,"b":2}`,
		"[3,1,2] | sort": "[1,2,3]", "[1,2,3] - [2]": "[1,3]", "\"abc\" | ascii_upcase": `"ABC"`, "[.[]?] | length": "9", ".items | map(has(\"id\")) | all": "true",
		`.s | ltrimstr("a,")`: `"b,c"`, `{"a":[1,{"b":"xyz"}]} | contains({a:[{b:"y"}]})`: "true", `"12" | tonumber`: "12", `"[1]" | fromjson`: "[1]", ". | type": `"object"`, "[.items[].tags[0]]": `["a",null,"c"]`,
		"{a: (1,2), b: (3,4)}": "{\"a\":1,\"b\":3}\n{\"a\":1,\"b\":4}\n{\"a\":2,\"b\":3}\n{\"a\":2,\"b\":4}", "empty": "", ". # all of it\n| .total": "3", ".items[0] | .tags[1], .name": "\"b\"\n\"one\"",
		`.items | map({(.name): .id}) | add | length`: "3", ".o | map_values(. * 10)": `{"z":10,"a":20}`, "[.items[] | .name | length]": "[3,7,4]", ".f | floor": "1", `[.[] | scalars] | length`: "7",
	} {
		e, err := CompileExpression(expression)
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", expression, err)
			}
			continue
		}
		values, err := e.Apply([]byte(document))
		got := make([]string, len(values))
		for i, v := range values {
			got[i] = string(v)
		}
		switch text := strings.Join(got, "\n"); {
		case err != nil && want != "!"+err.Error():
			t.Errorf("%s: %v", expression, err)
		case err == nil && text != want:
			t.Errorf("%s:\n%s, want\n%s", expression, text, want)
		}
	}
}

// TestNoSelection checks that an unsupported expression is rejected with the reason and the position.
func TestNoSelection(t *testing.T) {
	for expression, want := range map[string]string{
		"": "the expression is empty", "# nothing": "the expression is empty", ".a |": "unexpected EOF at character 5", "..": "'..' is not supported: select has no recursion", "def f: 1; f": "no definitions",
		"reduce .[] as $x (0; . + $x)": "no loops", "range(10)": "no loops", "[recurse]": "no recursion", "input": "no other input", "env.HOME": "the environment", "$ENV.HOME": "unknown variable '$ENV'", "now": "the clock",
		"@base64": "no formats", ".a = 1": "no changes", ".a |= 1": "no changes", "foo": "unknown function 'foo'", "map": "map has 1 arguments, not 0", "\"abc": "unterminated string literal",
		"(1": "unexpected EOF at character 3", "[1,": "unexpected EOF", "{a: }": "unexpected token \"}\" at character 5", "1 == 2 == 3": "unexpected token \"==\" at character 8", ". as [$a] | 1": "only 'as $name' is taken", ". as $a ?// $b | 1": "only 'as $name'", ".[1": "unexpected EOF", "\"\\x\"": "invalid escape sequence", ".5": "not a number", "+1": "no sign of a positive value", "{$a: 1}": "write ($name)",
		strings.Repeat("(", 1000) + "1" + strings.Repeat(")", 1000): "nested too deep", strings.Repeat("(", 1000): "unexpected EOF", strings.Repeat("-", 1000) + "1": "nested too deep", strings.Repeat("1//", 1000) + "1": "nested too deep", strings.Repeat("x", 5000): "longer than", "'a'": `unexpected token "'"`, "halt": "unknown function", "error": "unknown function",
		"getpath([\"a\"])": "unknown function", "input_filename": "unknown function", "$__loc__": "unknown variable", "label $f | 1": "no jumps", "import \"a\" as a; 1": "no modules",
		"if 1 then 2": "unexpected EOF", "é": `unexpected token "é" at character 1`, "\"é\" é": `at character 5`,
	} {
		if _, err := CompileExpression(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s: %v, want %q", expression, err, want)
		}
	}
}
