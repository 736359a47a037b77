package mcpserver

import (
	"strings"
	"testing"

	"mcpproxy/internal/mcp/session"
)

// Some clients append /mcp to the configured address; a server can still have that name.
func TestPathsWithMCPAppended(t *testing.T) {
	for path, want := range map[string]string{
		"/mcp": atBuiltIn, "/mcp/all": atAll, "/mcp/all/mcp": atAll, "/mcp/all/read": "*read", "/mcp/all/destructive/mcp": "*destructive",
		"/mcp/servers/x": "x", "/mcp/servers/x/mcp": "x", "/mcp/s/x": "x", "/mcp/s/x/mcp": "x",
		"/mcp/servers/mcp": "mcp", "/mcp/s/mcp": "mcp", "/mcp/servers/mcp/mcp": "mcp", "/mcp/servers/all": "all", "/mcp/servers/all/mcp": "all",
	} {
		var asked string
		s := New(Deps{At: func(server string) session.Endpoint { asked = server; return nil }})
		if place, profile, _ := s.resolveEndpoint(path); profile != "" || place != want || want != atBuiltIn && !strings.HasPrefix(want, atAll) && asked != want {
			t.Errorf("%s is %q, and %q was asked for, want %q", path, place, asked, want)
		}
	}
	for path, want := range map[string]string{
		"/mcp/p/x": "p/x/", "/mcp/p/x/mcp": "p/x/", "/mcp/p/x/all": "p/x/*", "/mcp/p/x/all/mcp": "p/x/*", "/mcp/p/x/all/read": "p/x/*read", "/mcp/p/x/all/write/mcp": "p/x/*write",
	} {
		if place, profile, _ := New(Deps{}).resolveEndpoint(path); place != want || profile != "x" {
			t.Errorf("%s is %q of profile %q, want %q", path, place, profile, want)
		}
	}
}
