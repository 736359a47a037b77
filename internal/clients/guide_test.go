package clients_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
)

// TestGuide checks that docs/reference/clients.md contains the entry that is written into each client's file. White space
// may differ. A table of the page contains only the inner part of an object.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	page := bare(string(text))
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
		if !strings.Contains(page, inner) {
			t.Errorf("%s: the page does not have\n%s", c.ID, want)
		}
	}
}

// TestSurfaceTable checks that the page contains the table of surfaces, and that each fact has a source and a date, or
// states that none was found.
func TestSurfaceTable(t *testing.T) {
	const path = "../../docs/reference/clients.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- surfaces -->\n", "<!-- end -->"
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatal("the page has no markers for the table")
	}
	got := head + begin + clients.SurfaceTableMarkdown() + end + tail
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != string(text) {
		t.Errorf("the table in %s is outdated: go test ./internal/clients -update", path)
	}
	for _, c := range clients.AllClients() {
		f := c.SurfaceFacts()
		for i, fact := range []clients.Fact{f.Searches, f.Prefix, f.Names, f.WholeServer, f.KeepLoaded} {
			if _, err := time.Parse(time.DateOnly, fact.Date); fact.Text == "" || fact.Evidence == "" && fact.Text != "not needed" || fact.Evidence != "" && err != nil {
				t.Errorf("%s: column %d is %+v", c.ID, i, fact)
			}
		}
		if searches := strings.HasPrefix(f.Searches.Text, "yes"); searches != (f.Surface == clients.SurfaceLanes) {
			t.Errorf("%s: searches by itself is %v, but auto writes %s", c.ID, searches, f.Surface)
		}
	}
}

func bare(text string) string { return strings.Join(strings.Fields(text), "") }
