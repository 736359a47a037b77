package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
		{"missing", `{"required":["path","mode"]}`, `{}`, []Violation{{"", "missing properties 'path', 'mode'"}}},
		{"type", `{"properties":{"path":{"type":"string"}}}`, `{"path":5}`, []Violation{{"/path", "got number, want string"}}},
		{"types", `{"properties":{"a":{"type":["string","null"]}}}`, `{"a":1.5}`, []Violation{{"/a", "got number, want null or string"}}},
		{"integer that is none", `{"properties":{"a":{"type":"integer"}}}`, `{"a":1.5}`, []Violation{{"/a", "got number, want integer"}}},
		{"integer with a fraction of zero", `{"properties":{"a":{"type":"integer"}}}`, `{"a":1.50e1}`, nil},
		{"nested", `{"properties":{"l":{"items":{"required":["x"],"properties":{"y":{"type":"boolean"}}}},"a":{"minLength":2}}}`,
			`{"l":[{"x":1},{"y":0}],"a":"x"}`, []Violation{{"/a", "minLength: got 1, want 2"}, {"/l/1", "missing property 'x'"}, {"/l/1/y", "got number, want boolean"}}},
		{"escaped pointer", `{"properties":{"a/b~c":{"type":"null"}}}`, `{"a/b~c":1}`, []Violation{{"/a~1b~0c", "got number, want null"}}},
		{"additional", `{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1,"c":2,"b":3}`, []Violation{{"", "additional properties 'b', 'c' not allowed"}}},
		{"enum", `{"properties":{"m":{"enum":["r","w",null]}}}`, `{"m":"x"}`, []Violation{{"/m", `must be one of ["r","w",null]`}}},
		{"const", `{"properties":{"m":{"const":{"a":[1]}}}}`, `{"m":{"a":[2]}}`, []Violation{{"/m", `must be {"a":[1]}`}}},
		{"bounds", `{"items":{"minimum":1,"exclusiveMaximum":3,"multipleOf":0.5}}`, `[0,3,1.2,2.5]`,
			[]Violation{{"/0", "minimum: got 0, want 1"}, {"/1", "exclusiveMaximum: got 3, want 3"}, {"/2", "multipleOf: got 1.2, want 0.5"}}},
		{"pattern", `{"properties":{"a":{"pattern":"^\\d+$"}}}`, `{"a":"x1"}`, []Violation{{"/a", `must match the pattern ^\d+$`}}},
		{"characters, not bytes", `{"properties":{"a":{"maxLength":3}}}`, `{"a":"日本語"}`, nil},
		{"sizes", `{"maxProperties":1,"properties":{"l":{"minItems":2}}}`, `{"l":[1],"m":1}`,
			[]Violation{{"", "maxProperties: got 2, want 1"}, {"/l", "minItems: got 1, want 2"}}},
		{"unique", `{"properties":{"l":{"uniqueItems":true}}}`, `{"l":[{"a":1,"b":2},3,{"b":2.0,"a":1}]}`, []Violation{{"/l", "items at 0 and 2 are equal"}}},
		{"anyOf of types", `{"properties":{"a":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/n"}]}},"$defs":{"n":{"type":"null"}}}`, `{"a":1}`,
			[]Violation{{"/a", "got number, want null or string"}}},
		{"anyOf with one candidate", `{"properties":{"a":{"anyOf":[{"type":"null"},{"type":"object","required":["x"]}]}}}`, `{"a":{}}`,
			[]Violation{{"/a", "missing property 'x'"}}},
		{"oneOf, by what is nearest", `{"oneOf":[{"properties":{"k":{"const":"b"}}},{"properties":{"k":{"const":"a"},"n":{"minimum":2}},"required":["m"]}]}`, `{"k":"a","n":1}`,
			[]Violation{{"", "fits none of the 2 alternatives; the nearest one requires:"}, {"", "missing property 'm'"}, {"/n", "minimum: got 1, want 2"}}},
		{"oneOf twice", `{"oneOf":[{"type":"object"},{"required":["a"]}]}`, `{"a":1}`, []Violation{{"", "'oneOf' failed, subschemas 0, 1 matched"}}},
		{"not", `{"properties":{"a":{"not":{"type":"string"}}}}`, `{"a":"x"}`, []Violation{{"/a", "is excluded by the schema"}}},
		{"conditional", `{"if":{"properties":{"k":{"const":1}}},"then":{"required":["a"]},"else":{"required":["b"]}}`, `{"k":1}`, []Violation{{"", "missing property 'a'"}}},
		{"property names", `{"propertyNames":{"maxLength":2}}`, `{"bcd":1,"abc":1}`, []Violation{{"", "invalid propertyName 'abc'"}, {"", "invalid propertyName 'bcd'"}}},
		{"property names further in", `{"additionalProperties":{"propertyNames":{"maxLength":2}}}`, `{"a":{"abc":1},"b":{},"c":{}}`, []Violation{{"", "invalid propertyName 'abc'"}}},
		{"dependent", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []Violation{{"", "properties 'b' required, if 'a' exists"}}},
		{"unevaluated", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, []Violation{{"/b", "nothing is allowed here"}}},
		{"draft 07", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"l":{"items":[{"type":"string"}],"additionalItems":false}},"dependencies":{"l":["m"]}}`,
			`{"l":["x",1]}`, []Violation{{"", "properties 'm' required, if 'l' exists"}, {"/l", "last 1 additionalItem(s) not allowed"}}},
		{"draft 04", `{"$schema":"http://json-schema.org/draft-04/schema#","items":{"minimum":1,"exclusiveMinimum":true}}`, `[1]`, []Violation{{"/0", "exclusiveMinimum: got 1, want 1"}}},
		{"recursive", `{"properties":{"next":{"$ref":"#"},"v":{"type":"integer"}}}`, `{"next":{"next":{"v":"x"}}}`, []Violation{{"/next/next/v", "got string, want integer"}}},
		{"dynamic", `{"$ref":"#/$defs/list","$defs":{"mine":{"$dynamicAnchor":"element","type":"string"},"list":{"$id":"list","items":{"$dynamicRef":"#element"},"$defs":{"any":{"$dynamicAnchor":"element"}}}}}`,
			`[1]`, []Violation{{"/0", "got number, want string"}}},
		{"above 2^53", `{"properties":{"a":{"maximum":9007199254740992},"b":{"const":9007199254740993}}}`, `{"a":9007199254740992,"b":9007199254740992}`,
			[]Violation{{"/b", "must be 9007199254740993"}}},
		{"bound above 2^53", `{"maximum":9007199254740992}`, `9007199254740993`, []Violation{{"", "maximum: got 9.007199254740992×10¹⁵, want 9.007199254740992×10¹⁵"}}},
		{"each once", `{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"},{"required":["a"]}],"$defs":{"a":{"required":["a"]}}}`, `{}`, []Violation{{"", "missing property 'a'"}}},
		{"indexes in order", `{"items":{"type":"null"}}`, `[null,1,2,null,null,null,null,null,null,null,10]`, []Violation{{"/1", "got number, want null"}, {"/2", "got number, want null"}, {"/10", "got number, want null"}}},
		{"format is an annotation", `{"properties":{"a":{"format":"email"}}}`, `{"a":"x"}`, nil},
		{"format is one in draft 07, too", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"format":"email"}}}`, `{"a":"x"}`, nil},
		{"content is an annotation", `{"properties":{"a":{"contentMediaType":"application/json","contentEncoding":"base64"}}}`, `{"a":"?"}`, nil},
		{"all is forbidden", `false`, `{}`, []Violation{{"", "nothing is allowed here"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Compile(json.RawMessage(tt.schema))
			if s.BrokenError() != nil {
				t.Fatalf("broken: %v", s.BrokenError())
			}
			if diff := cmp.Diff(tt.want, s.Validate(json.RawMessage(tt.args))); diff != "" {
				t.Error(diff)
			}
			checkSome(t, s, json.RawMessage(tt.args))
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
		{"not JSON", `{"type":`, "it is not valid JSON: unexpected EOF"},
		{"more than JSON", `{} {}`, "it is not valid JSON: invalid character after top-level value"},
		{"no schema", `"string"`, "at #: got string, want boolean or object"},
		{"null", `null`, "at #: got null, want boolean or object"},
		{"unknown type", `{"properties":{"a":{"type":"text"}}}`, `at #/properties/a/type: must be one of ["array","boolean","integer","null","number","object","string"]`},
		{"draft 3", `{"properties":{"a":{"required":true}}}`, "at #/properties/a/required: got boolean, want array"},
		{"draft 4", `{"exclusiveMinimum":true}`, "at #/exclusiveMinimum: got boolean, want number"},
		{"negative length", `{"minLength":-1}`, "at #/minLength: minimum: got -1, want 0"},
		{"multiple of zero", `{"multipleOf":0}`, "at #/multipleOf: exclusiveMinimum: got 0, want 0"},
		{"empty list", `{"allOf":[]}`, "at #/allOf: minItems: got 0, want 1"},
		{"unknown dialect", `{"$schema":"https://example.com/mine"}`, `failing loading "https://example.com/mine": nothing is fetched`},
		{"remote", `{"properties":{"a/b":{"$ref":"https://example.com/s.json"}}}`, `failing loading "https://example.com/s.json": nothing is fetched`},
		{"file", `{"$ref":"file:///etc/passwd"}`, `failing loading "file:///etc/passwd": nothing is fetched`},
		{"relative", `{"$ref":"other.json"}`, `failing loading "schema:///other.json": nothing is fetched`},
		{"nowhere", `{"$ref":"#/$defs/x"}`, `json-pointer in "#/$defs/x" not found`},
		{"lookahead", `{"pattern":"(?=a)b"}`, "at #/pattern: is not a valid regex: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
		{"endless", `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, errTooComplex.Error()},
		{"too large", `{"description":"` + strings.Repeat("x", maxBytes) + `"}`, errTooLarge.Error()},
		{"too deep", strings.Repeat(`{"not":`, 40) + "{}" + strings.Repeat("}", 40), errTooLarge.Error()},
		{"too long a number", `{"minimum":1e400}`, errTooLarge.Error()},
		{"too many values", `{"enum":[` + strings.Repeat("1,", 6000) + `1]}`, errTooComplex.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Compile(json.RawMessage(tt.schema))
			if s.BrokenError() == nil || s.BrokenError().Error() != tt.want {
				t.Fatalf("broken = %v, want %s", s.BrokenError(), tt.want)
			}
			if v := s.Validate(json.RawMessage(`{"a":1}`)); v != nil {
				t.Errorf("a broken schema returned violations: %v", v)
			}
			if _, err := s.CheckArguments(json.RawMessage(`{}`)); err == nil {
				t.Error("CheckArguments does not report the broken schema")
			}
		})
	}
}

func TestUndecided(t *testing.T) {
	s := Compile(json.RawMessage(`{"type":["object","array","string"],"maxLength":9000000,"items":{"not":{"type":"string"}},"pattern":"^x*$"}`))
	for name, args := range map[string]string{
		"not JSON":  `{"a":}`,
		"too deep":  strings.Repeat("[", 300) + strings.Repeat("]", 300),
		"too large": "[" + strings.Repeat("1,", budget) + "1]",
		"too long":  `"` + strings.Repeat("x", budget*bytesPerStep) + `"`,
		"number":    "[1e400]",
		"power":     "[1e-99999999999999999999]",
	} {
		if v, err := s.CheckArguments(json.RawMessage(args)); v != nil || err == nil {
			t.Errorf("%s: %v, %v; want an error", name, v, err)
		}
	}
}

// TestConcurrent checks that validations of one schema can run at the same time. A validation that exceeds its limit
// does not affect the others.
func TestConcurrent(t *testing.T) {
	s := Compile(json.RawMessage(`{"items":{"anyOf":[{"type":"null"},{"items":{"$ref":"#/items"}}]}}`))
	heavy := json.RawMessage("[" + strings.Repeat("[],", 30_000) + "[]]")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5 {
				if _, err := s.CheckArguments(heavy); err != errUndecided {
					t.Errorf("heavy: %v", err)
				}
				if v, err := s.CheckArguments(json.RawMessage(`[[[null]]]`)); v != nil || err != nil {
					t.Errorf("light: %v, %v", v, err)
				}
			}
		})
	}
	group.Wait()
}

// TestMeterIsCalled checks that the library calls the format before it descends into a value. The limits of this
// package depend on that.
func TestMeterIsCalled(t *testing.T) {
	for _, schema := range []string{`{"properties":{"a":{"allOf":[{"minProperties":1}]}}}`, `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":{"minProperties":1}}}`} {
		s := Compile(json.RawMessage(schema))
		s.meter.left = budget
		if err := s.root.Validate(map[string]any{"a": map[string]any{"b": true}}); err != nil || budget-s.meter.left < 4 {
			t.Errorf("%s: got %v after %d steps", schema, err, budget-s.meter.left)
		}
	}
}

// TestRealServers checks that the schemas of all real servers are usable.
func TestRealServers(t *testing.T) {
	count := 0
	for _, raw := range realSchemas(t) {
		count++
		s := Compile(raw.schema)
		if s.BrokenError() != nil {
			t.Errorf("%s: got %v", raw.name, s.BrokenError())
		}
		s.Validate(json.RawMessage(`{"path":"x","query":1,"items":[{}],"options":null}`))
	}
	if count < 700 {
		t.Errorf("got only %d schemas", count)
	}
}

type realSchema struct {
	name   string
	schema json.RawMessage
}

// realSchemas returns the schemas of real servers from the shared test data, which is not part of the project. It skips
// the test if the data is missing.
func realSchemas(tb testing.TB) (out []realSchema) {
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../../shared"
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

const small = `{"type":"object","properties":{"a":{"type":"integer","minimum":0},"b":{"type":"string","maxLength":100},"c":{"enum":["x","y"]}},"required":["a"],"additionalProperties":false}`

func BenchmarkValidateSmall(b *testing.B) {
	s := Compile(json.RawMessage(small))
	args := json.RawMessage(`{"a":1,"b":"x"}`)
	b.ReportAllocs()
	for b.Loop() {
		if s.Validate(args) != nil {
			b.Fatal("the arguments are rejected")
		}
	}
}

func BenchmarkValidateMisfit(b *testing.B) {
	s := Compile(json.RawMessage(small))
	args := json.RawMessage(`{"a":"1","b":"x"}`)
	b.ReportAllocs()
	for b.Loop() {
		if s.Validate(args) == nil {
			b.Fatal("the arguments are accepted")
		}
	}
}

func BenchmarkValidateLarge(b *testing.B) {
	s := Compile(json.RawMessage(`{"properties":{"rows":{"items":{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}},"required":["id"]}}}}`))
	args := json.RawMessage(`{"rows":[` + strings.Repeat(`{"id":12345,"name":"somebody"},`, 2499) + `{"id":1}]}`)
	b.SetBytes(int64(len(args)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.CheckArguments(args); err != nil {
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
	// Output: /path got number, want string
}

// Validate returns the violations of CheckArguments and ignores the case that it cannot decide.
func (s *Schema) Validate(args json.RawMessage) []Violation {
	v, _ := s.CheckArguments(args)
	return v
}

// TestManyRequiredMembers checks that each member is required, however many there are.
func TestManyRequiredMembers(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 66, 200} {
		names, args := make([]string, n), make([]string, n)
		for i := range n {
			names[i], args[i] = fmt.Sprintf(`"m%d"`, i), fmt.Sprintf(`"m%d":1`, i)
		}
		s := Compile(json.RawMessage(`{"required":[` + strings.Join(names, ",") + `]}`))
		if found := s.Validate(json.RawMessage("{" + strings.Join(args, ",") + "}")); len(found) > 0 {
			t.Errorf("all of %d: %v", n, found)
		}
		for i := range n {
			rest := append(append([]string{}, args[:i]...), args[i+1:]...)
			if found := s.Validate(json.RawMessage("{" + strings.Join(rest, ",") + "}")); len(found) != 1 {
				t.Errorf("without member %d of %d: %v", i, n, found)
			}
		}
	}
}
