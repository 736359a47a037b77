package textedit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mcpproxy/internal/problem"
)

const entry = `{"command":"/bin/mcpproxy","args":["stdio"]}`

func TestEdits(t *testing.T) {
	for name, c := range map[string]struct {
		format       Format
		path         string // names, separated by slashes
		value        string // "" removes the entry
		before, want string
	}{
		"empty":                    {JSON, "mcpServers/p", entry, "", "{\n  \"mcpServers\": {\n    \"p\": {\n      \"command\": \"/bin/mcpproxy\",\n      \"args\": [\"stdio\"]\n    }\n  }\n}\n"},
		"comments":                 {JSON, "s/p", `{"u":1}`, "{\n\t// mine\n\t\"s\": {\n\t\t\"a\": {}, // one\n\t},\n}\n", "{\n\t// mine\n\t\"s\": {\n\t\t\"a\": {}, // one\n\t\t\"p\": {\"u\": 1},\n\t},\n}\n"},
		"minified":                 {JSON, "s/p", `{"u":1}`, `{"s":{"a":{"x":2}},"z":[]}`, `{"s":{"a":{"x":2},"p":{"u":1}},"z":[]}`},
		"CRLF and mark":            {JSON, "s/p", `1`, "\uFEFF{\r\n  \"s\": {\r\n    \"a\": 2\r\n  }\r\n}", "\uFEFF{\r\n  \"s\": {\r\n    \"a\": 2,\r\n    \"p\": 1\r\n  }\r\n}"},
		"replaced":                 {JSON, "s/p", `"new"`, `{"s": {"p": "old" /* why */, "q": 1}}`, `{"s": {"p": "new" /* why */, "q": 1}}`},
		"out of JSON":              {JSON, "s/p", "", "{\n  \"s\": {\n    \"a\": 1,\n    \"p\": 2\n  }\n}\n", "{\n  \"s\": {\n    \"a\": 1\n  }\n}\n"},
		"nothing to take out":      {JSON, "s/p", "", `{"s": 1 }`, `{"s": 1 }`},
		"a table":                  {TOML, "mcp/p", `{"url":"http://x","env":{"A":"1"}}`, "model = \"x\" # why\n\n[mcp.a]\nurl = \"y\"\n", "model = \"x\" # why\n\n[mcp.a]\nurl = \"y\"\n\n[mcp.p]\nurl = \"http://x\"\n\n[mcp.p.env]\nA = \"1\"\n"},
		"no last line end":         {TOML, "mcp/p", `{"url":"x"}`, "a = 1", "a = 1\n\n[mcp.p]\nurl = \"x\"\n"},
		"TOML from nothing":        {TOML, "mcp/p", `{"url":"x"}`, "", "[mcp.p]\nurl = \"x\"\n"},
		"a table replaced":         {TOML, "mcp/p", `{"url":"new"}`, "[mcp.p]\nurl = \"old\"\n[mcp.p.env]\nA = \"1\"\n\n[z]\na = 1\n", "[mcp.p]\nurl = \"new\"\n\n[z]\na = 1\n"},
		"a table out":              {TOML, "mcp/p", "", "# mine\n[mcp.a]\nx = 1\n\n[mcp.p]\nurl = \"old\"\n\n[mcp.p.env]\nA = \"1\"\n\n[z]\na = 1\n", "# mine\n[mcp.a]\nx = 1\n\n[z]\na = 1\n"},
		"the last table out":       {TOML, "mcp/p", "", "[mcp.a]\nx = 1\n\n[mcp.p]\nurl = \"old\"\n", "[mcp.a]\nx = 1\n"},
		"into an inline table":     {TOML, "mcp/p", `{"url":"x"}`, "mcp = { a = { x = 1 } } # c\n", "mcp = { a = { x = 1 }, p = { url = \"x\" } } # c\n"},
		"out of an inline table":   {TOML, "mcp/p", "", "mcp = { a = 1, p = { url = \"x\" } }\n", "mcp = { a = 1 }\n"},
		"first of an inline table": {TOML, "mcp/p", "", "mcp = { p = { url = \"x\" }, a = 1 }\n", "mcp = { a = 1 }\n"},
		"a key of a table":         {TOML, "mcp/p/mode", `"writes"`, "[mcp.p]\r\n  url = \"x\" # c\r\n\r\n[z]\r\n", "[mcp.p]\r\n  url = \"x\" # c\r\n  mode = \"writes\"\r\n\r\n[z]\r\n"},
		"a value":                  {TOML, "mcp/p/mode", `"writes"`, "[mcp.p]\nmode = 'auto'   # c\nx = [\n 1, # one\n]\n", "[mcp.p]\nmode = \"writes\"   # c\nx = [\n 1, # one\n]\n"},
		"a subtable of a table":    {TOML, "mcp/p/tools/t", `{"mode":"approve"}`, "[mcp.p]\nurl = \"x\"\n", "[mcp.p]\nurl = \"x\"\n\n[mcp.p.tools.t]\nmode = \"approve\"\n"},
		"dotted keys out":          {TOML, "mcp/p", "", "mcp.p.url = \"x\"\nmcp.p.on = true\nmcp.a.x = 1\n", "mcp.a.x = 1\n"},
		"a key before tables":      {TOML, "model", `"m"`, "[z]\na = 1\n", "model = \"m\"\n[z]\na = 1\n"},
		"a name with a dot":        {TOML, "mcp/p.q", `{"a":"\"\\\n"}`, "", "[mcp.\"p.q\"]\na = \"\\\"\\\\\\n\"\n"},
		"lists of tables":          {TOML, "mcp/p", `{"a":1}`, "[[l]]\nx = 1\n[[l]]\nx = 2\n", "[[l]]\nx = 1\n[[l]]\nx = 2\n\n[mcp.p]\na = 1\n"},
		"YAML":                     {YAML, "e/p", `{"type":"http","on":true}`, "# mine\ne:\n  a:\n    x: 1 # c\n\nz: 2\n", "# mine\ne:\n  a:\n    x: 1 # c\n  p:\n    type: http\n    \"on\": true\n\nz: 2\n"},
		"YAML from nothing":        {YAML, "e/p", `{"x":"1"}`, "", "e:\n  p:\n    x: \"1\"\n"},
		"an empty mapping":         {YAML, "e/p", `{"x":1}`, "e: {}\nz: 1\n", "e:\n  p:\n    x: 1\nz: 1\n"},
		"a key without value":      {YAML, "e/p", `{"x":1}`, "e:\nz: 1\n", "e:\n  p:\n    x: 1\nz: 1\n"},
		"YAML replaced":            {YAML, "e/p", `{"x":2}`, "e:\n    p:\n        x: 1\n        y: |\n            text\n\n            more\n    q: 1\n", "e:\n    p:\n      x: 2\n    q: 1\n"},
		"YAML out":                 {YAML, "e/p", "", "e:\n  a: 1\n  p:\n    l:\n    - 1\n    - 2\n  # about q\n  q: 1\n", "e:\n  a: 1\n  # about q\n  q: 1\n"},
		"the only member out":      {YAML, "e/p", "", "e:\n  p:\n    x: 1\nz: 1\n", "e: {}\nz: 1\n"},
		"no last line end, YAML":   {YAML, "p", `1`, "a: 2", "a: 2\np: 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := strings.Split(c.path, "/")
			var got []byte
			var err error
			if c.value == "" {
				got, err = RemoveValue([]byte(c.before), c.format, path...)
			} else {
				got, err = SetValue([]byte(c.before), c.format, json.RawMessage(c.value), path...)
			}
			if err != nil || string(got) != c.want {
				t.Fatalf("%v\ngot\n%s\nwant\n%s", err, got, c.want)
			}
			value, found, err := GetValue(got, c.format, path...)
			if err != nil || found != (c.value != "") {
				t.Errorf("GetValue: got %s, %v, %v", value, found, err)
			}
		})
	}
}

