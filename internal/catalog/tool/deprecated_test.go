package tool

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDeprecated(t *testing.T) {
	for description, want := range map[string]bool{
		"Read the complete contents of a file as text. DEPRECATED: Use read_text_file instead.": true,
		"⚠️ DEPRECATED: Use get_top_protocols":                                                  true,
		"Deprecated, please use browser_get_markdown instead":                                   true,
		"DEPRECATED. Use \"GET /api/chats/{id}/messages\" instead":                              true,
		"DEPRECATED - you can set \"reply_to\" field when sending text":                         true,
		"[Deprecated] Lists things":                                                             true,
		"**DEPRECATED** Lists things":                                                           true,
		"Lists things (deprecated)":                                                             true,
		"Lists things.\nDeprecated in favour of list_all":                                       true,
		"This tool is deprecated and will go":                                                   true,
		"Lists things. This endpoint has been deprecated.":                                      true,
		"Deprecated": true,

		"Check if packages are deprecated":                                            false,
		"Check if code or dependencies might be using deprecated features.":           false,
		"Request a KRW withdrawal (Private, Deprecated by Bithumb)":                   false,
		"Run Map-Reduce operations (note: Map-Reduce deprecated as of MongoDB 5.0)":   false,
		"Lists packages. Deprecated packages come last.":                              false,
		"Whether to include items that are deprecated. The parameter x is deprecated": false,
		"": false,
	} {
		if got := (Definition{Description: description}).IsDeprecated(); got != want {
			t.Errorf("IsDeprecated of %q: got %v", description, got)
		}
	}
	for meta, want := range map[string]bool{
		`{"deprecated":true}`: true, `{"example.com/deprecated":"use other"}`: true, `{"deprecated":{"since":"2"}}`: true,
		`{"deprecated":false}`: false, `{"deprecated":""}`: false, `{"deprecated":null}`: false, `{"undeprecated":true}`: false,
		`"deprecated"`: false, `{"a":{"deprecated":true}}`: false,
	} {
		d, err := ParseDefinition("s", json.RawMessage(`{"name":"a","_meta":`+meta+`}`))
		if err != nil || d.IsDeprecated() != want {
			t.Errorf("_meta %s: got %v, %v", meta, d.IsDeprecated(), err)
		}
	}
	if d, err := ParseDefinition("s", json.RawMessage(`{"name":"a","inputSchema":{"type":"object","properties":{"deprecated":{"type":"boolean","deprecated":true}}}}`)); err != nil || d.IsDeprecated() {
		t.Errorf("a tool with a deprecated parameter counts as deprecated: %v", err)
	}
	(Definition{Description: strings.Repeat("deprecated (", 20_000)}).IsDeprecated()
}
