package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
)

// TestDefinitionsAreSmall: the definitions that an agent loads stay under 5,000 bytes in every mode.
func TestDefinitionsAreSmall(t *testing.T) {
	for _, intent := range []bool{false, true} {
		for _, management := range []config.ServerManagement{config.ManageOff, config.ManageRead, config.ManagePropose} {
			n := len(toolDefinitions(toolListKey{intent: intent, management: management, most: policy.Destructive}))
			t.Logf("require_intent %v, mcp_management %s: %d bytes", intent, management, n)
			if n >= 5000 {
				t.Errorf("require_intent %v, mcp_management %s: %d bytes", intent, management, n)
			}
		}
	}
}

// The rules for every built-in definition.
func TestDefinitionRules(t *testing.T) {
	for _, intent := range []bool{false, true} {
		management := config.ManagePropose
		if intent {
			management = config.ManageRead
		}
		var tools []struct {
			Name, Description string
			InputSchema       struct {
				Type       string
				Properties map[string]struct{ Type string }
				Required   []string
			}
			Annotations map[string]bool
		}
		if err := json.Unmarshal([]byte(toolDefinitions(toolListKey{intent: intent, management: management, most: policy.Destructive})), &tools); err != nil {
			t.Fatal(err)
		}
		readOnly := map[string]bool{toolRetrieve: true, "call_tool_read": true, toolReadResult: true, toolUpstreamServers: management == config.ManageRead}
		for _, d := range tools {
			if d.InputSchema.Type != "object" || d.Description == "" {
				t.Errorf("%+v", d)
			}
			for name, p := range d.InputSchema.Properties {
				if p.Type == "object" && name != "args" && !(name == "intent" && intent) {
					t.Errorf("%s.%s is nested", d.Name, name)
				}
			}
			if d.Annotations["readOnlyHint"] != readOnly[d.Name] || d.Annotations["destructiveHint"] != (d.Name == "call_tool_destructive") ||
				d.Annotations["openWorldHint"] != strings.HasPrefix(d.Name, "call_tool_") {
				t.Errorf("%s: %v", d.Name, d.Annotations)
			}
			for _, hint := range []string{"readOnlyHint", "destructiveHint", "openWorldHint"} {
				if _, said := d.Annotations[hint]; !said {
					t.Errorf("%s does not say %s", d.Name, hint)
				}
			}
			v, calls := policy.ParseCallToolName(d.Name)
			if !calls {
				continue
			}
			for _, name := range []string{"intent", "intent_operation_type"} {
				if _, advertised := d.InputSchema.Properties[name]; advertised != intent {
					t.Errorf("%s: %s advertised %v", d.Name, name, advertised)
				}
			}
			if intent && !strings.Contains(d.Description, "Requires intent.operation_type='"+v.Operation().String()+"'.") {
				t.Errorf("%s does not say what it requires: %s", d.Name, d.Description)
			}
			for _, word := range []string{"retrieve_tools", "intent", v.Operation().String(), "efused", "args", "inputSchema"} {
				if !strings.Contains(d.Description, word) {
					t.Errorf("%s does not say %q: %s", d.Name, word, d.Description)
				}
			}
			if n := strings.Count(d.Description, ". ") + 1; n < 2 || n > 3 {
				t.Errorf("%s: %d sentences", d.Name, n)
			}
		}
		for _, word := range []string{"call_tool_read", "call_tool_write", "call_tool_destructive", "annotations", "call_with", "include_disabled"} {
			if !strings.Contains(tools[0].Description, word) {
				t.Errorf("retrieve_tools does not say %q", word)
			}
		}
	}
}
