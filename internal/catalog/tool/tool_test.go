package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// realTools returns the tools of real servers, by "server/number".
func realTools(t testing.TB) map[string]json.RawMessage {
	t.Helper()
	shared := os.Getenv("MCPPROXY_SHARED")
	if shared == "" {
		shared = "../../../../shared"
	}
	files, err := filepath.Glob(filepath.Join(shared, "real-servers/*.tools.json"))
	if err != nil || len(files) == 0 {
		t.Skip("the tools of the real servers are missing, set MCPPROXY_SHARED")
	}
	tools := map[string]json.RawMessage{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
		slug := strings.TrimSuffix(filepath.Base(file), ".tools.json")
		for i, raw := range list.Tools {
			tools[fmt.Sprint(slug, "/", i)] = raw
		}
	}
	if len(tools) < 700 {
		t.Fatalf("got only %d tools", len(tools))
	}
	return tools
}

// TestRealTools checks that the parsed fields agree with encoding/json, and contain no hint that the definition does
// not have.
func TestRealTools(t *testing.T) {
	annotated := 0
	for name, raw := range realTools(t) {
		d, err := ParseDefinition("srv", raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !bytes.Equal(d.Raw, raw) {
			t.Errorf("%s: Raw differs from the input", name)
		}
		var want map[string]any
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		str := func(key string) string { s, _ := want[key].(string); return s }
		if d.ID != (ID{"srv", str("name")}) || d.Title != str("title") || d.Description != str("description") {
			t.Errorf("%s: got ID, title and description %q %q %q", name, d.ID, d.Title, d.Description)
		}
		for key, schema := range map[string]json.RawMessage{"inputSchema": d.InputSchema, "outputSchema": d.OutputSchema} {
			var got any
			if schema != nil {
				_ = json.Unmarshal(schema, &got)
			}
			if fmt.Sprint(got) != fmt.Sprint(want[key]) {
				t.Errorf("%s: %s is %s", name, key, schema)
			}
		}
		annotations, has := want["annotations"].(map[string]any)
		if has {
			annotated++
		}
		said := map[string]any{}
		for _, key := range []string{"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if v, ok := annotations[key]; ok {
				said[key] = v
			}
		}
		var got map[string]any
		if err := json.Unmarshal(d.Hints.AppendJSON(nil), &got); err != nil || !maps.Equal(got, said) {
			t.Errorf("%s: hints %v, want %v (%v)", name, got, said, err)
		}
	}
	if annotated < 600 {
		t.Errorf("got only %d tools with annotations", annotated)
	}
}

