package wirejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// corpusRow is a line of a corpus under shared/security-corpora.
type corpusRow struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	B64   []byte `json:"b64"`
}

func corpus(t testing.TB) []corpusRow {
	t.Helper()
	shared := os.Getenv("MCPPROXY_SHARED")
	if shared == "" {
		shared = "../../../../shared"
	}
	data, err := os.ReadFile(filepath.Join(shared, "security-corpora/malformed-json/corpus.jsonl"))
	if err != nil {
		t.Skipf("the shared corpora are missing, set MCPPROXY_SHARED: %v", err)
	}
	var rows []corpusRow
	for line := range bytes.Lines(data) {
		var r corpusRow
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// stricter contains texts that RFC 8259 allows but Check rejects on purpose, because parsers disagree about their
// meaning.
var stricter = map[string]string{
	"json-y_object_duplicated_key":           `duplicate member "a"`,
	"json-y_object_duplicated_key_and_value": `duplicate member "a"`,
	"json-y_object_escaped_null_in_key":      "a member name contains NUL",
}

func TestCorpus(t *testing.T) {
	count := map[string]int{}
	for _, r := range corpus(t) {
		count[r.Label]++
		err := Check(r.B64, Limits{})
		reason := ""
		if e, ok := errors.AsType[*Error](err); ok {
			reason = e.Reason
		}
		switch {
		case r.Label == "must-reject" && err == nil:
			t.Errorf("%s is accepted: %q", r.ID, r.B64)
		case r.Label == "must-accept" && reason != stricter[r.ID]:
			t.Errorf("%s: %v, want %q", r.ID, err, stricter[r.ID])
		}
		end, endErr := endOf(bytes.TrimSpace(r.B64), defaultDepth)
		if r.Label == "must-accept" && (endErr != nil || end != len(bytes.TrimSpace(r.B64))) {
			t.Errorf("endOf %s: %d %v", r.ID, end, endErr)
		}
		differ(t, r.B64)
	}
	if count["must-reject"] != 188 || count["must-accept"] != 95 {
		t.Errorf("the corpus is not as expected: %v", count)
	}
}

// differ compares with encoding/json: it must accept everything that Check accepts, and the read functions must return
// the values that it decodes.
func differ(t *testing.T, data []byte) {
	t.Helper()
	err := Check(data, Limits{})
	if e, ok := errors.AsType[*Error](err); err != nil && (!ok || e.Offset < 0 || e.Offset > len(data)) {
		t.Errorf("%q: bad error %#v", data, err)
	}
	if err != nil {
		return
	}
	var want any
	if err := json.Unmarshal(data, &want); err != nil {
		t.Errorf("%q is accepted, but encoding/json rejects it: %v", data, err)
		return
	}
	if !utf8.Valid(data) {
		t.Errorf("%q is accepted, but is not valid UTF-8", data)
	}
	got, _ := json.Marshal(decode(t, bytes.TrimSpace(data)))
	plain, _ := json.Marshal(want)
	if !bytes.Equal(got, plain) {
		t.Errorf("%q decodes to %s, with encoding/json to %s", data, got, plain)
	}
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	if end, err := endOf(append(bytes.Clone(trimmed), " ,]}\""...), defaultDepth); err != nil || end != len(bytes.TrimRight(trimmed, " \t\r\n")) {
		t.Errorf("endOf(%q) = %d, %v", trimmed, end, err)
	}
}

// decode decodes a value. It uses only this package's functions, except for floats.
func decode(t *testing.T, value []byte) any {
	switch Kind(value) {
	case '{':
		m := map[string]any{}
		err := EachMember(value, func(name, v []byte) error {
			m[string(name)] = decode(t, v)
			if !bytes.Equal(Find(value, string(name)), v) {
				t.Errorf("Find(%q, %q) = %q, want %q", value, name, Find(value, string(name)), v)
			}
			return nil
		})
		if err != nil {
			t.Errorf("Members(%q): %v", value, err)
		}
		return m
	case '[':
		list := []any{}
		err := EachElement(value, func(v []byte) error {
			list = append(list, decode(t, v))
			return nil
		})
		if err != nil {
			t.Errorf("Elements(%q): %v", value, err)
		}
		return list
	case '"':
		s, ok := String(value)
		if !ok {
			t.Errorf("String(%q) fails", value)
		}
		return s
	case 't', 'f':
		b, ok := Bool(value)
		if !ok {
			t.Errorf("Bool(%q) fails", value)
		}
		return b
	case '0':
		var f float64
		if err := json.Unmarshal(value, &f); err != nil {
			t.Errorf("number %q: %v", value, err)
		}
		var i int64
		v, ok := Int(value)
		if err := json.Unmarshal(value, &i); (err == nil) != ok || v != i {
			t.Errorf("Int(%q) = %d %v, want %d %v as in encoding/json", value, v, ok, i, err)
		}
		return f
	case 'n':
		return nil
	}
	t.Errorf("Kind(%q) is unknown", value)
	return nil
}

func TestCheck(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ name, text, reason string }{
		{"empty object", `{}`, ""},
		{"spaces", " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n", ""},
		{"same name in other objects", `{"a":{"a":[{"a":1},{"a":2}]},"b":{"a":1}}`, ""},
		{"same name in a sibling", `[{"a":1},{"a":2}]`, ""},
		{"NUL in a value", `{"a":"\u0000"}`, ""},
		{"noncharacters", `"` + "\uffff\U0010ffff" + `\uffff"`, ""},
		{"surrogate pair", `"\ud83d\ude00"`, ""},
		{"largest float", `1.7976931348623157e308`, ""},
		{"underflow", `1e-999`, ""},
		{"308 digits", strings.Repeat("9", 308), ""},
		{"64 levels", deep(64), ""},

		{"duplicate", `{"a":1,"b":2,"a":3}`, `duplicate member "a"`},
		{"escaped twin", `{"a":1,"\u0061":2}`, `duplicate member "a"`},
		{"escaped solidus", `{"a/b":1,"a\/b":2}`, `duplicate member "a/b"`},
		{"other case", `{"method":1,"METHOD":2}`, `duplicate member "METHOD", which is "method" in another case`},
		{"other case, long", `{"destructiveHint":1,"destructivehint":2}`, `duplicate member "destructivehint", which is "destructiveHint" in another case`},
		{"Kelvin sign", `{"k":1,"` + "\u212a" + `":2}`, `duplicate member "\u212a", which is "k" in another case`},
		{"Kelvin sign, escaped", `{"K":1,"\u212A":2}`, `duplicate member "\u212a", which is "K" in another case`},
		{"long s", `{"arguments":1,"argument` + "\u017f" + `":2}`, `duplicate member "argument\u017f", which is "arguments" in another case`},
		{"Greek sigmas", `{"` + "σ" + `":1,"` + "ς" + `":2}`, `duplicate member "\u03c2", which is "\u03c3" in another case`},
		{"Deseret", `{"` + "\U00010400" + `":1,"\ud801\udc28":2}`, `duplicate member "\U00010428", which is "\U00010400" in another case`},
		{"twin after nested", `{"a":{"b":{"c":1}},"b":1,"A":2}`, `duplicate member "A", which is "a" in another case`},
		{"empty names", `{"":1,"":2}`, `duplicate member ""`},
		{"NUL in a name", `{"a\u0000":1}`, "a member name contains NUL"},
		{"BOM", "\ufeff{}", "expected a value"},
		{"invalid UTF-8", "\"\xff\"", "a string is not valid UTF-8"},
		{"overlong UTF-8", "\"\xc0\xaf\"", "a string is not valid UTF-8"},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", "a string is not valid UTF-8"},
		{"invalid UTF-8 in a name", "{\"\xff\":1}", "a string is not valid UTF-8"},
		{"lone high surrogate", `"\ud83d"`, "a string contains a single surrogate"},
		{"lone low surrogate", `"\ude00"`, "a string contains a single surrogate"},
		{"two high surrogates", `"\ud83d\ud83d\ude00"`, "a string contains a single surrogate"},
		{"high surrogate and letter", `"\ud83d\u0041"`, "a string contains a single surrogate"},
		{"lone surrogate in a name", `{"\ud83d":1}`, "a string contains a single surrogate"},
		{"bad escape", `"\x41"`, "an escape sequence is unknown"},
		{"bad hex", `"\u00g1"`, `\u is not followed by four hexadecimal digits`},
		{"control character", "\"a\tb\"", "a string contains an unescaped control character"},
		{"infinite", `1e400`, "a number is too large for a 64-bit float"},
		{"long infinite", strings.Repeat("9", 400), "a number is too large for a 64-bit float"},
		{"leading zero", `[01]`, "a number has a leading zero"},
		{"bare minus", `-`, "expected a digit after the minus sign"},
		{"two values", `{}{}`, "there is something after the value"},
		{"comment", `{}//`, "there is something after the value"},
		{"trailing comma", `[1,]`, "expected a value"},
		{"trailing comma in object", `{"a":1,}`, "expected a member name in double quotes"},
		{"wrong bracket", `[1}`, "expected a comma or the end of the array"},
		{"wrong brace", `{"a":1]`, "expected a comma or the end of the object"},
		{"nothing", ``, "the text ends where a value is expected"},
		{"only spaces", ` `, "the text ends where a value is expected"},
		{"open string", `"abc`, "the text ends inside a string"},
		{"open array", `[1`, "the text ends inside an array or object"},
		{"65 levels", deep(65), "arrays and objects are nested deeper than 64 levels"},
		{"very deep", strings.Repeat("[", 1<<20), "arrays and objects are nested deeper than 64 levels"},
		{"very deep objects", strings.Repeat(`{"a":`, 1<<18), "arrays and objects are nested deeper than 64 levels"},
		{"long", `"` + strings.Repeat("a", 4<<20) + `"`, "the text is longer than 4194304 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check([]byte(c.text), Limits{})
			got := ""
			if e, ok := errors.AsType[*Error](err); ok {
				got = e.Reason
			}
			if got != c.reason {
				t.Errorf("got %q, want %q", got, c.reason)
			}
			if len(c.text) < 1<<10 {
				differ(t, []byte(c.text))
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1, "a":2}`:    `invalid JSON at byte 8: duplicate member "a"`,
		`[[[[]]]]`:          `JSON over the limit at byte 3: arrays and objects are nested deeper than 3 levels`,
		`"0123456789012"  `: `JSON over the limit at byte 16: the text is longer than 16 bytes`,
	} {
		if got := fmt.Sprint(Check([]byte(text), Limits{Bytes: 16, Depth: 3})); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	long := strings.Repeat("é", 1000)
	err := Check([]byte(`{"`+long+`":1,"`+long+`":2}`), Limits{})
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("a long name is not shortened: %v", err)
	}
}

// TestOffsets checks that an offset is the position of the error, at any position within the eight-byte steps of the
// string scan.
func TestOffsets(t *testing.T) {
	for pad := range 40 {
		for tail := range 20 {
			prefix, suffix := `["`+strings.Repeat("x", pad), strings.Repeat("y", tail)+`"]`
			for _, fault := range []string{"\n", "\x00", "\x1f", "\xff", `\q`, `\ud800`} {
				err := Check([]byte(prefix+fault+suffix), Limits{})
				if e, ok := errors.AsType[*Error](err); !ok || e.Offset != len(prefix) {
					t.Fatalf("%q at %d with %d after: %v", fault, pad, tail, err)
				}
			}
			for _, fine := range []string{" ", "!", "#", "[", "]", "\x7f", "é", "€", "😀", `\"`, `\\`, `\u00e9`, `\ud83d\ude00`} {
				if err := Check([]byte(prefix+fine+suffix), Limits{}); err != nil {
					t.Fatalf("%q at %d with %d after: %v", fine, pad, tail, err)
				}
			}
		}
	}
}

