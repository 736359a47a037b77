package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/testutil/cputime"
	"mcpproxy/internal/testutil/volume"
)

// mostArguments is the maximum size of a call's arguments.
const mostArguments = 4 << 20

// filled returns an array of as many elements as fit into the arguments of a call.
func filled(element func(i int) string) string {
	var b strings.Builder
	for i := 0; ; i++ {
		next := element(i)
		if b.Len()+len(next)+200 > mostArguments {
			return "[" + b.String() + "0]"
		}
		b.WriteString(next + ",")
	}
}

// TestLargeArguments checks that arguments up to the limit are validated, whatever their form. A part that the schema
// does not constrain costs nothing, and a part that it checks once costs no more than reading it.
func TestLargeArguments(t *testing.T) {
	volume.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("the test reads 4 MB many times")
	}
	numbers := filled(func(i int) string { return fmt.Sprint(i) })
	digits := filled(func(int) string { return "0" })
	fractions := filled(func(i int) string { return fmt.Sprintf("%.6f", float64(i)/1e6) })
	words := strings.Replace(filled(func(i int) string { return fmt.Sprintf("%q", fmt.Sprint("word ", i)) }), ",0]", "]", 1)
	rows := strings.Replace(filled(func(i int) string {
		return fmt.Sprintf(`{"id":%d,"name":"somebody %d","tags":["a","b"],"score":%d.5,"parent":null}`, i, i, i%100)
	}), ",0]", "]", 1)
	text := `"` + strings.Repeat("a line of a file\\n", 200_000) + `"`
	members := "{" + strings.TrimSuffix(filled(func(i int) string { return fmt.Sprintf(`"k%d":%d`, i, i) })[1:], ",0]") + "}"
	deep := strings.Repeat(`{"a":[`, 25) + numbers[:3<<20] + "0]" + strings.Repeat("]}", 25)
	row := `{"type":"object","properties":{"id":{"type":"integer","minimum":0},"name":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"score":{"type":"number","maximum":100},"parent":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["id","name"]}`
	unusual := `"properties":{"mode":{"not":{"const":"x"},"pattern":"^r"},"x":{"type":["array","object","string"]}},"oneOf":[{"required":["mode"]},{"required":["url"]}]`
	tests := []struct {
		name, schema, value string
		full                bool // in full runs only
	}{
		{"the reported one", `{}`, "[" + strings.TrimSuffix(join(60_000, func(i int) string { return fmt.Sprint(i) }), ",") + "]", false},
		{"numbers, no schema looks", `{}`, numbers, true},
		{"digits, no schema looks", `true`, digits, true},
		{"rows, no schema looks", `{"type":"object"}`, rows, false},
		{"many members, no schema looks", `{"type":"object","additionalProperties":true}`, members, true},
		{"deep, no schema looks", `{"properties":{"x":{"description":"anything"}}}`, deep, false},
		{"an array", `{"properties":{"x":{"type":"array"}}}`, digits, true},
		{"integers", `{"properties":{"x":{"type":"array","items":{"type":"integer","minimum":0}}}}`, numbers, true},
		{"digits", `{"properties":{"x":{"type":"array","items":{"type":"integer"},"minItems":1}}}`, digits, true},
		{"integers or none", `{"properties":{"x":{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}}`, numbers, false},
		{"an embedding", `{"properties":{"x":{"type":"array","items":{"type":"number","exclusiveMaximum":100}}}}`, fractions, true},
		{"words", `{"properties":{"x":{"type":"array","items":{"type":"string","maxLength":100}}}}`, words, true},
		{"rows", `{"properties":{"x":{"type":"array","items":` + row + `}},"required":["x"]}`, rows, true},
		{"rows of a definition", `{"properties":{"x":{"type":"array","items":{"$ref":"#/$defs/Row"}}},"$defs":{"Row":` + row + `},"additionalProperties":false}`, rows, false},
		{"a text", `{"properties":{"x":{"anyOf":[{"type":"string","maxLength":5000000},{"type":"null"}]}}}`, text, true},
		{"a map", `{"properties":{"x":{"type":"object","additionalProperties":{"type":"integer"}}}}`, members, false},
		{"numbers beside what is unusual", `{` + unusual + `}`, digits, true},
		{"rows beside what is unusual", `{` + unusual + `}`, rows, false},
		{"members beside what is unusual", `{` + unusual + `}`, members, true},
		{"a text beside what is unusual", `{` + unusual + `}`, text, false},
		{"many identifiers, each once", `{"properties":{"x":{"uniqueItems":true,"items":{"type":"integer"}}}}`, "[" + join(3000, func(i int) string { return fmt.Sprint(i) }) + "]", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.full && !volume.IsFull() {
				t.Skip("a short run tests a similar case")
			}
			s := Compile(json.RawMessage(tt.schema))
			if s.BrokenError() != nil {
				t.Fatal(s.BrokenError())
			}
			args := json.RawMessage(`{"mode":"read","x":` + tt.value + `}`)
			if strings.Contains(tt.schema, "additionalProperties\":false") {
				args = json.RawMessage(`{"x":` + tt.value + `}`)
			}
			if len(args) > mostArguments || !json.Valid(args) {
				t.Fatalf("the test is wrong: %d bytes", len(args))
			}
			start := time.Now()
			v, err := s.CheckArguments(args)
			took := time.Since(start)
			if v != nil || err != nil {
				t.Errorf("%d bytes in %v: %v, %v", len(args), took, v, err)
			}
			t.Logf("%d KiB in %v", len(args)>>10, took)
		})
	}
}