func TestLists(t *testing.T) {
	const before = "{\n  \"allow\": [\n    \"a\", // look\n    \"b\"\n  ]\n}\n"
	longer, err := AppendToList([]byte(before), JSON, "c", "allow")
	if want := "{\n  \"allow\": [\n    \"a\", // look\n    \"b\",\n    \"c\"\n  ]\n}\n"; err != nil || string(longer) != want {
		t.Fatalf("got %v\n%s", err, longer)
	}
	if again, err := AppendToList(longer, JSON, "c", "allow"); err != nil || string(again) != string(longer) {
		t.Errorf("appended again: %v\n%s", err, again)
	}
	if back, err := RemoveFromList(longer, JSON, "c", "allow"); err != nil || string(back) != before {
		t.Errorf("removed again: %v\n%s", err, back)
	}
	for f, empty := range map[Format]string{JSON: "{}", TOML: "", YAML: ""} {
		one, err := AppendToList([]byte(empty), f, "x", "p", "allow")
		if err != nil {
			t.Fatal(f, err)
		}
		two, err := AppendToList(one, f, "y", "p", "allow")
		if err != nil {
			t.Fatal(f, err)
		}
		left, err := RemoveFromList(two, f, "x", "p", "allow")
		if value, _, _ := GetValue(left, f, "p", "allow"); err != nil || string(value) != `["y"]` {
			t.Errorf("%v: got %v\n%s", f, err, left)
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		format  Format
		text    string
		message string
	}{
		"broken JSON":     {JSON, "{\n  \"a\": }", "line 2, column 8"},
		"twice":           {JSON, `{"a": 1, "a": 2}`, "a duplicate name in the object"},
		"a list":          {JSON, `[1]`, "not an object"},
		"no object there": {JSON, `{"s": "text"}`, "s is not an object"},
		"broken TOML":     {TOML, "a = 1\nb = = 2\n", "line 2"},
		"TOML twice":      {TOML, "[s]\n[s]\n", "not TOML"},
		"TOML no table":   {TOML, "s = 1\n", "s is not an object"},
		"broken YAML":     {YAML, "a: [1\nb: 2\n", "YAML"},
		"YAML flow":       {YAML, "s: {a: 1}\n", "written on one line"},
		"YAML a list":     {YAML, "- 1\n", "YAML"},
		"two documents":   {YAML, "a: 1\n---\nb: 2\n", "2 YAML documents"},
		"not UTF-8":       {JSON, "{\"a\": \"\xff\"}", "UTF-8"},
		"too deep":        {JSON, strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), "nested deeper"},
		"too many keys":   {TOML, manyKeys(), "more than 10000 keys"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := SetValue([]byte(c.text), c.format, json.RawMessage(`{"x":1}`), "s", "p")
			var p *problem.Problem
			if !errors.As(err, &p) || !strings.Contains(p.Message, c.message) || p.Hint == "" {
				t.Errorf("got error %v", err)
			}
			if string(got) != c.text {
				t.Errorf("the text was changed:\n%.200s", got)
			}
		})
	}
}

