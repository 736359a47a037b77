package tool

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestStrictForm checks that a definition that a strict client would reject gets an accepted form if that form is
// unambiguous. All other definitions keep their bytes, or have no strict form.
func TestStrictForm(t *testing.T) {
	for raw, want := range map[string]string{
		`{"name":"a", "inputSchema":{"type":"object","required":["x"]}}`:                                                     ``,
		`{"name":"a","inputSchema":{"type":"object","properties":{"x":{}}},"icons":[ {"src":"data:"} ],"_meta":{},"x":null}`: ``,
		`{"name":"a","annotations":null,"inputSchema":{"type":"object"}}`:                                                    `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","annotations":{"title":null,"readOnlyHint":true},"inputSchema":{"type":"object"}}`:                      `{"name":"a","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{}}`:                                                                                                 `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{"type":"object","required":null}}`:                                                                  `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{"anyOf":[{"type":"object"}]}}`:                                                                      `{"name":"a","inputSchema":{"anyOf":[{"type":"object"}],"type":"object"}}`,
		`{"name":"a","inputSchema":{"type":["object","null"]}}`:                                                                         `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{"type":"OBJECT"}}`:                                                                                  `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{"type":"object","properties":{"x":true,"y":false,"z":{}}}}`:                                         `{"name":"a","inputSchema":{"type":"object","properties":{"x":{},"y":{"not":{}},"z":{}}}}`,
		`{"name":"a","inputSchema":null}`:                                                                                               `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a"}`:                                                                                                                  `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","title":null,"outputSchema":null,"inputSchema":{"type":"object","properties":null}}`:                               `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","outputSchema":{"type":"array"},"inputSchema":{"type":"object"}}`:                                                  `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","outputSchema":true,"inputSchema":{"type":"object"}}`:                                                              `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","outputSchema":{"properties":{"n":{}}},"inputSchema":{"type":"object"}}`:                                           `{"name":"a","outputSchema":{"properties":{"n":{}},"type":"object"},"inputSchema":{"type":"object"}}`,
		`{"name":"a","icons":[{"src":"x","theme":null}],"inputSchema":{"type":"object"}}`:                                               `{"name":"a","icons":[{"src":"x"}],"inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"type":"number","default":9007199254740993,"required":true}}}}`:  ``,
		`{"name":"a","inputSchema":"{}"}`:                                                                                               `inputSchema does not describe an object`,
		`{"name":"a","inputSchema":[ ]}`:                                                                                                `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":[1]}`:                                                                                                `inputSchema does not describe an object`,
		`{"name":"a","inputSchema":{"type":"string"}}`:                                                                                  `inputSchema does not describe an object`,
		`{"name":"a","inputSchema":{"type":["array","null"]}}`:                                                                          `inputSchema does not describe an object`,
		`{"name":"a","inputSchema":{"type":"object","required":"x"}}`:                                                                   `inputSchema.required is no list`,
		`{"name":"a","inputSchema":{"type":"object","required":[1]}}`:                                                                   `inputSchema.required[0] is no text`,
		`{"name":"a","inputSchema":{"type":"object","properties":[],"required":{}}}`:                                                    `{"name":"a","inputSchema":{"type":"object","properties":{},"required":[]}}`,
		`{"name":"a","inputSchema":{"type":"object","properties":["x"]}}`:                                                               `inputSchema.properties is no object`,
		`{"name":"a","inputSchema":{"type":"object","properties":{"x":"text"}}}`:                                                        `inputSchema.properties has a schema that is no object`,
		`{"name":"a","description":5,"inputSchema":{"type":"object"}}`:                                                                  `description is no text`,
		`{"name":"a","title":{},"inputSchema":{"type":"object"}}`:                                                                       `title is no text`,
		`{"name":"a","annotations":[],"_meta":[],"icons":{},"inputSchema":{"type":"object"}}`:                                           `{"name":"a","annotations":{},"_meta":{},"icons":[],"inputSchema":{"type":"object"}}`,
		`{"name":"a","annotations":[1],"inputSchema":{"type":"object"}}`:                                                                `annotations is no object`,
		`{"name":"a","annotations":{"readOnlyHint":"yes"},"inputSchema":{"type":"object"}}`:                                             `annotations.readOnlyHint is no boolean`,
		`{"name":"a","icons":{"src":"x"},"inputSchema":{"type":"object"}}`:                                                              `icons is no list`,
		`{"name":"a","icons":["x"],"inputSchema":{"type":"object"}}`:                                                                    `icons[0] is no object`,
		`{"name":"a","_meta":"x","inputSchema":{"type":"object"}}`:                                                                      `_meta is no object`,
		`{"name":"a","execution":{"taskSupport":"never"},"inputSchema":{"type":"object"}}`:                                              `execution.taskSupport is none of forbidden, optional, required`,
		`{"name":"a","outputSchema":"x","inputSchema":{"type":"object"}}`:                                                               `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","outputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/X"}}},"inputSchema":{"type":"object"}}`:         `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","outputSchema":{"type":"object","properties":[], "required":{}},"annotations":{},"inputSchema":{"type":"object"}}`: `{"name":"a","outputSchema":{"type":"object","properties":{}, "required":[]},"annotations":{},"inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{"type":"object","$schema":null}}`:                                                                   `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{"type":"object","$schema":5}}`:                                                                      `inputSchema.$schema is no text`,
		`{"name":"a","outputSchema":{"type":"object","$schema":5},"inputSchema":{"type":"object"}}`:                                     `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","inputSchema":{"type":"object","maximum":1.7e308,"x":"1e999"}}`:                                                    ``,
		`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"maximum":-1E+999}}}}`:                                           `inputSchema has a number that is too large for a 64-bit float`,
		`{"name":"a","inputSchema":{"type":"object"},"_meta":{"n":1e999}}`:                                                              `_meta has a number that is too large for a 64-bit float`,
		`{"name":"a","outputSchema":{"type":"object","maximum":1e999},"inputSchema":{"type":"object"}}`:                                 `{"name":"a","inputSchema":{"type":"object"}}`,
		`{"name":"a","_meta":{"constructor":1,"x":2},"inputSchema":{"type":"object","properties":{"x":{},"constructor":{"type":"string"}},"required":["constructor"]}}`: `{"name":"a","_meta":{"x":2},"inputSchema":{"type":"object","properties":{"x":{}},"required":["constructor"],"patternProperties":{"^constructor$":{"type":"string"}}}}`,
		`{"name":"a","inputSchema":{"type":"object","properties":{"constructor":true},"patternProperties":{"^x":{}}}}`:                                                  `{"name":"a","inputSchema":{"type":"object","properties":{},"patternProperties":{"^x":{},"^constructor$":{}}}}`,
		`{"name":"a","inputSchema":{"type":"object","properties":{"constructor":{}},"patternProperties":[]}}`:                                                           `inputSchema has a property with the name constructor, which some clients reject`,
		`prompt {"name":"a","arguments":[{"name":"x","title":null}]}`:                                                                                                   `{"name":"a","arguments":[{"name":"x"}]}`,
		`prompt {"name":"a","x":1e999}`:                                                                                                       ``,
		`prompt {"name":"a","arguments":[{"name":"x","title":5}]}`:                                                                            `arguments[0].title is no text`,
		`resource {"uri":"x:y","name":"a","size":1.5}`:                                                                                        `{"uri":"x:y","name":"a"}`,
		`resource {"uri":"x:y","name":"a","size":1e3}`:                                                                                        `{"uri":"x:y","name":"a"}`,
		`resource {"uri":"x:y","name":"a","size":9223372036854775808}`:                                                                        `{"uri":"x:y","name":"a"}`,
		`resource {"uri":"x:y","name":"a","size":-0}`:                                                                                         ``,
		`resource {"uri":"x:y","name":"a","annotations":{"lastModified":"2025-01-01T00:00:00,5Z"}}`:                                           `{"uri":"x:y","name":"a","annotations":{}}`,
		`resource {"uri":"x:y","name":"a","annotations":{"lastModified":"2025-01-01T00:00:00+24:00"}}`:                                        `{"uri":"x:y","name":"a","annotations":{}}`,
		`resource {"uri":"x:y","name":"a","annotations":{"lastModified":"2025-02-28T23:59:59.123-05:30"}}`:                                    ``,
		`prompt {"name":"a","arguments":[{"name":"x","required":true}]}`:                                                                      ``,
		`prompt {"name":"a","arguments":null}`:                                                                                                `{"name":"a"}`,
		`prompt {"name":"a","arguments":[{"name":"x","description":null}]}`:                                                                   `{"name":"a","arguments":[{"name":"x"}]}`,
		`prompt {"name":"a","arguments":{"x":{}}}`:                                                                                            `arguments is no list`,
		`prompt {"name":"a","arguments":{}}`:                                                                                                  `{"name":"a","arguments":[]}`,
		`prompt {"name":"a","arguments":[{"description":"x"}]}`:                                                                               `arguments[0].name is no text`,
		`prompt {"name":"a","arguments":["x"]}`:                                                                                               `arguments[0] is no object`,
		`resource {"uri":"x:y","name":"a","size":3,"annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-01T00:00:00Z"}}`: ``,
		`resource {"uri":"x:y"}`:                                                                                                              `{"uri":"x:y","name":"x:y"}`,
		`resource {"uri":"x:y","name":null,"mimeType":null}`:                                                                                  `{"uri":"x:y","name":"x:y"}`,
		`resource {"uri":"x:y","name":"a","annotations":{"lastModified":"yesterday"}}`:                                                        `{"uri":"x:y","name":"a","annotations":{}}`,
		`resource {"uri":"x:y","name":1}`:                                                                                                     `name is no text`,
		`resource {"uri":"x:y","name":"a","size":"3"}`:                                                                                        `size is no number`,
		`resource {"uri":"x:y","name":"a","annotations":{"priority":7}}`:                                                                      `annotations.priority is no number from 0 to 1`,
		`resource {"uri":"x:y","name":"a","annotations":{"audience":["model"]}}`:                                                              `annotations.audience[0] is none of user, assistant`,
		`template {"uriTemplate":"x:{y}"}`:                                                                                                    `{"uriTemplate":"x:{y}","name":"x:{y}"}`,
		`template {"uriTemplate":"x:{y}","name":"a","mimeType":["text/plain"]}`:                                                               `mimeType is no text`,
		`instructions "text"`: ``,
	} {
		kind, definition := KindTool, raw
		if word, rest, found := strings.Cut(raw, " "); found && raw[0] != '{' {
			kind, definition = DefinitionKind(word), rest
		}
		got, err := StrictForm(kind, json.RawMessage(definition))
		said := string(got)
		if err != nil {
			said = err.Error()
		}
		if want == "" {
			want = definition
		}
		if said != want {
			t.Errorf("%s: got %s, want %s", raw, said, want)
		}
	}
}