func TestParseDefinition(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, c := range []struct{ name, raw, want string }{
		{"minimal", ` {"name":"a"} `, `{s a} "" "" null null {}`},
		{"full", `{"name":"a/b:c","title":"T","description":"D\n\u00e9","inputSchema":{ "x": 1 },"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
			`{s a/b:c} "T" "D\né" { "x": 1 } {} {"readOnlyHint":true}`},
		{"wrong types", `{"name":"a","title":1,"description":["x"],"inputSchema":true,"outputSchema":"{}","annotations":"readOnlyHint"}`, `{s a} "" "" null null {}`},
		{"nulls", `{"name":"a","title":null,"description":null,"inputSchema":null,"outputSchema":null,"annotations":null}`, `{s a} "" "" null null {}`},
		{"other case", `{"name":"a","Title":"T","Annotations":{"readOnlyHint":true},"annotations":{"ReadOnlyHint":true,"DESTRUCTIVEHINT":true}}`, `{s a} "" "" null null {}`},
		{"hints that are no booleans", `{"name":"a","annotations":{"title":5,"readOnlyHint":"true","destructiveHint":1,"idempotentHint":null,"openWorldHint":[true]}}`, `{s a} "" "" null null {}`},
		{"escaped names", `{"n\u0061me":"\ud83d\ude00\/\"","annotations":{"\u0072eadOnlyHint":false}}`, `{s 😀/"} "" "" null null {"readOnlyHint":false}`},
		{"cut emoji", `{"name":"a","description":"x\ud83d"}`, `{s a} "" "x�" null null {}`},
		{"128 levels", `{"name":"a","inputSchema":` + deep(127) + `}`, `{s a} "" "" ` + deep(127) + ` null {}`},

		{"no JSON", `{"name":"a"`, "it has no canonical form: not valid JSON"},
		{"nothing", ``, "it has no canonical form: not valid JSON"},
		{"no object", `["name"]`, "it is not an object"},
		{"a scalar", ` 5 `, "it is not an object"},
		{"invalid UTF-8", "{\"name\":\"\xff\"}", "it has no canonical form: not valid UTF-8"},
		{"no name", `{"title":"a"}`, "its name is missing, empty or not a string"},
		{"empty name", `{"name":""}`, "its name is missing, empty or not a string"},
		{"name of another type", `{"name":5}`, "its name is missing, empty or not a string"},
		{"name that is no text", `{"name":"a\udead"}`, "its name is missing, empty or not a string"},
		{"two names", `{"name":"a","name":"b"}`, `it has no canonical form: an object has two members named "name"`},
		{"two hints", `{"name":"a","annotations":{"readOnlyHint":false,"\u0072eadOnlyHint":true}}`, `it has no canonical form: an object has two members named "readOnlyHint"`},
		{"129 levels", `{"name":"a","inputSchema":` + deep(128) + `}`, "it has no canonical form: nested deeper than 128 levels"},
		{"129 lists", `{"name":"a","x":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`, "it has no canonical form: nested deeper than 128 levels"},
		{"too long", `{"name":"` + strings.Repeat("a", MaxDefinition) + `"}`, "it is longer than 262144 bytes"},
		{"long name", `{"name":"` + strings.Repeat("a", maxToolName+1) + `"}`, "its name is longer than 256 bytes"},
	} {
		d, err := ParseDefinition("s", json.RawMessage(c.raw))
		got := ""
		if err == nil {
			null := func(raw json.RawMessage) string {
				if raw == nil {
					return "null"
				}
				return string(raw)
			}
			got = fmt.Sprintf("{%s %s} %q %q %s %s %s", d.ID.Server, d.ID.Tool, d.Title, d.Description, null(d.InputSchema), null(d.OutputSchema), d.Hints.AppendJSON(nil))
			if string(d.Raw) != c.raw {
				t.Errorf("%s: Raw is %s", c.name, d.Raw)
			}
		} else {
			got = strings.TrimPrefix(err.Error(), `the definition of a tool of server "s" cannot be used: `)
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestHints(t *testing.T) {
	for _, c := range []struct {
		h    Hints
		want string
	}{
		{Hints{}, `{}`},
		{Hints{Title: "a\"<\n\xff"}, `{"title":"a\"<\n` + "\ufffd" + `"}`},
		{Hints{ReadOnly: False, OpenWorld: True}, `{"readOnlyHint":false,"openWorldHint":true}`},
		{Hints{"t", True, False, True, False}, `{"title":"t","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`},
	} {
		if got, err := c.h.MarshalJSON(); string(got) != c.want || err != nil {
			t.Errorf("got %s %v, want %s", got, err, c.want)
		}
		var back Hints
		if err := json.Unmarshal([]byte(c.want), &back); err != nil || back.Title != strings.ToValidUTF8(c.h.Title, "\ufffd") || back.WithDefaults(c.h) != back {
			t.Errorf("%s is parsed as %+v (%v)", c.want, back, err)
		}
	}
	for _, bad := range []string{``, `null`, `[]`, `{`, `{"readOnlyHint":true,"readOnlyHint":false}`} {
		if h := ParseHints(json.RawMessage(bad)); h != (Hints{}) {
			t.Errorf("ParseHints(%s) = %+v", bad, h)
		}
	}
	base := Hints{"base", True, True, Unset, False}
	if got, want := (Hints{"", False, Unset, True, Unset}).WithDefaults(base), (Hints{"base", False, True, True, False}); got != want {
		t.Errorf("WithDefaults returns %+v, want %+v", got, want)
	}
	if ToTriBool(true) != True || ToTriBool(false) != False {
		t.Error("ToTriBool is wrong")
	}
}

func TestID(t *testing.T) {
	for text, want := range map[string]string{
		"github:delete_repo": "github delete_repo", "a:b:c/d.e": "a b:c/d.e", "A-b_c.1: ": "A-b_c.1  ",
		strings.Repeat("x", 64) + ":t": strings.Repeat("x", 64) + " t",
		"nothing":                      "there is no colon",
		":t":                           "the server name is empty",
		"s:":                           "the tool part is empty",
		"a__b:t":                       `the server name contains "__"`,
		"..:t":                         "the server name is a dot path",
		"a/b:t":                        "the server name may contain only letters, digits, dots, dashes and underscores",
		"é:t":                          "the server name may contain only letters, digits, dots, dashes and underscores",
		strings.Repeat("x", 65) + ":t": "the server name is longer than 64 characters",
	} {
		id, err := ParseID(text)
		got := id.Server + " " + id.Tool
		if err != nil {
			got = err.Error()
		} else if id.String() != text {
			t.Errorf("%s is formatted as %s", text, id)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// decodeTree decodes JSON and keeps the text of numbers.
func decodeTree(t testing.TB, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// scramble encodes a tree with another key order, other white space and other escapes.
func scramble(rng *rand.Rand, v any) string {
	space := func() string { return []string{"", "", " ", "\n\t", "\r\n"}[rng.IntN(5)] }
	var b strings.Builder
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		b.WriteString("{" + space())
		for i, k := range keys {
			if i > 0 {
				b.WriteString("," + space())
			}
			b.WriteString(scramble(rng, k) + space() + ":" + space() + scramble(rng, v[k]) + space())
		}
		return b.String() + "}"
	case []any:
		b.WriteString("[" + space())
		for i, x := range v {
			if i > 0 {
				b.WriteString("," + space())
			}
			b.WriteString(scramble(rng, x) + space())
		}
		return b.String() + "]"
	case string:
		for _, r := range v {
			if rng.IntN(20) == 0 && r < 0x10000 {
				fmt.Fprintf(&b, `\u%04x`, r)
				continue
			}
			q, _ := json.Marshal(string(r)) // escapes <, >, & and more
			b.Write(q[1 : len(q)-1])
		}
		return `"` + b.String() + `"`
	}
	out, _ := json.Marshal(v)
	return string(out)
}

func TestFingerprintIgnoresSpelling(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, raw := range realTools(t) {
		want := Definition{Raw: raw}.Fingerprint()
		tree := decodeTree(t, raw)
		for range 2 {
			other := scramble(rng, tree)
			if got := (Definition{Raw: json.RawMessage(other)}).Fingerprint(); got != want {
				t.Fatalf("%s: another spelling of the definition changes the fingerprint\n%s\n%s", name, raw, other)
			}
		}
	}
}

// mutations emits copies of a tree with one change each, for every position in it.
func mutations(v any, path string, emit func(path string, changed any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			with := func(change func(m map[string]any)) any {
				m := maps.Clone(v)
				change(m)
				return m
			}
			emit(path+"/-"+k, with(func(m map[string]any) { delete(m, k) }))
			emit(path+"/renamed "+k, with(func(m map[string]any) { m[k+"_"] = m[k]; delete(m, k) }))
			mutations(v[k], path+"/"+k, func(p string, x any) { emit(p, with(func(m map[string]any) { m[k] = x })) })
		}
		m := maps.Clone(v)
		m["added by a test"] = true
		emit(path+"/+", m)
	case []any:
		emit(path+"/+", append(slices.Clone(v), nil))
		for i := range v {
			mutations(v[i], fmt.Sprint(path, "/", i), func(p string, x any) {
				list := slices.Clone(v)
				list[i] = x
				emit(p, list)
			})
		}
		if len(v) > 1 && fmt.Sprint(v[0]) != fmt.Sprint(v[1]) {
			list := slices.Clone(v)
			list[0], list[1] = list[1], list[0]
			emit(path+"/swapped", list)
		}
	case string:
		emit(path, v+" ")
		emit(path, v+"\u200b")
	case bool:
		emit(path, !v)
		emit(path, nil)
	case json.Number:
		emit(path, json.Number("1"+strings.TrimPrefix(string(v), "-")))
		emit(path, string(v))
	case nil:
		emit(path, false)
	}
}

// TestFingerprintChangesWithEveryField checks that any change of a definition changes its fingerprint.
func TestFingerprintChangesWithEveryField(t *testing.T) {
	tools := realTools(t)
	names := slices.Sorted(maps.Keys(tools))
	changes := 0
	for i := 0; i < len(names); i += 4 {
		raw := tools[names[i]]
		tree := decodeTree(t, raw).(map[string]any)
		tree["_meta"] = map[string]any{"x": json.Number("1")}
		plain, _ := json.Marshal(tree)
		seen := map[Fingerprint]string{Definition{Raw: plain}.Fingerprint(): "the original"}
		n := 0
		mutations(tree, "", func(path string, changed any) {
			if n++; n > 60 && !strings.HasPrefix(path, "/annotations") && !strings.HasPrefix(path, "/_meta") &&
				strings.Count(path, "/") > 1 {
				return
			}
			other, err := json.Marshal(changed)
			if err != nil {
				t.Fatal(err)
			}
			f := Definition{Raw: other}.Fingerprint()
			if twin, ok := seen[f]; ok {
				t.Errorf("%s: %s has the same fingerprint as %s", names[i], path, twin)
			}
			seen[f] = path
			changes++
		})
	}
	if changes < 10_000 {
		t.Errorf("got only %d changes", changes)
	}
}

func TestFingerprintIsTotal(t *testing.T) {
	// The value is pinned: stored approvals depend on it.
	d := Definition{Raw: json.RawMessage(` {"name": "a", "description": "\u00e9", "x": 1.0} `)}
	const want = "42cba007053a7e2b463ec001ee0d811bdfcc5fc9078caa4bd115759bd29362ce" // of {"description":"é","name":"a","x":1}
	if got := d.Fingerprint().String(); got != want {
		t.Errorf("fingerprint is %s, want %s", got, want)
	}
	seen := map[Fingerprint]bool{}
	for _, raw := range []string{``, `{`, `{"a":1,"a":1}`, `{"a":1,"a":2}`, "\"\xff\"", `"not canonical: "`} {
		seen[Definition{Raw: json.RawMessage(raw)}.Fingerprint()] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d fingerprints, want 6", len(seen))
	}
}

func BenchmarkDefinition(b *testing.B) {
	tools := realTools(b)
	size := 0
	for _, raw := range tools {
		size += len(raw)
	}
	b.Run("ParseDefinition", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(size))
		for b.Loop() {
			for _, raw := range tools {
				if _, err := ParseDefinition("s", raw); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("Fingerprint", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(size))
		for b.Loop() {
			for _, raw := range tools {
				Definition{Raw: raw}.Fingerprint()
			}
		}
	})
}