func manyKeys() string {
	var b strings.Builder
	for i := range maxKeys + 1 {
		fmt.Fprintf(&b, "k%d = 1\n", i)
	}
	return b.String()
}

// TestBackAndForth checks that setting an entry and removing it again restores all bytes of texts in usual styles.
func TestBackAndForth(t *testing.T) {
	texts := map[Format][]string{
		JSON: {"{\n  \"s\": {\n    \"a\": {\"x\": 1}\n  }\n}\n", "{\"s\":{\"a\":1}}", "{ \"s\" : { \"a\" : 1 } }", "{\n\t\"s\": {\n\t\t// one\n\t\t\"a\": 1,\n\t},\n\t\"z\": [1, 2,],\n}"},
		TOML: {"[s.a]\nx = 1\n", "# c\nm = 'x'\n\n[s.a]\nx = 1\n", "s = { a = 1 }\n", "[s]\na = 1\n\n[z]\nb = \"\"\"\n[s.p]\n\"\"\"\n", "[[l]]\na = { b = [ 1,\n 2 ] }\n"},
		YAML: {"s:\n  a:\n    x: 1\n", "# c\ns:\n    a: 1\nz: |\n  s:\n    p: 1\n", "a: 1\ns:\n  a:\n  - 1\n  - 2\n\n\nz: 1\n", "---\ns:\n  a: 1\n"},
	}
	for f, all := range texts {
		for _, text := range all {
			for _, variant := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), "\uFEFF" + text} {
				set, err := SetValue([]byte(variant), f, json.RawMessage(`{"command":"x y","args":["a","b#"],"on":true}`), "s", "p")
				if err != nil {
					t.Errorf("%v %q: %v", f, variant, err)
					continue
				}
				back, err := RemoveValue(set, f, "s", "p")
				if err != nil || string(back) != variant {
					t.Errorf("%v: %v\n%q, after setting\n%q, after removal\n%q", f, err, variant, set, back)
				}
			}
		}
	}
}

func FuzzSet(f *testing.F) {
	f.Add("{\"s\": {\"a\": 1,}, /**/}", uint8(JSON))
	f.Add("s.a = 1\n[s.b]\nc = { d = '''x''' }\n[[s.l]]\n", uint8(TOML))
	f.Add("s:\n- a\nb: &x {c: d}\ne: *x\n", uint8(YAML))
	f.Fuzz(func(t *testing.T, text string, format uint8) {
		in := Format(format % 3)
		if len(text) > 4096 {
			return
		}
		out, err := SetValue([]byte(text), in, json.RawMessage(`{"x":[1,"2"]}`), "s", "p")
		if err != nil {
			if string(out) != text {
				t.Fatalf("got an error, but also a changed text: %q", out)
			}
			return
		}
		value, found, err := GetValue(out, in, "s", "p")
		if err != nil || !found || string(value) != `{"x":[1,"2"]}` {
			t.Fatalf("%q: %s, %v", out, value, err)
		}
	})
}
