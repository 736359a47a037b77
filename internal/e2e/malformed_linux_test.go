//go:build linux

package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// TestMalformedDefinitionsAreLeftOut: the combined lists omit definitions that strict clients reject. A warning names
// each of them, but no model sees the warning. All valid definitions are listed, and the server's own endpoint shows
// its unchanged list.
func TestMalformedDefinitionsAreLeftOut(t *testing.T) {
	t.Parallel()
	malformed := map[string]string{ // keyed by the expected warning
		"'text-schema'":    `{"name":"text-schema","inputSchema":"{}"}`,
		"'no-object'":      `{"name":"no-object","inputSchema":{"type":"string"}}`,
		"'required'":       `{"name":"required","inputSchema":{"type":"object","required":"x"}}`,
		"'properties'":     `{"name":"properties","inputSchema":{"type":"object","properties":[1]}}`,
		"'description'":    `{"name":"description","description":{"en":"x"},"inputSchema":{"type":"object"}}`,
		"'hint'":           `{"name":"hint","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes"}}`,
		"'icons'":          `{"name":"icons","inputSchema":{"type":"object"},"icons":"x.png"}`,
		"no name":          `{"name":7,"inputSchema":{"type":"object"}}`,
		"the same name: a": `{"name":"a","inputSchema":{"type":"object"}}`,
		"'bad-prompt'":     ``,
		"'bad://resource'": ``,
	}
	page := strings.TrimSuffix(toolsPage(fourTools...), "]")
	for _, definition := range malformed {
		if definition != "" {
			page += "," + definition
		}
	}
	capabilities := `{"tools":{},"prompts":{},"resources":{}}`
	url := oddServer(t, mcptest.Options{Capabilities: capabilities}, func(m *wirejson.Message, _ http.Header, body []byte) []byte {
		result := map[string]string{
			"tools/list":               page + `]}`,
			"prompts/list":             `{"prompts":[{"name":"good"},{"name":"bad-prompt","arguments":{"x":1}}]}`,
			"resources/list":           `{"resources":[{"uri":"good://resource"},{"uri":"bad://resource","name":"b","size":"3"}]}`,
			"resources/templates/list": `{"resourceTemplates":[]}`,
		}[m.Method]
		if result == "" {
			return body
		}
		return wirejson.AppendResult(nil, m.ID, json.RawMessage(result))
	})
	config, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": map[string]string{"url": url, "trust": "auto"}}})
	d := startDaemon(t, string(config))
	d.awaitTools("s:d")
	client := d.sdkAt("/mcp/all", legacyRevision, nil)
	var names []string
	for tool, err := range client.Tools(within(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"s__a", "s__b", "s__c", "s__d"}) {
		t.Errorf("tools %q", names)
	}
	prompts, err := client.ListPrompts(within(t), nil)
	if err != nil || len(prompts.Prompts) != 1 || prompts.Prompts[0].Name != "s__good" {
		t.Errorf("prompts %+v, %v", prompts, err)
	}
	resources, err := client.ListResources(within(t), nil)
	if err != nil || len(resources.Resources) != 1 || resources.Resources[0].Name != "good://resource" {
		t.Errorf("resources %+v, %v", resources, err)
	}
	servers, err := d.sdkAt("/mcp", legacyRevision, nil).CallTool(within(t), &mcp.CallToolParams{Name: "upstream_servers", Arguments: map[string]any{"operation": "get", "name": "s"}})
	if text, _ := json.Marshal(servers); err != nil || servers.IsError || strings.Contains(string(text), "text-schema") {
		t.Errorf("a model sees names that no user has approved: %s, %v", text, err)
	}
	_, get, _ := d.cli("upstream", "get", "s")
	_, doctor, _ := d.cli("doctor")
	for name := range malformed {
		if !strings.Contains(get, name) || !strings.Contains(doctor, name) {
			t.Errorf("no warning about %s in\n%s\n%s", name, get, doctor)
		}
	}
}