// TestSchemasCompileInOfficialClients checks schemas that compilesForClients accepts only if the official TypeScript
// clients can compile them.
func TestSchemasCompileInOfficialClients(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object"}`,
		`{"type":"object","properties":{"id":{"type":"string"},"$ref":{"type":["string","null"]},"nullable":true},"required":["id"],"additionalProperties":false}`,
		`{"type":"object","properties":{"x":{"$ref":"#/$defs/a~1b"},"y":{"$ref":"#/$defs/c%20d/allOf/0"},"z":{"$ref":"#"}},"$defs":{"a/b":{"$ref":"#/properties/z"},"c d":{"allOf":[true]}}}`,
		`{"type":"object","patternProperties":{"^\\d{1,3}$":{"enum":[null],"default":[],"x-vendor":{"type":7}}}}`,
		`{"type":"object","properties":{"x":{"pattern":"^[\\w.+-]+@[\\w-]+\\.(?:de|en)$"},"y":{"type":"string","nullable":true,"maxLength":3,"format":"date"}}}`,
	} {
		if !compilesForClients(json.RawMessage(schema)) {
			t.Errorf("rejected: %s", schema)
		}
	}
	for _, part := range []string{
		`{"$ref":"#/$defs/no"}`, `{"$ref":"#/properties/x"}`, `{"$ref":"#/properties/x/x-list/9"}`, `{"$ref":"https://example.com/x"}`, `{"$ref":"#a"}`, `{"$ref":"#%"}`, `{"$ref":7}`, `{"$ref":"#/type"}`,
		`{"type":"any"}`, `{"type":[7]}`, `{"nullable":true}`, `{"id":"x"}`, `{"$id":"https://example.com/x"}`, `{"$defs":{"$id":{}}}`, `{"x-vendor":[{"$anchor":5}]}`, `{"$dynamicAnchor":"x"}`, `{"exclusiveMinimum":true}`, `{"required":true}`, `{"enum":[]}`, `{"items":[{}]}`, `{"anyOf":{}}`, `{"not":null}`,
		`{"properties":{"y":{"type":"objekt"}}}`, `{"dependencies":{"a":"b"}}`, `{"dependentRequired":{"a":"b"}}`, `{"format":1}`, `{"maximum":"1"}`, `{"uniqueItems":1}`,
		`{"pattern":"("}`, `{"pattern":"(?i)a"}`, `{"pattern":"\\_"}`, `{"pattern":"a{"}`, `{"pattern":"a]"}`, `{"pattern":"[\\d-z]"}`, `{"pattern":"^*"}`, `{"pattern":"\\b?"}`, `{"patternProperties":{"[[:alpha:]]":{}}}`, `[]`, `7`,
		strings.Repeat(`{"not":`, 70) + "{}" + strings.Repeat("}", 70),
	} {
		if compilesForClients(json.RawMessage(`{"type":"object","properties":{"x":` + part + `}}`)) {
			t.Errorf("accepted: %s", part)
		}
	}
}