// TestManyMembers checks objects with so many members that a table is used. Nested objects have their own table.
func TestManyMembers(t *testing.T) {
	object := func(n int, extra string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range n {
			fmt.Fprintf(&b, `"key%d":{"key%d":[]},`, i, i)
		}
		return b.String() + extra + "}"
	}
	for _, n := range []int{1, 62, 63, 64, 65, 127, 128, 129, 1000} {
		for _, c := range []struct {
			extra string
			want  bool
		}{
			{`"other":1`, true},
			{`"key0":1`, false},
			{`"KEY` + fmt.Sprint(n-1) + `":1`, false},
			{`"\u212aey` + fmt.Sprint(n/2) + `":1`, false},
			{`"other":` + object(n, `"key_":1`) + `,"last":2`, true},
			{`"other":` + object(n, `"key_":1`) + `,"key0":2`, false},
			{`"other":` + object(n, `"key0":1`) + `,"last":2`, false},
		} {
			if err := Check([]byte(object(n, c.extra)), Limits{}); (err == nil) != c.want {
				t.Errorf("%d members and %.40s: %v", n, c.extra, err)
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	data := request()
	if n := testing.AllocsPerRun(100, func() {
		if err := Check(data, Limits{}); err != nil {
			t.Fatal(err)
		}
		if Find(Find(data, "params"), "name") == nil {
			t.Fatal("not found")
		}
		if err := EachMember(data, func(name, value []byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestReaders(t *testing.T) {
	obj := []byte(` { "a" : 1 , "\u0062\n" : [ "x,}" , {} ] , "c":"\"" } `)
	var got []string
	err := EachMember(obj, func(name, value []byte) error {
		got = append(got, string(name)+"="+string(value))
		return nil
	})
	if want := []string{"a=1", "b\n=[ \"x,}\" , {} ]", `c="\""`}; err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("Members gives %q, %v", got, err)
	}
	if v := Find(obj, "b\n"); string(v) != `[ "x,}" , {} ]` {
		t.Errorf("Find gives %q", v)
	}
	if Find(obj, "d") != nil || Find([]byte("[]"), "a") != nil || Find(nil, "a") != nil {
		t.Error("Find returns a missing member")
	}
	stop := errors.New("stop")
	if err := EachMember(obj, func(_, _ []byte) error { return stop }); err != stop {
		t.Errorf("Members gives %v", err)
	}
	if err := EachElement([]byte("[1]"), func([]byte) error { return stop }); err != stop {
		t.Errorf("Elements gives %v", err)
	}
	if EachMember([]byte(" [1]"), nil) == nil || EachElement([]byte("{}"), nil) == nil {
		t.Error("a value of another kind is accepted")
	}
	for _, value := range []string{"", "1", `"`, `"a`, `"a"b"`, `"\"`} {
		if s, ok := String([]byte(value)); ok {
			t.Errorf("String(%q) = %q", value, s)
		}
	}
	for _, value := range []string{"", "1.0", "1e3", "+1", "007", "9223372036854775808", `"1"`, " 1", "1 "} {
		if v, ok := Int([]byte(value)); ok {
			t.Errorf("Int(%q) = %d", value, v)
		}
	}
	if v, ok := Int([]byte("-9223372036854775808")); !ok || v != -1<<63 {
		t.Errorf("Int gives %d %v", v, ok)
	}
}

func FuzzCheck(f *testing.F) {
	for _, r := range corpus(f) {
		if len(r.B64) < 4096 {
			f.Add(r.B64)
		}
	}
	f.Add(request())
	f.Add([]byte(`{"k":1,"\u212a":2,"` + "\u017f" + `":[{"a":{}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		differ(t, data)
		// The accepted grammar is that of encoding/json.
		end, err := endOf(bytes.TrimLeft(data, " \t\r\n"), 9000)
		if whole := err == nil && end == len(bytes.Trim(data, " \t\r\n")); whole != json.Valid(data) {
			t.Errorf("%q: cursor: %d %v, encoding/json: %v", data, end, err, json.Valid(data))
		}
		// The read functions must not panic on any text.
		_ = EachMember(data, func(name, value []byte) error { return nil })
		_ = EachElement(data, func(value []byte) error { return nil })
		Find(data, "method")
		String(data)
		Int(data)
	})
}

// request returns a tools/call of 1 KB.
func request() []byte {
	return []byte(`{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"call_tool_write","arguments":{` +
		`"name":"github:create_issue","intent_reason":"The user asked to report the crash that was seen on Monday",` +
		`"args":{"owner":"example","repo":"widgets","title":"Crash when the list is empty","body":"` +
		strings.Repeat(`Steps to reproduce:\n1. Open the list.\n2. Remove every item, then press \"Undo\".\n`, 6) +
		`","labels":["bug","crash","needs triage"],"assignees":["octocat"],"milestone":7,"draft":false}},` +
		`"_meta":{"progressToken":17,"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"an-agent","version":"1.2.3"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
}

func BenchmarkCheck(b *testing.B) {
	wide := func(n int) []byte {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, `,"key%d":%d`, i, i)
		}
		return []byte("{" + s.String()[1:] + "}")
	}
	for _, c := range []struct {
		name string
		text []byte
	}{
		{"request", request()},
		{"ascii", []byte(`"` + strings.Repeat("The quick brown fox. ", 50_000) + `"`)},
		{"escapes", []byte(`"` + strings.Repeat(`{\"a\": \"b\"}\n`, 50_000) + `"`)},
		{"cjk", []byte(`"` + strings.Repeat("敏捷的棕色狐狸跳过了懒狗。", 30_000) + `"`)},
		{"numbers", []byte("[" + strings.Repeat("12345.678, ", 50_000) + "0]")},
		{"members1k", wide(1000)},
		{"members100k", wide(100_000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				if err := Check(c.text, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCursor(b *testing.B) {
	text := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat(`The quick brown fox jumps over the lazy dog. {\"a\": 1}\n`, 20_000) + `"}]}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := endOf(text, defaultDepth); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	data := request()
	b.ReportAllocs()
	for b.Loop() {
		if Find(data, "params") == nil {
			b.Fatal("not found")
		}
	}
}
