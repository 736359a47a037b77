package clients_test

import (
	"os"
	"strings"
	"testing"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
)

// TestGuide: docs/guide/clients.md says what is written into each client's file, but
// for space between words; a table of the guide has the inner part of an object.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := bare(string(text))
	for _, c := range clients.AllClients() {
		f := c.TargetFile(account("linux", "/home/me"))
		entry, err := c.NewProxyEntry(clients.ProxyAddress{URL: "http://127.0.0.1:8080/mcp", Command: "/usr/local/bin/mcpproxy", Args: []string{"stdio"}})
		if err != nil {
			t.Fatal(err)
		}
		want, err := textedit.SetValue(nil, f.Format, entry, append(f.Key, clients.DefaultServerName)...)
		if err != nil {
			t.Fatal(c.ID, err)
		}
		all := bare(string(want))
		inner := strings.TrimSuffix(strings.TrimPrefix(all, "{"), "}")
		if !strings.Contains(guide, inner) {
			t.Errorf("%s: the guide does not have\n%s", c.ID, want)
		}
	}
}

func bare(text string) string { return strings.Join(strings.Fields(text), "") }
