package ops

import (
	"fmt"
	"strings"
	"testing"
)

func TestSignature(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"no schema", ``, `f()`},
		{"no parameters", `{"type":"object"}`, `f()`},
		{"required first, in the server's order", `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"},"m":{"type":"boolean"}},"required":["m","a"]}`,
			`f(a: integer, m: boolean, z?: string)`},
		{"enum and default", `{"properties":{"state":{"enum":["open","closed",null],"default":"open"},"n":{"type":"number","default":1.50}}}`,
			`f(state?: "open"|"closed"|null = "open", n?: number = 1.50)`},
		{"const", `{"properties":{"kind":{"const":"a"}},"required":["kind"]}`, `f(kind: "a")`},
		{"arrays", `{"properties":{"ids":{"type":"array","items":{"type":"integer"}},"some":{"type":"array"},"mixed":{"type":"array","items":{"type":["string","null"]}}}}`,
			`f(ids?: integer[], some?: any[], mixed?: (string|null)[])`},
		{"object", `{"properties":{"at":{"type":"object","properties":{"lat":{"type":"number"},"label":{"type":"string"}},"required":["lat"]}},"required":["at"]}`,
			`f(at: {lat: number, label?: string})`},
		{"objects in an array", `{"properties":{"edits":{"type":"array","items":{"properties":{"old":{"type":"string"},"new":{"type":"string"}},"required":["old","new"]}}},"required":["edits"]}`,
			`f(edits: {old: string, new: string}[])`},
		{"a map", `{"properties":{"env":{"type":"object","additionalProperties":{"type":"string"}},"any":{"type":"object","additionalProperties":true}}}`,
			`f(env?: {[key]: string}, any?: object)`},
		{"union", `{"properties":{"x":{"anyOf":[{"type":"string"},{"type":"null"},{"type":"string","format":"date"}]}}}`, `f(x?: string|null)`},
		{"reference", `{"$defs":{"a/b":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}},"n":{"enum":[1,2]}},"properties":{"x":{"$ref":"#/$defs/a~1b"},"y":{"allOf":[{"$ref":"#/$defs/n"}]}}}`,
			`f(x?: {n?: 1|2}, y?: 1|2)`},
		{"a reference to elsewhere", `{"properties":{"x":{"$ref":"https://example.com/s"},"y":{"$ref":"#/nowhere"}}}`, `f(x?: any, y?: any)`},
		{"a circle", `{"$defs":{"t":{"type":"object","properties":{"next":{"$ref":"#/$defs/t"}}},"l":{"$ref":"#/$defs/l"}},"properties":{"t":{"$ref":"#/$defs/t"},"l":{"$ref":"#/$defs/l"}}}`,
			`f(t?: {next?: {next?: {next?: {next?: …}}}}, l?: any)`},
		{"odd names", `{"properties":{"a b":{"type":"string"},"x-y.z$":{"type":"string"},"größe":{"type":"string"},"a\"":{}}}`,
			`f("a b"?: string, x-y.z$?: string, "größe"?: string, "a\""?: any)`},
		{"a long name", `{"properties":{"` + strings.Repeat("n", 100) + `":{}}}`, `f(` + strings.Repeat("n", 60) + `…?: any)`},
		{"a schema that is true", `{"properties":{"x":true},"required":["x"]}`, `f(x: any)`},
		{"not an object", `[1]`, `f(…)`},
		{"broken", `{"properties":`, `f(…)`},
		{"a long default", `{"properties":{"x":{"type":"string","default":"` + strings.Repeat("d", 100) + `"}}}`, `f(x?: string = …)`},
	}
	for _, tt := range tests {
		if got := formatToolSignature("f", []byte(tt.schema)); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestSignatureIsBounded(t *testing.T) {
	var many, wide, values strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, `"parameter_number_%d":{"type":"string"},`, i)
		fmt.Fprintf(&values, `"value %d",`, i)
	}
	wide.WriteString(`{"properties":{` + many.String() + `"last":{}},"required":["last"]}`)
	deep := `{"type":"string"}`
	for range 50 {
		deep = `{"properties":{"a":` + deep + `,"b":` + `{"type":"array","items":{"type":"integer"}}}}`
	}
	choice := `{"$ref":"#/$defs/c"}`
	choices := `{"$defs":{"c":{"anyOf":[` + strings.Repeat(choice+",", 11) + choice + `]}},"properties":{"x":` + choice + `}}`
	for name, schema := range map[string]string{
		"choices": choices,
		"many":    wide.String(),
		"inner":   `{"properties":{"o":` + wide.String() + `}}`,
		"enum":    `{"properties":{"e":{"enum":[` + values.String() + `1]}}}`,
		"deep":    deep,
		"name":    `{"properties":{"` + strings.Repeat("n", 5000) + `":{"type":"` + strings.Repeat("t", 5000) + `"}}}`,
	} {
		got := formatToolSignature("f", []byte(schema))
		if len(got) > maxSignature+500 || !strings.Contains(got, "…") || !strings.HasSuffix(got, ")") {
			t.Errorf("%s: %d bytes: %.200s", name, len(got), got)
		}
	}
	if got := formatToolSignature("f", []byte(wide.String())); !strings.HasPrefix(got, "f(last: any, parameter_number_0?: string, ") {
		t.Errorf("the required parameter is not first: %.100s", got)
	}
}

func FuzzSignature(f *testing.F) {
	f.Add(`{"properties":{"a":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/a"}}]}},"$defs":{"a":{"enum":[1]}}}`)
	f.Add(`{"properties":{"a":{"type":["array","object"],"items":{"type":["string","null"]}}},"required":"a"}`)
	f.Fuzz(func(t *testing.T, schema string) {
		if got := formatToolSignature("f", []byte(schema)); !strings.HasPrefix(got, "f(") || !strings.HasSuffix(got, ")") {
			t.Errorf("signature %q", got)
		}
	})
}
