package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/gate/presence"
)

// TestSeveralServersNeedOneSignature: an import or the sample servers need one statement that names all servers.
// Without its signature nothing is added. The result of each server reports its own problem.
func TestSeveralServersNeedOneSignature(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "{}")
	d.inHome(".cursor/mcp.json", fmt.Sprintf(`{"mcpServers": {"a": {"command": %q, "args": ["demo-upstream", "notes"], "env": {"A_TOKEN": "clear-text-of-a"}}, "b": {"command": %[1]q, "args": ["demo-upstream", "weather"]},
		"back": {"command": %[1]q, "args": ["stdio"]}, "long": {"command": "x", "args": [%q]}}}`, binary, strings.Repeat("x", 9<<10)))
	o := owned(t, d)
	a := &attack{daemon: d, key: o.key, clients: []*http.Client{http.DefaultClient}}
	var found struct{ Found []struct{ ID, Name string } }
	if _, body := d.rest("GET", "/clients/servers", ""); json.Unmarshal(body, &found) != nil || len(found.Found) != 4 {
		t.Fatalf("%s", body)
	}
	var ids []string
	for _, f := range found.Found {
		if f.Name != "back" { // back points to MCPProxy itself and is not imported
			ids = append(ids, f.ID)
		}
	}
	list, _ := json.Marshal(ids)
	named := func(claims []presence.Claim, names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			return !slices.ContainsFunc(claims, func(c presence.Claim) bool {
				return strings.HasPrefix(string(c), fmt.Sprintf("configuration %q", "mcpServers."+name))
			})
		})
	}
	for _, one := range []struct {
		path, body string
		names      []string
	}{
		{"/servers/import", fmt.Sprintf(`{"ids": %s, "confirmed": true, "keyring": true}`, list), []string{"a", "b"}},
		{"/demo", "", []string{"notes", "weather", "shifty"}},
	} {
		before := d.readConfig()
		for _, header := range []string{"", "e30.e30"} {
			status, answer := a.request(0, "POST", one.path, one.body, header)
			if asked, ok := a.asked(answer); status != http.StatusForbidden || header == "" && (!ok || !named(asked.Claims, one.names...)) || d.readConfig() != before {
				t.Fatalf("%s: %d %s", one.path, status, answer)
			}
		}
		if _, secrets := d.rest("GET", "/secrets", ""); one.path == "/servers/import" && strings.Contains(string(secrets), `"A_TOKEN"`) {
			t.Errorf("a secret of an unpermitted import is stored: %s", secrets)
		}
		_, answer := a.permitted("POST", one.path, one.body)
		for _, name := range one.names {
			if !strings.Contains(d.readConfig(), fmt.Sprintf("%q", name)) {
				t.Errorf("%s: %s is not added: %s", one.path, name, answer)
			}
		}
		if one.path == "/servers/import" && (!strings.Contains(string(answer), "INVALID_PARAMETER") || strings.Contains(string(answer), "PRESENCE_REQUIRED")) {
			t.Errorf("%s", answer)
		}
	}
	d.awaitTools("a:list_notes", "b:get_forecast", "shifty:add_numbers")
	if waits := o.config().Unconfirmed; len(waits) > 0 {
		t.Errorf("pending: %v", waits)
	}
}
