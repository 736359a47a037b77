package upstream

import (
	"strings"
	"testing"
)

// TestKnownPackages: servers that are known to keep state for each session, or to need roots, are recognized in the ways in
// which they are started, and others are not.
func TestKnownPackages(t *testing.T) {
	for command, want := range map[string]SessionNeed{
		"npx -y @playwright/mcp@latest": NeedState, "npx @playwright/mcp": NeedState, "uvx browser-use": NeedState, "npx -y @modelcontextprotocol/server-puppeteer": NeedState,
		"node /usr/lib/node_modules/chrome-devtools-mcp/build/index.js": NeedState, "/usr/local/bin/mcp-server-playwright --headless": NeedState,
		"npx -y @modelcontextprotocol/server-filesystem /home/me/browser-use": "", "npx -y @me/playwright": "", "uvx browser-users": "",
		"npx -y @modelcontextprotocol/server-filesystem@2025.8.21": NeedRoots, "node /usr/lib/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js": NeedRoots,
	} {
		words := strings.Fields(command)
		s := Spec{Transport: Stdio, Command: words[0], Args: words[1:], Auto: true}
		got := s.knownNeeds()
		if len(got) > 1 || (len(got) == 1) != (want != "") || want != "" && got[0].Need != want {
			t.Errorf("%s: %+v", command, got)
		}
		if s.Auto = false; len(s.knownNeeds()) != 0 {
			t.Errorf("%s: needs without auto", command)
		}
	}
}
