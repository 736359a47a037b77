package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestViolations(t *testing.T) {
	tests := []struct {
		name, schema, args string
		want               []Violation
	}{
		{"fits", `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"a":1,"b":2}`, nil},
		{"no schema", ``, `{"a":1}`, nil},
		{"no arguments are an empty object", `{"required":["path"]}`, ``, []Violation{{"", "missing property 'path'"}}},
		{"missing", `{"required":["path","mode"]}`, `{}`, []Violation{{"", "missing property 'path'"}, {"", "missing property 'mode'"}}},
		{"type", `{"properties":{"path":{"type":"string"}}}`, `{"path":5}`, []Violation{{"/path", "want string, but got integer"}}},
		{"types", `{"properties":{"a":{"type":["string","null"]}}}`, `{"a":1.5}`, []Violation{{"/a", "want null or string, but got number"}}},
		{"integer that is none", `{"properties":{"a":{"type":"integer"}}}`, `{"a":1.5}`, []Violation{{"/a", "want integer, but got number"}}},
		{"integer with a fraction of zero", `{"properties":{"a":{"type":"integer"}}}`, `{"a":1.50e1}`, nil},
		{"nested, in the order of the arguments", `{"properties":{"l":{"items":{"required":["x"],"properties":{"y":{"type":"boolean"}}}},"a":{"minLength":2}}}`,
			`{"l":[{"x":1},{"y":0}],"a":"x"}`, []Violation{{"/l/1", "missing property 'x'"}, {"/l/1/y", "want boolean, but got integer"}, {"/a", "must have at least 2 characters, but has 1"}}},
		{"escaped pointer", `{"properties":{"a/b~c":{"type":"null"}}}`, `{"a/b~c":1}`, []Violation{{"/a~1b~0c", "want null, but got integer"}}},
		{"additional", `{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1,"b":2,"c":3}`, []Violation{{"", "property 'b' is not allowed"}, {"", "property 'c' is not allowed"}}},
		{"enum", `{"properties":{"m":{"enum":["r","w",null]}}}`, `{"m":"x"}`, []Violation{{"/m", "must be one of 'r', 'w', null"}}},
		{"const", `{"properties":{"m":{"const":{"a":[1]}}}}`, `{"m":{"a":[2]}}`, []Violation{{"/m", `must be {"a":[1]}`}}},
		{"bounds", `{"items":{"minimum":1,"exclusiveMaximum":3,"multipleOf":0.5}}`, `[0,3,1.2,2.5]`,
			[]Violation{{"/0", "must be at least 1"}, {"/1", "must be less than 3"}, {"/2", "must be a multiple of 0.5"}}},
		{"pattern", `{"properties":{"a":{"pattern":"^\\d+$"}}}`, `{"a":"x1"}`, []Violation{{"/a", `must match the pattern '^\\d+$'`}}},
		{"characters, not bytes", `{"properties":{"a":{"maxLength":3}}}`, `{"a":"日本語"}`, nil},
		{"sizes", `{"maxProperties":1,"properties":{"l":{"minItems":2}}}`, `{"l":[1],"m":1}`,
			[]Violation{{"", "must have at most 1 property, but has 2"}, {"/l", "must have at least 2 elements, but has 1"}}},
		{"unique", `{"properties":{"l":{"uniqueItems":true}}}`, `{"l":[{"a":1,"b":2},3,{"b":2.0,"a":1}]}`, []Violation{{"/l", "the elements 0 and 2 are equal, but must differ"}}},
		{"anyOf of types", `{"properties":{"a":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/n"}]}},"$defs":{"n":{"type":"null"}}}`, `{"a":1}`,
			[]Violation{{"/a", "want null or string, but got integer"}}},
		{"anyOf with one candidate", `{"properties":{"a":{"anyOf":[{"type":"null"},{"type":"object","required":["x"]}]}}}`, `{"a":{}}`,
			[]Violation{{"/a", "missing property 'x'"}}},
		{"oneOf, by what is nearest", `{"oneOf":[{"properties":{"k":{"const":"a"},"n":{"type":"integer"}},"required":["n"]},{"properties":{"k":{"const":"b"}}}]}`, `{"k":"a"}`,
			[]Violation{{"", "fits none of the 2 alternatives; the nearest says:"}, {"", "missing property 'n'"}}},
		{"oneOf twice", `{"oneOf":[{"type":"object"},{"required":["a"]}]}`, `{"a":1}`, []Violation{{"", "fits the alternatives 1 and 2, but must fit one only"}}},
		{"not", `{"properties":{"a":{"not":{"type":"string"}}}}`, `{"a":"x"}`, []Violation{{"/a", "is what the schema rules out"}}},
		{"conditional", `{"if":{"properties":{"k":{"const":1}}},"then":{"required":["a"]},"else":{"required":["b"]}}`, `{"k":1}`, []Violation{{"", "missing property 'a'"}}},
		{"property names", `{"propertyNames":{"maxLength":2}}`, `{"abc":1}`, []Violation{{"", "'abc' cannot be the name of a property here"}}},
		{"dependent", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []Violation{{"", "missing property 'b'"}}},
		{"unevaluated", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, []Violation{{"", "property 'b' is not allowed"}}},
		{"draft 07", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"l":{"items":[{"type":"string"}],"additionalItems":false}},"dependencies":{"l":["m"]}}`,
			`{"l":["x",1]}`, []Violation{{"/l/1", "nothing is allowed here"}, {"", "missing property 'm'"}}},
		{"recursive", `{"properties":{"next":{"$ref":"#"},"v":{"type":"integer"}}}`, `{"next":{"next":{"v":"x"}}}`, []Violation{{"/next/next/v", "want integer, but got string"}}},
		{"above 2^53", `{"properties":{"a":{"maximum":9007199254740992},"b":{"const":9007199254740993}}}`, `{"a":9007199254740993,"b":9007199254740992}`,
			[]Violation{{"/a", "must be at most 9007199254740992"}, {"/b", "must be 9007199254740993"}}},
		{"each once", `{"allOf":[{"required":["a"]},{"required":["a"]}]}`, `{}`, []Violation{{"", "missing property 'a'"}}},
		{"format is an annotation", `{"properties":{"a":{"format":"email"}}}`, `{"a":"x"}`, nil},
		{"all is forbidden", `false`, `{}`, []Violation{{"", "nothing is allowed here"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Compile(json.RawMessage(tt.schema))
			if s.Broken() != nil {
				t.Fatalf("broken: %v", s.Broken())
			}
			if diff := cmp.Diff(tt.want, s.Validate(json.RawMessage(tt.args))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAtMost20Violations(t *testing.T) {
	s := Compile(json.RawMessage(`{"items":{"type":"string"}}`))
	if got := s.Validate(json.RawMessage("[" + strings.Repeat("1,", 500) + "1]")); len(got) != maxReported {
		t.Errorf("%d violations, want %d", len(got), maxReported)
	}
}

func TestBroken(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"not JSON", `{"type":`, "it is not valid JSON at byte 8: want a value"},
		{"more than JSON", `{} {}`, "it goes on after the JSON value, at byte 3"},
		{"no schema", `"string"`, "at #: a schema must be an object, true or false"},
		{"null", `null`, "at #: a schema must be an object, true or false"},
		{"unknown type", `{"properties":{"a":{"type":"text"}}}`, "at #/properties/a/type: want the name of a type, or a list of them"},
		{"draft 3", `{"properties":{"a":{"required":true}}}`, "at #/properties/a/required: want a list of names"},
		{"draft 4", `{"exclusiveMinimum":true}`, "at #/exclusiveMinimum: want a number"},
		{"negative length", `{"minLength":-1}`, "at #/minLength: want a whole number, 0 or more"},
		{"multiple of zero", `{"multipleOf":0}`, "at #/multipleOf: want a number above 0 of at most 19 digits"},
		{"empty list", `{"allOf":[]}`, "at #/allOf: want a list of schemas"},
		{"unknown dialect", `{"$schema":"https://example.com/mine"}`, "at #/$schema: the dialect 'https://example.com/mine' is not known; want draft 2020-12 or 07"},
		{"remote", `{"properties":{"a/b":{"$ref":"https://example.com/s.json"}}}`, "at #/properties/a~1b/$ref: the reference 'https://example.com/s.json' leads out of the schema, and nothing is fetched"},
		{"file", `{"$ref":"file:///etc/passwd"}`, "at #/$ref: the reference 'file:///etc/passwd' leads out of the schema, and nothing is fetched"},
		{"nowhere", `{"$ref":"#/$defs/x"}`, "at #/$ref: the reference '#/$defs/x' leads nowhere"},
		{"lookahead", `{"pattern":"(?=a)b"}`, "at #/pattern: the pattern '(?=a)b' cannot be used: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
		{"endless", `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "at #/$defs/a: the schema refers to itself without end"},
		{"too large", `{"description":"` + strings.Repeat("x", maxBytes) + `"}`, "it has 131090 bytes, more than 131072"},
		{"too deep", strings.Repeat(`{"not":`, 40) + "{}" + strings.Repeat("}", 40), "it is nested too deeply, at byte 224"},
		{"too many values", `{"enum":[` + strings.Repeat("1,", maxValues) + `1]}`, "it has more than 5000 values"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Compile(json.RawMessage(tt.schema))
			if s.Broken() == nil || s.Broken().Error() != tt.want {
				t.Fatalf("broken = %v, want %s", s.Broken(), tt.want)
			}
			if v := s.Validate(json.RawMessage(`{"a":1}`)); v != nil {
				t.Errorf("a broken schema found %v", v)
			}
			if _, err := s.Check(json.RawMessage(`{}`)); err == nil {
				t.Error("Check says nothing of the broken schema")
			}
		})
	}
}

