package schema

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// oracle compiles a schema with another implementation.
func oracle(schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nil)
	if err := c.AddResource("mem:///schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("mem:///schema.json")
}

// What another implementation finds valid is valid here, and nothing else.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compareWithOracle(t, drawSchemas(t), drawValue(t, 3))
	})
}

func compareWithOracle(t *rapid.T, schema, args any) {
	raw, args2 := encode(t, schema), encode(t, args)
	want, err := oracle(raw)
	if err != nil {
		if strings.Contains(err.Error(), "cycle") {
			return
		}
		t.Fatalf("%s: the oracle says: %v", raw, err)
	}
	s := Compile(raw)
	if s.Broken() != nil {
		if strings.Contains(s.Broken().Error(), "without end") {
			return // the oracle finds these when they happen
		}
		t.Fatalf("%s: %v", raw, s.Broken())
	}
	doc, _ := jsonschema.UnmarshalJSON(bytes.NewReader(args2))
	valid := want.Validate(doc) == nil
	got, err := s.Check(args2)
	if err != nil || (len(got) == 0) != valid {
		t.Fatalf("schema %s\nargs %s\n%v %v, want valid = %v", raw, args2, got, err, valid)
	}
}

func encode(t *rapid.T, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

type object = map[string]any

// drawSchemas draws a schema with two definitions that it may refer to.
func drawSchemas(t *rapid.T) any {
	draft07 := rapid.Bool().Draw(t, "draft07")
	root := drawSchema(t, 3, draft07)
	s, ok := root.(object)
	if !ok {
		s = object{"not": root}
	}
	if _, isRef := s["$ref"]; isRef && draft07 {
		s = object{"allOf": []any{s}}
	}
	s["$defs"] = object{"a": drawSchema(t, 2, draft07), "b": drawSchema(t, 1, draft07)}
	if draft07 {
		s["definitions"] = s["$defs"]
		delete(s, "$defs")
		s["$schema"] = "http://json-schema.org/draft-07/schema#"
	}
	return s
}

func drawSchema(t *rapid.T, depth int, draft07 bool) any {
	if depth == 0 || rapid.IntRange(0, 9).Draw(t, "boolean") == 0 {
		return rapid.Bool().Draw(t, "verdict")
	}
	s := object{}
	for range rapid.IntRange(1, 4).Draw(t, "keywords") {
		addKeyword(t, s, depth, draft07)
	}
	if ref, ok := s["$ref"]; ok && draft07 { // all else is to be ignored, which the oracle does not quite do
		return object{"$ref": ref}
	}
	return s
}

var keywords = []string{"type", "enum", "const", "properties", "required", "additionalProperties", "patternProperties", "propertyNames",
	"minProperties", "items", "prefix", "contains", "uniqueItems", "maxItems", "minimum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "pattern", "allOf", "anyOf", "oneOf", "not", "if", "$ref", "dependent", "unevaluatedProperties", "unevaluatedItems"}

func addKeyword(t *rapid.T, s object, depth int, draft07 bool) {
	sub := func() any { return drawSchema(t, depth-1, draft07) }
	list := func() []any {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return drawSchema(t, depth-1, draft07) }), 1, 3).Draw(t, "list")
	}
	names := rapid.SampledFrom([]string{"a", "b", "c", "ä"})
	small := rapid.IntRange(0, 3)
	switch k := rapid.SampledFrom(keywords).Draw(t, "keyword"); k {
	case "type":
		s[k] = rapid.SampledFrom(typeNames[:]).Draw(t, "type")
	case "enum":
		v := drawValue(t, 1)
		s[k] = []any{v, []any{v}}
	case "const":
		s[k] = drawValue(t, 2)
	case "properties":
		s[k] = object{names.Draw(t, "name"): sub(), names.Draw(t, "name"): sub()}
	case "patternProperties":
		s[k] = object{rapid.SampledFrom([]string{"^a", "b|c", "."}).Draw(t, "pattern"): sub()}
	case "required":
		s[k] = []any{names.Draw(t, "name")}
	case "additionalProperties", "propertyNames", "items", "contains", "not":
		s[k] = sub()
	case "unevaluatedProperties", "unevaluatedItems":
		s[k] = sub() // no keyword in draft 07
	case "prefix":
		if k = "prefixItems"; draft07 {
			k = "items"
			s["additionalItems"] = sub()
		}
		s[k] = list()
	case "minProperties", "maxItems", "minLength", "maxLength":
		s[k] = small.Draw(t, "count")
	case "minimum", "exclusiveMaximum":
		s[k] = drawNumber(t)
	case "multipleOf":
		s[k] = rapid.SampledFrom([]json.Number{"1", "0.5", "3", "0.1", "7e-1"}).Draw(t, "multiple")
	case "uniqueItems":
		s[k] = rapid.Bool().Draw(t, "unique")
	case "pattern":
		s[k] = rapid.SampledFrom([]string{"^a", "b$", "^[a-c]+$", "ä"}).Draw(t, "pattern")
	case "allOf", "anyOf", "oneOf":
		s[k] = list()
	case "if":
		s["if"], s["then"], s["else"] = sub(), sub(), sub()
	case "$ref":
		where := "#/$defs/"
		if draft07 {
			where = "#/definitions/"
		}
		s[k] = where + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "definition")
	case "dependent":
		if draft07 {
			s["dependencies"] = object{"a": sub(), "b": []any{"c"}}
		} else {
			s["dependentSchemas"], s["dependentRequired"] = object{"a": sub()}, object{"b": []any{"c"}}
		}
	}
}

