package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	golden(t, "../../docs/reference/mcp_config.schema.json", JSONSchema())
	golden(t, "../../docs/reference/config.md", Reference())
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mcp_config.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mcp_config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func against(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	standard, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(standard))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func TestSchemaAcceptsValidFiles(t *testing.T) {
	s := compiled(t)
	everything, err := os.ReadFile("testdata/good/everything.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		string(everything), "{}", `{"mcpServers": {}}`, `{"mcpServers": []}`, mustParse(t, string(everything)).String(), mustParse(t, "{}").String(),
		`{"mcpServers": [{"name": "a", "command": "x"}, {"name": "b", "serverUrl": "http://x/mcp", "transport": "streamable_http", "disabled": true}]}`,
		`{"mcpServers": {"a": {"command": "x", "tools": {"t": {"alias": "b", "add_description": "c", "always": true}}}, "b": {"command": "x", "tools": ["t"]}}}`,
		`{"call_timeout": "${env:DURATION}", "tools_detail": "${env:DETAIL}", "queue_timeout": "0"}`,
	} {
		if _, err := Parse([]byte(text), func(name string) (string, bool) {
			if name == "DURATION" {
				return "2m", true
			}
			return env(name)
		}); err != nil {
			t.Errorf("Parse rejects %s: %v", text, err)
		}
		if err := against(t, s, []byte(text)); err != nil {
			t.Errorf("the schema rejects %s: %v", text, err)
		}
	}
}

// TestSchemaRefusesInvalidFiles checks that Parse rejects every file that the schema rejects. The schema finds most
// errors.
func TestSchemaRefusesInvalidFiles(t *testing.T) {
	s := compiled(t)
	// A schema cannot express these rules.
	beyond := map[string]bool{
		"keys_duplicate": true, "references": true, "strings": true, "servers_url": true,
		"listen_port": true, "protocol_sse_without_url": true, "listen_exposed": true, "listen_every_interface": true, "database": true,
	}
	files, err := filepath.Glob("testdata/bad/[^s]*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"servers_launch", "servers_list", "servers_names", "servers_tools", "servers_type"} {
		files = append(files, filepath.Join("testdata/bad", more+".txtar"))
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file[:len(file)-len(".txtar")])
		if err := against(t, s, archive.Files[0].Data); err == nil && !beyond[name] && !strings.HasPrefix(name, "front_") {
			t.Errorf("the schema accepts %s", name)
		}
	}
	for _, text := range []string{
		`{"lisen": "x"}`, `{"tools_limit": 0}`, `{"tools_limit": 101}`, `{"tools_limit": "5"}`, `{"tools_detail": "short"}`, `{"call_timeout": "soon"}`, `{"call_timeout": 5}`,
		`{"log": {"level": "loud"}}`, `{"log": {"colour": true}}`, `{"intent_declaration": {"infer_hints": "on"}}`, `{"mcpServers": {"a": {}}}`,
		`{"mcpServers": {"a": {"command": "x", "url": "http://x/mcp"}}}`, `{"mcpServers": {"a b": {"command": "x"}}}`, `{"mcpServers": {"a__b": {"command": "x"}}}`,
		`{"mcpServers": [{"command": "x"}]}`, `{"mcpServers": {"a": {"command": "x", "args": "x"}}}`, `{"mcpServers": {"a": {"command": "x", "env": {"A": 1}}}}`,
		`{"mcpServers": {"a": {"command": "x", "enabled_tools": ["a"], "disabled_tools": ["b"]}}}`, `{"mcpServers": {"a": {"command": "x", "hint_overrides": {"a": {"readOnly": true}}}}}`,
		`{"mcpServers": {"a": {"command": "x", "tools": {"t": {"alais": "b"}}}}}`,
		`{"mcpServers": {"a": {"command": "x", "type": "pigeon"}}}`, `[]`,
	} {
		if err := against(t, s, []byte(text)); err == nil {
			t.Errorf("the schema accepts %s", text)
		}
		if _, err := Parse([]byte(text), env); err == nil {
			t.Errorf("Parse accepts %s", text)
		}
	}
}
