package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
)

func TestParsePrimitive(t *testing.T) {
	for _, c := range []struct {
		kind      tool.DefinitionKind
		raw, name string // name is "" if the definition is unusable
	}{
		{tool.KindPrompt, `{"name":"greet","arguments":[{"name":"x"}]}`, "greet"},
		{tool.KindPrompt, `{"\u006eame":"greet"}`, "greet"},
		{tool.KindPrompt, `{"name":"gr\u00e9et"}`, "gréet"},
		{tool.KindResource, `{"uri":"file:///a","name":"A"}`, "file:///a"},
		{tool.KindTemplate, `{"uriTemplate":"file:///{p}"}`, "file:///{p}"},
		{tool.KindPrompt, `{"name":""}`, ""},
		{tool.KindPrompt, `{"name":7}`, ""},
		{tool.KindPrompt, `{"name":"\ud800"}`, ""},
		{tool.KindPrompt, `{"name":"a","name":"b"}`, ""},
		{tool.KindPrompt, `["name"]`, ""},
		{tool.KindResource, `{"name":"a"}`, ""},
		{tool.KindResource, `{"uri":"` + strings.Repeat("x", tool.MaxPrimitiveName+1) + `"}`, ""},
		{tool.KindResource, `{"uri":"x","d":"` + strings.Repeat("x", tool.MaxDefinition) + `"}`, ""},
		{tool.KindTool, `{"name":"a"}`, ""},
		{"other", `{"name":"a"}`, ""},
	} {
		o, err := tool.ParsePrimitive(c.kind, json.RawMessage(c.raw))
		if o.Name != c.name || (err == nil) != (c.name != "") {
			t.Errorf("%s %.60s: got %q, %v", c.kind, c.raw, o.Name, err)
		}
	}
	if _, err := tool.ParsePrimitive(tool.KindInstructions, json.RawMessage(`"Be nice."`)); err != nil {
		t.Error(err)
	}
}

// TestPrimitiveFingerprint checks that fields that change with the content of a resource and contain no text are not
// part of its fingerprint. All other fields are.
func TestPrimitiveFingerprint(t *testing.T) {
	print := func(kind tool.DefinitionKind, raw string) tool.Fingerprint {
		t.Helper()
		o, err := tool.ParsePrimitive(kind, json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		return o.Fingerprint
	}
	const base = `{"uri":"a://b","name":"n"}`
	for _, same := range []string{
		`{"name":"n","uri":"a:\/\/b","size":5}`, `{"uri":"a://b","name":"n","s\u0069ze":1234567890123456}`,
		`{"uri":"a://b","name":"n","annotations":{"lastModified":"2025-01-12T15:00:58Z"}}`,
		`{"uri":"a://b","name":"n","annotations":{"lastModified":"2025-01-12T15:00:58.123456789+01:00"},"size":0}`,
		`{"uri":"a://b","name":"n","annotations":{"lastModified":"2025-01-12"}}`,
		`{"uri":"a://b","name":"n","annotations":{"lastModified":"2025-01-12T15:00:58"}}`,
	} {
		if print(tool.KindResource, same) != print(tool.KindResource, base) {
			t.Errorf("%s has another fingerprint", same)
		}
	}
	for _, other := range []string{
		`{"uri":"a://b","name":"n","size":"5"}`, `{"uri":"a://b","name":"n","size":-5}`, `{"uri":"a://b","name":"n","size":1.5}`,
		`{"uri":"a://b","name":"n","size":12345678901234567}`, `{"uri":"a://b","name":"n","size":null}`, `{"uri":"a://b","name":"n","Size":5}`,
		`{"uri":"a://b","name":"n","annotations":{"lastModified":"yesterday"}}`, `{"uri":"a://b","name":"n","annotations":{"lastModified":5}}`,
		`{"uri":"a://b","name":"n","annotations":{"lastModified":"2025-01-12T15:00:58.00000000000000000000000000000Z"}}`,
		`{"uri":"a://b","name":"n","annotations":{"priority":1}}`, `{"uri":"a://b","name":"n","annotations":{"x":{"lastModified":"2025-01-12"}}}`,
		`{"uri":"a://b","name":"n","_meta":{"size":5}}`, `{"uri":"a://b","name":"n","lastModified":"2025-01-12"}`,
		`{"uri":"a://b","name":"n","annotations":{}}`, `{"uri":"a://b","name":"n","annotations":[]}`, `{"uri":"a://b","name":"n","annotations":"2025-01-12"}`,
	} {
		if print(tool.KindResource, other) == print(tool.KindResource, base) {
			t.Errorf("%s has the same fingerprint", other)
		}
	}
	if print(tool.KindPrompt, `{"name":"n","size":5}`) == print(tool.KindPrompt, `{"name":"n"}`) ||
		print(tool.KindTemplate, `{"uriTemplate":"n","size":5}`) == print(tool.KindTemplate, `{"uriTemplate":"n"}`) {
		t.Error("the size of a definition that is not a resource does not change the fingerprint")
	}
	if print(tool.KindTemplate, `{"uriTemplate":"n","annotations":{"lastModified":"2025-01-12"}}`) != print(tool.KindTemplate, `{"uriTemplate":"n"}`) {
		t.Error("the date of a template changes the fingerprint")
	}
}

func BenchmarkParseOffer(b *testing.B) {
	raw := json.RawMessage(`{"uri":"file:///srv/notes/2025/a-note.md","name":"a-note.md","title":"A note","description":"Notes of a meeting about the roof of the house.","mimeType":"text/markdown","size":1234,"annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-12T15:00:58Z"}}`)
	for b.Loop() {
		if _, err := tool.ParsePrimitive(tool.KindResource, raw); err != nil {
			b.Fatal(err)
		}
	}
}
