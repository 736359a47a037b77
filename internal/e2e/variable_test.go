package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestUnsetVariable checks that a server that refers to an unset variable waits in a separate state. All other servers
// start.
func TestUnsetVariable(t *testing.T) {
	t.Setenv("MCPPROXY_NO_KEYRING", "1")
	entry := func(env string) string {
		return fmt.Sprintf(`{"command": %q, "args": ["demo-upstream", "notes"], "trust": "auto"%s}`, binary, env)
	}
	config := `{"mcpServers": {"good": ` + entry("") + `, "bad": ` + entry(`, "env": {"TOKEN": "${env:E2E_NOPE}"}`) +
		`, "worse": {"url": "${env:E2E_URL}/mcp", "headers": {"Authorization": "Bearer ${keyring:e2e_none}"}, "trust": "${env:E2E_TRUST}", "call_timeout": "${env:E2E_TIME}"}}}`
	d := startDaemon(t, config)
	d.awaitTools("good:list_notes")
	for server, names := range map[string][]string{"bad": {"E2E_NOPE"}, "worse": {"E2E_URL", "E2E_TRUST", "E2E_TIME"}} {
		eventually(t, server+" needs a variable", func() error {
			_, body := d.rest("GET", "/servers/"+server, "")
			for _, want := range append(names, `"state":"needs_variable"`, "is not set", "mcpproxy secrets set") {
				if !strings.Contains(string(body), want) {
					return fmt.Errorf("no %s in %s", want, body)
				}
			}
			return nil
		})
	}
	if code, stdout, stderr := d.cli("upstream", "list"); code != 0 || !strings.Contains(stdout, "needs variable") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	if _, stdout, _ := d.cli("doctor"); !strings.Contains(stdout, "E2E_NOPE") || !strings.Contains(stdout, "D303") || !strings.Contains(stdout, "Server bad") {
		t.Errorf("doctor: %s", stdout)
	}
	// Such a server can be imported.
	d.inHome(".cursor/mcp.json", `{"mcpServers": {"moved": {"command": "`+binary+`", "args": ["demo-upstream", "notes"], "env": {"A": "${env:E2E_MOVED}"}}}}`)
	if code, stdout, stderr := d.cli("upstream", "import", "--yes"); code != 0 || !strings.Contains(d.readConfig(), "${env:E2E_MOVED}") || !strings.Contains(stdout+stderr, "E2E_MOVED") {
		t.Errorf("import: %d %s %s", code, stdout, stderr)
	}
	d.awaitTools("good:list_notes")
	// A secret instead of the variable takes effect immediately, as the state suggests.
	if code, _, stderr := d.cli("upstream", "set", "bad", "--env", "TOKEN=${keyring:E2E_NOPE}"); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := d.cliWith("value-of-nope\n", "secrets", "set", "E2E_NOPE"); code != 0 {
		t.Fatal(stderr)
	}
	d.awaitTools("bad:list_notes")
	// The variable takes effect when MCPProxy is restarted with it.
	d.writeConfig(config)
	d.stop()
	t.Setenv("E2E_NOPE", "value")
	d.start()
	d.awaitTools("bad:list_notes")
}
