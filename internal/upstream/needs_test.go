package upstream

import (
	"strings"
	"testing"
)

// TestStatefulPackages: servers that are known to keep state for each session are recognized in the ways in which they are
// started, and others are not.
func TestStatefulPackages(t *testing.T) {
	for command, want := range map[string]bool{
		"npx -y @playwright/mcp@latest": true, "npx @playwright/mcp": true, "uvx browser-use": true, "npx -y @modelcontextprotocol/server-puppeteer": true,
		"node /usr/lib/node_modules/chrome-devtools-mcp/build/index.js": true, "/usr/local/bin/mcp-server-playwright --headless": true,
		"npx -y @modelcontextprotocol/server-filesystem /home/me/browser-use": false, "npx -y @me/playwright": false, "uvx browser-users": false,
	} {
		words := strings.Fields(command)
		s := Spec{Transport: Stdio, Command: words[0], Args: words[1:], Auto: true}
		if got := len(s.knownNeeds()) == 1; got != want {
			t.Errorf("%s: %t", command, got)
		}
		if s.Auto = false; len(s.knownNeeds()) != 0 {
			t.Errorf("%s: needs without auto", command)
		}
	}
}