// checkSome checks that the library finds the same violations in the complete arguments and in the part that the schema
// reads.
func checkSome(t *testing.T, s *Schema, args json.RawMessage) {
	t.Helper()
	if len(args) == 0 || s.root == nil {
		return
	}
	want, undecided := s.checkWithLibrary(args, budget)
	some, left, err := s.decodePartsToValidate(args, budget)
	if undecided != nil || err != nil {
		return
	}
	got, err := s.validateDecoded(some, left)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		shown, _ := json.Marshal(some)
		t.Errorf("%s: got %v, %v; want %v as in the complete arguments; decoded part %s", args, got, err, want, shown)
	}
}

// TestLargeArgumentsThatDoNotFit checks that a violation in large arguments is found even if the schema constrains
// little.
func TestLargeArgumentsThatDoNotFit(t *testing.T) {
	volume.SkipUnderRace(t)
	s := Compile(json.RawMessage(`{"properties":{"mode":{"enum":["r","w"]},"data":{"type":"array","minItems":2},"more":{"items":{"$ref":"#"}}},"required":["path"]}`))
	args := `{"mode":"x","other":` + filled(func(i int) string { return fmt.Sprint(i) })[:3<<20] + `0],"data":[` + strings.Repeat("0,", 200_000) + `0],"more":[{"data":[{}],"path":1,"mode":"r"}]}`
	v, err := s.CheckArguments(json.RawMessage(args))
	want := []Violation{{"", "missing property 'path'"}, {"/mode", `must be one of ["r","w"]`}, {"/more/0/data", "minItems: got 1, want 2"}}
	if err != nil || fmt.Sprint(v) != fmt.Sprint(want) {
		t.Errorf("got %v, %v; want %v", v, err, want)
	}
}

// TestLargeArgumentsAndHostileSchemas checks that large arguments with a hostile schema are validated within a bounded
// time.
func TestLargeArgumentsAndHostileSchemas(t *testing.T) {
	volume.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("the test reads 4 MB many times")
	}
	digits := filled(func(int) string { return "0" })
	either := func(n int, inner string) string { return `{"anyOf":[` + strings.Repeat(inner+",", n-1) + inner + `]}` }
	const most = volume.Slowdown * 250 * time.Millisecond
	for name, schema := range map[string]string{
		"each element in many ways":       `{"properties":{"x":{"items":` + either(300, `{"type":"string"}`) + `}}}`,
		"the array in many ways":          `{"properties":{"x":` + either(300, `{"items":{"type":"number","minimum":0,"maximum":-1}}`) + `}}`,
		"the object in many ways":         either(300, `{"properties":{"y":{"type":"string"}}}`),
		"alternatives in alternatives":    `{"properties":{"x":{"items":` + either(10, either(10, `{"minimum":1}`)) + `}}}`,
		"all of it for the library":       `{"properties":{"x":{"items":{"not":{"type":"string"}}}}}`,
		"all of it and nothing seen":      `{"unevaluatedProperties":false,"properties":{"x":true}}`,
		"each once":                       `{"properties":{"x":{"uniqueItems":true}}}`,
		"compared with what is large":     `{"properties":{"x":{"enum":[[0],[1],[2]]}}}`,
		"contained, and nowhere":          `{"properties":{"x":{"contains":{"minimum":1}}}}`,
		"many places that refer to all":   `{"properties":{"x":{"items":{"$ref":"#"}}},"allOf":[` + strings.Repeat(`{"properties":{"x":{"items":{"$ref":"#"}}}},`, 300) + `{"not":{"type":"string"}}]}`,
		"only steps over, at many levels": `{"properties":{"a":{"$ref":"#"}},"required":["zz"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := Compile(json.RawMessage(schema))
			args := `{"y":1,"x":` + digits + `}`
			if strings.Contains(name, "levels") {
				args = strings.Repeat(`{"a":`, 60) + args + strings.Repeat("}", 60)
			}
			took := time.Hour
			for range 3 { // repeats, because the machine may be busy
				start := cputime.Process()
				_, err := s.CheckArguments(json.RawMessage(args))
				if took = min(took, cputime.Process()-start); took <= most {
					t.Logf("%v: %v, %v", took, s.BrokenError(), err)
					return
				}
			}
			t.Errorf("took %v", took)
		})
	}
}