func drawNumber(t *rapid.T) json.Number {
	return rapid.SampledFrom([]json.Number{"0", "-0", "1", "1.0", "2", "3e0", "0.5", "-1.5", "10", "1e1", "9007199254740993", "9007199254740992",
		"1e30", "123456789012345678901234567890", "0.1", "21e-1"}).Draw(t, "number")
}

func drawValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 {
		kind %= 5
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2, 3:
		return drawNumber(t)
	case 4:
		return rapid.SampledFrom([]string{"", "a", "b", "ab", "cab", "ä", "a\"\\\n", "😀"}).Draw(t, "string")
	case 5:
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return drawValue(t, depth-1) }), 0, 4).Draw(t, "array")
	}
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "ä"}), rapid.Custom(func(t *rapid.T) any { return drawValue(t, depth-1) }), 0, 4).Draw(t, "object")
}

// Numbers compare and divide as rationals do.
func TestNumbers(t *testing.T) {
	literal := rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,22})?([eE][+-]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := literal.Draw(t, "a"), literal.Draw(t, "b")
		x, y := parseNumber([]byte(a)), parseNumber([]byte(b))
		p, _ := new(big.Rat).SetString(a)
		q, _ := new(big.Rat).SetString(b)
		if got := x.compare(&y); got != p.Cmp(q) {
			t.Fatalf("compare(%s, %s) = %d, want %d", a, b, got, p.Cmp(q))
		}
		if got := x.isInteger(); got != p.IsInt() {
			t.Fatalf("isInteger(%s) = %v", a, got)
		}
		if back, ok := new(big.Rat).SetString(x.String()); !ok || back.Cmp(p) != 0 {
			t.Fatalf("%s is shown as %s", a, x.String())
		}
		if y.negative || y.mantissa == 0 {
			return
		}
		if got, want := x.multipleOf(&y), new(big.Rat).Quo(p, q).IsInt(); got != want {
			t.Fatalf("multipleOf(%s, %s) = %v, want %v", a, b, got, want)
		}
	})
}

// What encoding/json reads is read here, to the same strings, and nothing else.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e+3,"x\u00e9\ud83d\ude00",true,null]}`, `[1,]`, `{"a":1 "b"}`, "\"\x01\"", `"\u12"`, `01`, `1.`, ` {} `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d document
		err := d.parse(data, 10_000, 1<<20)
		if valid := json.Valid(data); (err == nil) != valid {
			t.Fatalf("parse: %v, json.Valid: %v", err, valid)
		}
		var want string
		if err == nil && d.values[0].kind == '"' && json.Unmarshal(data, &want) == nil && !strings.ContainsRune(want, '\uFFFD') {
			if got := string(d.text(0)); got != want {
				t.Fatalf("text = %q, want %q", got, want)
			}
		}
	})
}

func FuzzSchema(f *testing.F) {
	for _, b := range bombs() {
		if len(b.schema) < 2000 && len(b.args) < 2000 {
			f.Add([]byte(b.schema), []byte(b.args))
		}
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		s := Compile(schema)
		v, err := s.Check(args)
		if s.Broken() != nil && err == nil || err != nil && v != nil || len(v) > maxReported {
			t.Fatalf("%v, %v, %v", s.Broken(), v, err)
		}
		for _, msg := range []error{s.Broken(), err} {
			if msg != nil && strings.Contains(msg.Error(), "failed: ") {
				t.Fatalf("a panic: %v", msg)
			}
		}
	})
}
