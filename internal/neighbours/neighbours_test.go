package neighbours

import (
	"encoding/json"
	"fmt"
	"testing"

	"mcpproxy/internal/tool"
)

func described(t testing.TB, name, description string) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"name": name, "description": description, "inputSchema": map[string]any{"type": "object"}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func installed() *Index {
	x := New()
	x.Set("mailer", []string{"send_mail", "draft"})
	x.Set("files", []string{"read_file", "list_issues"})
	x.Set("projects", []string{"list_projects", "get_project"})
	return x
}

// TestAttacks: what orders something about tools of other servers is found, and
// nothing is when these are not there.
func TestAttacks(t *testing.T) {
	x, alone := installed(), New()
	alone.Set("evil", []string{"helper"})
	x.Set("evil", []string{"helper"})
	unknown := 0
	for i, text := range attacks {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			raw := described(t, "helper", text)
			found := x.findings(tool.ID{Server: "evil", Tool: "helper"}, tool.KindTool, raw)
			if len(found) == 0 || found[0].Rule != "other-tool" {
				t.Errorf("%s\n%+v", text, found)
			}
			if len(alone.findings(tool.ID{Server: "evil", Tool: "helper"}, tool.KindTool, raw)) > 0 {
				unknown++
			}
		})
	}
	t.Logf("%d of %d name a tool that nobody has", unknown, len(attacks))
	for _, text := range honest {
		if found := x.findings(tool.ID{Server: "projects", Tool: "get_project"}, tool.KindTool, described(t, "get_project", text)); len(found) > 0 {
			t.Errorf("%s\n%+v", text, found)
		}
	}
}
