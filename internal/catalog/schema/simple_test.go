package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/volume"
	"pgregory.net/rapid"
)

// acceptsAlone returns the result of the simple form, and the library's result without a step limit.
func acceptsAlone(s *Schema, args string) (plain, library bool) {
	violations, err := s.checkWithLibrary(json.RawMessage(args), math.MaxInt)
	return s.certainlyAccepts([]byte(args)), violations == nil && err == nil
}

func TestPlainSchemas(t *testing.T) {
	const plainly, not = true, false
	tests := []struct {
		schema string
		want   bool
	}{
		{`{"type":"object"}`, plainly},
		{`{"type":["object"],"properties":{}}`, plainly},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","title":"t","description":"d","default":{},"$comment":"c"}`, plainly},
		{`{"type":"object","properties":{"a":true,"b":{},"c":{"type":["integer","null"],"minimum":-1,"maximum":9007199254740991}},"required":["a","z"]}`, plainly},
		{`{"type":"object","properties":{"l":{"type":"array","items":{"enum":["x",1,null]},"minItems":1}},"additionalProperties":false}`, plainly},
		{`{"type":"object","properties":` + strings.Repeat(`{"o":{"properties":`, 8) + `{}` + strings.Repeat("}}", 8) + `}`, plainly},
		{`{"type":"object","properties":` + strings.Repeat(`{"o":{"properties":`, 13) + `{}` + strings.Repeat("}}", 13) + `}`, not},
		{`{}`, plainly},
		{`true`, plainly},
		{`{"type":["object","string"]}`, plainly},
		{`{"type":"object","properties":{"a":{"exclusiveMinimum":0.25,"exclusiveMaximum":9e15}}}`, plainly},
		{`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/b"}]},"b":{"type":"null"}}}`, plainly},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","allOf":[{"$ref":"#/definitions/a"}],"definitions":{"a":{},"b":{"pattern":"x"}}}`, plainly},
		{`{"properties":{"a":{"oneOf":[{"type":"string"},{"type":["array","null"]}]}}}`, plainly},
		{`{"properties":{"a":{"oneOf":[{"type":"string"},{"type":["string","null"]}]}}}`, not},
		{`{"properties":{"a":{"oneOf":[{"type":"integer"},{"type":"number"}]}}}`, not},
		{`{"properties":{"a":{"oneOf":[{"type":"integer"},{"const":"x"}]}}}`, not},
		{`{"properties":{"a":{"anyOf":[{"type":"string"}],"oneOf":[{"type":"string"}]}}}`, not},
		{`{"properties":{"next":{"$ref":"#/$defs/a"}},"$defs":{"a":{"properties":{"next":{"$ref":"#/$defs/a"}}}}}`, not},
		{`{"properties":{"a":{"$ref":"#/properties/b"},"b":{}}}`, not},
		{`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$id":"b","type":"string"}}}`, not},
		{`{"type":"object","x-mine":1}`, not},
		{`{"type":"object","$id":"a"}`, not},
		{`{"type":"object","minProperties":1}`, not},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, plainly},
		{`{"type":"object","additionalProperties":false,"required":["a"]}`, not},
		{`{"type":"object","properties":{"a":false}}`, not},
		{`{"type":"object","properties":{"a":{"$schema":"http://json-schema.org/draft-07/schema#"}}}`, not},
		{`{"type":"object","properties":{"a":{"pattern":"x"}}}`, not},
		{`{"type":"object","properties":{"a":{"minimum":1.5}}}`, plainly},
		{`{"type":"object","properties":{"a":{"minimum":1e2}}}`, plainly},
		{`{"type":"object","properties":{"a":{"maximum":9007199254740992}}}`, not},
		{`{"type":"object","properties":{"a":{"enum":["a"],"const":"a"}}}`, not},
		{`{"type":"object","properties":{"a":{"prefixItems":[true]}}}`, not},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"items":[true]}}}`, not},
		{`{"type":"object","properties":{"a":{"type":"text"}}}`, not}, // broken
	}
	for _, tt := range tests {
		if s := Compile(json.RawMessage(tt.schema)); (s.simple != nil) != tt.want {
			t.Errorf("%s: has a simple form: got %v (broken: %v)", tt.schema, !tt.want, s.BrokenError())
		}
	}
}

func TestPlainValidation(t *testing.T) {
	const yes, unsure = true, false
	s := Compile(json.RawMessage(`{"type":"object","required":["i"],"additionalProperties":false,"properties":{
		"i":{"type":"integer","minimum":-3,"maximum":3},"s":{"type":"string","minLength":2,"maxLength":3},
		"e":{"enum":["\u00e9","x/y",true,2]},"l":{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":2},
		"o":{"type":"object","properties":{"a":{"type":"null"}},"required":["a"]},"any":{}}}`))
	if s.simple == nil {
		t.Fatal("the schema has no simple form")
	}
	for args, want := range map[string]bool{
		`{"i":3}`: yes, ` { "i" : -3 } `: yes, `{"\u0069":1}`: yes, `{"i":-0}`: yes,
		`{"i":4}`: unsure, `{"i":-4}`: unsure, `{"i":1.0}`: unsure, `{"i":1e0}`: unsure, `{"i":"1"}`: unsure, `{}`: unsure,
		`{"i":1,"b":1}`: unsure, `{"i":1,"i":1}`: unsure, `{"i":1,"I":1}`: unsure,
		`{"i":1,"s":"日本語"}`: yes, `{"i":1,"s":"\u65e5\ud83d\ude00"}`: yes, `{"i":1,"s":"日"}`: unsure, `{"i":1,"s":"日本語1"}`: unsure, `{"i":1,"s":"\u65e5"}`: unsure,
		`{"i":1,"e":"é"}`: yes, `{"i":1,"e":"\u00E9"}`: yes, `{"i":1,"e":"x\/y"}`: yes, `{"i":1,"e":true}`: yes,
		`{"i":1,"e":false}`: unsure, `{"i":1,"e":2}`: unsure, `{"i":1,"e":"e\u0301"}`: unsure, `{"i":1,"e":null}`: unsure,
		`{"i":1,"l":[true,false]}`: yes, `{"i":1,"l":[]}`: unsure, `{"i":1,"l":[true,true,true]}`: unsure, `{"i":1,"l":[0]}`: unsure,
		`{"i":1,"o":{"a":null,"b":[{}]}}`: yes, `{"i":1,"o":{"b":null}}`: unsure,
		`{"i":1,"any":[1,"x",{"y":null}]}`: yes, `{"i":1,"any":1.5}`: yes, `{"i":1,"any":1e400}`: unsure,
		`{"i":1}}`: unsure, `{"i":1`: unsure, `{"i":1,}`: unsure, `{"i":1 2}`: unsure, `[]`: unsure, `null`: unsure, ``: unsure, "{\"i\":1,\"any\":\"\xff\"}": unsure,
		`{"i":1,"any":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`: yes,
		`{"i":1,"any":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`: unsure,
		`{"i":1,"any":[` + strings.Repeat("1,", 20_000) + `1]}`:                   yes,
	} {
		plain, library := acceptsAlone(s, args)
		if plain != want || plain && !library {
			t.Errorf("%.60s: simple form %v, library %v", args, plain, library)
		}
	}
}

// drawn is a generated schema with arguments for it.
type drawn struct {
	schema *Schema
	args   []string
}

func draw(t *rapid.T) drawn {
	d := drawn{schema: Compile(json.RawMessage(`{"$defs":{"d":` + drawSchema(t, 2) + `},` + drawKeywords(t, 2, `"type":"object"`+pick(t, ``, `,"$schema":"http://json-schema.org/draft-07/schema#"`, `,"$schema":"http://json-schema.org/draft-04/schema#"`))))}
	for range 8 {
		d.args = append(d.args, drawObject(t, 3))
	}
	return d
}

// TestPlainIsSound checks that arguments that the simple form accepts are valid for the library, too.
func TestPlainIsSound(t *testing.T) {
	gen := rapid.Custom(draw)
	rapid.Check(t, func(t *rapid.T) {
		d := gen.Draw(t, "drawn")
		if d.schema.simple == nil {
			return
		}
		for _, args := range d.args {
			if plain, library := acceptsAlone(d.schema, args); plain && !library {
				t.Fatalf("the simple form accepts arguments that the library rejects: %s", args)
			}
		}
	})
}

// TestGeneratedSchemasArePlain checks that the schemas that TestPlainIsSound generates often have a simple form, which
// often accepts.
func TestGeneratedSchemasArePlain(t *testing.T) {
	gen := rapid.Custom(draw)
	plains, accepted := 0, 0
	for seed := range 100 {
		d := gen.Example(seed)
		if d.schema.simple == nil {
			continue
		}
		plains++
		for _, args := range d.args {
			if d.schema.certainlyAccepts([]byte(args)) {
				accepted++
			}
		}
	}
	if plains < 30 || accepted < 60 {
		t.Errorf("got only %d simple schemas and %d accepted arguments", plains, accepted)
	}
}

func pick(t *rapid.T, from ...string) string { return rapid.SampledFrom(from).Draw(t, "pick") }

func drawSchema(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 9).Draw(t, "leaf") == 0 {
		return pick(t, `true`, `{}`, `{"type":"string"}`, `{"type":["integer","null"]}`)
	}
	kind := pick(t, `"type":"string"`, `"type":"integer"`, `"type":"number"`, `"type":"array"`, `"type":"object"`, `"type":["boolean","string"]`, `"title":"any"`)
	return `{` + drawKeywords(t, depth, kind)
}

// drawKeywords draws the keywords of a schema in addition to its type. Some of them have no simple form.
func drawKeywords(t *rapid.T, depth int, kind string) string {
	out := kind
	for _, keyword := range rapid.SliceOfNDistinct(rapid.IntRange(0, 11), 0, 5, rapid.ID).Draw(t, "keywords") {
		n := rapid.IntRange(0, 3).Draw(t, "n")
		switch keyword {
		case 0, 1, 2, 3, 4, 5:
			name := []string{"minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"}[keyword]
			out += fmt.Sprintf(`,%q:%d`, name, n)
		case 6:
			out += `,"enum":` + pick(t, `["a","\n",true]`, `["",false,1]`, `[null,"é"]`)
		case 7:
			out += `,"const":` + pick(t, `"a"`, `true`, `1`, `null`)
		case 8:
			out += `,"items":` + drawSchema(t, depth-1)
		case 9:
			out += fmt.Sprintf(`,"properties":{"a":%s,"b":%s}`, drawSchema(t, depth-1), drawSchema(t, depth-1))
		case 10:
			out += `,"required":` + pick(t, `[]`, `["a"]`, `["a","b"]`, `["c"]`)
		case 11:
			out += `,` + pick(t, `"anyOf":[`+drawSchema(t, depth-1)+`,`+drawSchema(t, depth-1)+`]`, `"allOf":[`+drawSchema(t, depth-1)+`]`,
				`"oneOf":[{"type":"string","minLength":2},{"type":["null","integer"],"exclusiveMinimum":0.5}]`, `"$ref":"#/$defs/d"`,
				`"additionalProperties":`+drawSchema(t, depth-1), `"additionalProperties":false`, `"additionalProperties":true`, `"format":"email"`, `"uniqueItems":true`)
		}
	}
	return out + `}`
}

func drawValue(t *rapid.T, depth int) string {
	switch n := rapid.IntRange(0, 11).Draw(t, "kind"); {
	case n < 4:
		return pick(t, `"a"`, `""`, `"\n"`, `"é"`, `"\u0061"`, `"\ud83d\ude00b"`, `"日本語"`)
	case n < 7:
		return pick(t, `0`, `1`, `-1`, `2`, `3`, `4`, `1.0`, `1e0`, `-0`, `9007199254740993`)
	case n < 9 || depth == 0:
		return pick(t, `true`, `false`, `null`)
	case n < 10:
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return drawValue(t, depth-1) }), 0, 4).Draw(t, "list")
		return `[` + strings.Join(list, " , ") + `]`
	}
	return drawObject(t, depth-1)
}

func drawObject(t *rapid.T, depth int) string {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{`a`, `b`, `c`, `\u0061`}), 0, 3, rapid.ID).Draw(t, "names")
	for i, name := range names {
		names[i] = `"` + name + `":` + drawValue(t, max(depth, 0))
	}
	return `{` + strings.Join(names, ",") + `}`
}

func FuzzPlain(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"string","maxLength":3},"b":{"enum":["x",true]}},"required":["a"]}`, []byte(`{"a":"\u00e9","b":true}`))
	f.Add(`{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer","minimum":1},"maxItems":2}},"additionalProperties":false}`, []byte(`{"l":[1,2]}`))
	f.Fuzz(func(t *testing.T, schema string, args []byte) {
		s := Compile(json.RawMessage(schema))
		if s.simple == nil {
			return
		}
		if plain, library := acceptsAlone(s, string(args)); plain && !library {
			t.Errorf("the simple form accepts arguments that the library rejects: %s, %q", schema, args)
		}
	})
}

// TestPlainNumbers checks that numbers that are not written as integers are compared after rounding, but never at a
// limit.
func TestPlainNumbers(t *testing.T) {
	for schema, values := range map[string]map[string]bool{
		`"minimum":0,"maximum":1`:                   {"0": true, "1": true, "0.5": true, "1e-9": true, "1e0": false, "1.0": false, "2": false, "-0.1": false, "1.0000000000000000000001": false},
		`"exclusiveMinimum":0,"exclusiveMaximum":2`: {"0": false, "1": true, "2": false, "0.0001": true, "1.9999": true, "1.99999999999999999999": false},
		`"minimum":0.1,"maximum":1.5`:               {"0": false, "1": true, "2": false, "0.1": false, "0.11": true, "1.49": true},
		`"minimum":1.00000000000000000000001`:       {"1": false, "2": true, "1.5": true},
		`"type":"integer"`:                          {"1": true, "1.5": false, "1.0": false, "12345678901234567890": false},
		`"type":["integer","number"]`:               {"1": true, "1.5": true, "12345678901234567890": true},
	} {
		s := Compile(json.RawMessage(`{"properties":{"x":{` + schema + `}}}`))
		for value, want := range values {
			plain, library := acceptsAlone(s, `{"x":`+value+`}`)
			if plain != want || plain && !library {
				t.Errorf("%s: simple form %v for %s, library %v", schema, plain, value, library)
			}
		}
	}
}

// TestRealServersArePlain checks that most schemas of real servers have a simple form.
func TestRealServersArePlain(t *testing.T) {
	volume.SkipUnderRace(t)
	schemas, count := realSchemas(t), 0
	for _, raw := range schemas {
		if Compile(raw.schema).simple != nil {
			count++
		}
	}
	t.Logf("%d of %d have a simple form", count, len(schemas))
	if count < len(schemas)*19/20 {
		t.Errorf("only %d of %d have a simple form", count, len(schemas))
	}
}

func BenchmarkCheckText(b *testing.B) {
	const text = `{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}},"required":["text"]}`
	args := json.RawMessage(`{"text":"a short text to echo","n":7}`)
	run := func(b *testing.B, s *Schema) {
		b.ReportAllocs()
		for b.Loop() {
			if v, err := s.CheckArguments(args); v != nil || err != nil {
				b.Fatal("the arguments are rejected")
			}
		}
	}
	b.Run("plain", func(b *testing.B) { run(b, Compile(json.RawMessage(text))) })
	b.Run("library", func(b *testing.B) {
		s := Compile(json.RawMessage(text))
		s.simple = nil
		run(b, s)
	})
}