func TestUndecided(t *testing.T) {
	s := Compile(json.RawMessage(`{"type":"object"}`))
	for name, args := range map[string]string{
		"not JSON":  `{"a":}`,
		"too deep":  strings.Repeat("[", 300) + strings.Repeat("]", 300),
		"too large": "[" + strings.Repeat("1,", maxArgValues) + "1]",
	} {
		if v, err := s.Check(json.RawMessage(args)); v != nil || err == nil {
			t.Errorf("%s: %v, %v; want an error", name, v, err)
		}
	}
}

// The schemas of real servers are all usable.
func TestRealServers(t *testing.T) {
	count := 0
	for _, raw := range realSchemas(t) {
		count++
		s := Compile(raw.schema)
		if s.Broken() != nil {
			t.Errorf("%s: %v", raw.name, s.Broken())
		}
		s.Validate(json.RawMessage(`{"path":"x","query":1,"items":[{}],"options":null}`))
	}
	if count < 700 {
		t.Errorf("only %d schemas", count)
	}
}

type realSchema struct {
	name   string
	schema json.RawMessage
}

// realSchemas reads the tools of real servers from the shared test data, which
// is not part of the project; without it the test is skipped.
func realSchemas(tb testing.TB) (out []realSchema) {
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	files, _ := filepath.Glob(filepath.Join(dir, "real-servers", "*.tools.json"))
	if len(files) == 0 {
		tb.Skipf("the shared test data is not in %s", dir)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			tb.Fatal(err)
		}
		for _, t := range list.Tools {
			out = append(out, realSchema{filepath.Base(file) + ": " + t.Name, t.InputSchema})
		}
	}
	return out
}

func TestLazy(t *testing.T) {
	l := NewLazy(json.RawMessage(`{"required":["a"]}`))
	if first, second := l.Schema(), l.Schema(); first != second {
		t.Error("compiled twice")
	}
	if len(l.Schema().Validate(nil)) != 1 {
		t.Error("the schema was not used")
	}
}

const small = `{"type":"object","properties":{"a":{"type":"integer","minimum":0},"b":{"type":"string","maxLength":100},"c":{"enum":["x","y"]}},"required":["a"],"additionalProperties":false}`

func BenchmarkValidateSmall(b *testing.B) {
	s := Compile(json.RawMessage(small))
	args := json.RawMessage(`{"a":1,"b":"x"}`)
	b.ReportAllocs()
	for b.Loop() {
		if s.Validate(args) != nil {
			b.Fatal("does not fit")
		}
	}
}

func BenchmarkValidateMisfit(b *testing.B) {
	s := Compile(json.RawMessage(small))
	args := json.RawMessage(`{"a":"1","b":"x"}`)
	b.ReportAllocs()
	for b.Loop() {
		if s.Validate(args) == nil {
			b.Fatal("fits")
		}
	}
}

func BenchmarkValidateLarge(b *testing.B) {
	s := Compile(json.RawMessage(`{"properties":{"rows":{"items":{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}},"required":["id"]}}}}`))
	args := json.RawMessage(`{"rows":[` + strings.Repeat(`{"id":12345,"name":"somebody"},`, 9999) + `{"id":1}]}`)
	b.SetBytes(int64(len(args)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Check(args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompileReal(b *testing.B) {
	schemas := realSchemas(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		Compile(schemas[i%len(schemas)].schema)
	}
}

func Example() {
	s := Compile(json.RawMessage(`{"properties":{"path":{"type":"string"}},"required":["path"]}`))
	for _, v := range s.Validate(json.RawMessage(`{"path":7}`)) {
		fmt.Println(v.Path, v.Message)
	}
	// Output: /path want string, but got integer
}
