package clients_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
)

var update = flag.Bool("update", false, "write what is wanted")

func account(goos, home string) clients.Env {
	return clients.Env{GOOS: goos, Home: home, Getenv: func(string) string { return "" }}
}

// TestTable checks for each client where it stores its servers on each system, and which entry is written for MCPProxy.
func TestTable(t *testing.T) {
	var b strings.Builder
	for _, c := range clients.AllClients() {
		fmt.Fprintf(&b, "%s (%s)\n", c.ID, c.Name)
		for _, goos := range []string{"linux", "darwin", "windows"} {
			f := c.TargetFile(account(goos, "/home/me"))
			fmt.Fprintf(&b, "  %-8s %s\n", goos, f.Path)
			if f.Scope != clients.User || len(f.Key) == 0 {
				t.Errorf("%s on %s: %+v", c.ID, goos, f)
			}
		}
		f := c.TargetFile(account("linux", "/home/me"))
		address := clients.ProxyAddress{URL: "http://127.0.0.1:8080/mcp", Command: "/usr/bin/mcpproxy", Args: []string{"stdio"}}
		for _, token := range []string{"", "mcpp_t_1"} {
			address.Token = token
			entry, err := c.NewProxyEntry(address)
			if err != nil {
				t.Fatal(err)
			}
			text, err := textedit.SetValue(nil, f.Format, entry, append(f.Key, clients.DefaultServerName)...)
			if err != nil {
				t.Fatal(c.ID, err)
			}
			if token == "" || c.ID == "claude-desktop" || c.ID == "codex" || c.ID == "goose" || c.ID == "cursor" {
				fmt.Fprintf(&b, "%s\n", text)
			}
			d, err := f.Parse(text)
			if at, found := clients.FindProxyRegistration([]clients.ClientDoc{d}, nil); err != nil || !found || at.Server != clients.DefaultServerName || (clients.EntryURL(at.Entry) == address.URL) != c.HTTP {
				t.Errorf("the entry that was written for %s is not found: %v %+v", c.ID, err, at)
			}
			if c.CommandToAddServer(account("linux", ""), clients.DefaultServerName, address) != nil {
				t.Errorf("CommandToAddServer of %s returns a command without an installed program", c.ID)
			}
		}
	}
	const path = "testdata/table.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || b.String() != string(want) {
		t.Errorf("differs from %s: %v\n%s", path, err, b.String())
	}
}

func TestFind(t *testing.T) {
	for word, id := range map[string]string{"claude": "claude-code", "Claude Code": "claude-code", "CLAUDE_desktop": "claude-desktop", "code": "vscode", "lm studio": "lmstudio", "GitHub Copilot CLI": "copilot"} {
		if c, err := clients.FindClient(word); err != nil || c.ID != id {
			t.Errorf("%s: %s, %v", word, c.ID, err)
		}
	}
	var p *problem.Problem
	if _, err := clients.FindClient("../../etc"); !errors.As(err, &p) || p.Code != problem.NotFound {
		t.Error(err)
	}
}

// TestFound checks that a client is found by its program, directory or file, and that it is not found in an empty
// account.
func TestFound(t *testing.T) {
	for _, c := range clients.AllClients() {
		e := account("linux", t.TempDir())
		if by, found := c.FindInstallation(e); found {
			t.Errorf("%s is found in an empty account by %s", c.ID, by)
		}
		path := c.TargetFile(e).Path
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, found := c.FindInstallation(e); !found {
			t.Errorf("%s is not found although its file exists", c.ID)
		}
	}
	e := account("linux", t.TempDir())
	e.Program = func(name string) string { return map[string]string{"codex": "/usr/bin/codex"}[name] }
	c, _ := clients.FindClient("codex")
	if by, found := c.FindInstallation(e); !found || by != "/usr/bin/codex" {
		t.Error(by, found)
	}
	plain := clients.ProxyAddress{URL: "http://127.0.0.1:8080/mcp"}
	if got := c.CommandToAddServer(e, "mcpproxy", plain); !slices.Equal(got, []string{"codex", "mcp", "add", "mcpproxy", "--url", plain.URL}) {
		t.Error(got)
	}
	plain.Token = "mcpp_t_1"
	if got := c.CommandToAddServer(e, "mcpproxy", plain); got != nil {
		t.Error("the arguments of a program contain a token:", got)
	}
}

func TestOurs(t *testing.T) {
	ours := func(url string) bool { return strings.HasPrefix(url, "http://127.0.0.1:8080/") }
	for name, c := range map[string]struct {
		client string
		texts  []string // lowest precedence first
		server string   // "" if none is expected
	}{
		"nothing":                   {"cursor", []string{`{}`}, ""},
		"by its name":               {"cursor", []string{`{"mcpServers": {"a": {"command": "mcpproxy"}, "mcpproxy": {"url": "http://elsewhere/"}}}`}, "mcpproxy"},
		"by its address":            {"cursor", []string{`{"mcpServers": {"all": {"url": "http://127.0.0.1:8080/mcp"}}}`}, "all"},
		"by its command":            {"cursor", []string{`{"mcpServers": {"all": {"command": "C:\\bin\\MCPProxy.exe"}}}`}, "all"},
		"by a list":                 {"opencode", []string{`{"mcp": {"all": {"type": "local", "command": ["/opt/mcpproxy", "stdio"]}}}`}, "all"},
		"opencode 2":                {"opencode", []string{`{"mcp": {"servers": {"all": {"type": "remote", "url": "http://127.0.0.1:8080/mcp"}}}}`}, "all"},
		"a server called servers":   {"opencode", []string{`{"mcp": {"servers": {"type": "local", "command": ["mcpproxy"]}}}`}, "servers"},
		"its name before a command": {"cursor", []string{`{"mcpServers": {"mcpproxy": {"url": "x"}}}`, `{"mcpServers": {"b": {"command": "mcpproxy"}}}`}, "mcpproxy"},
		"another":                   {"cursor", []string{`{"mcpServers": {"x": {"command": "npx", "args": ["mcpproxy"]}}}`}, ""},
		"wrong types":               {"cursor", []string{`{"mcpServers": {"mcpproxy": "x", "y": {"command": 7, "url": []}}}`}, ""},
		"no object":                 {"cursor", []string{`[]`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := clients.FindClient(c.client)
			if err != nil {
				t.Fatal(err)
			}
			var docs []clients.ClientDoc
			for _, text := range c.texts {
				d, err := client.TargetFile(account("linux", "/home/me")).Parse([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				docs = append(docs, d)
			}
			at, found := clients.FindProxyRegistration(docs, ours)
			if found != (c.server != "") || found && at.Server != c.server {
				t.Errorf("got %+v, %v", at, found)
			}
		})
	}
}

// TestReaches checks that the target of an entry is shown without its secrets.
func TestReaches(t *testing.T) {
	client, _ := clients.FindClient("cursor")
	d, err := client.TargetFile(account("linux", "/home/me")).Parse([]byte(`{"mcpServers": {
		"a": {"url": "https://me:hunter2hunter2@example.org/mcp?token=0123456789abcdef0123"}, "b": {"command": "npx", "args": ["x", "--api-key", "0123456789abcdef0123"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if said := clients.DescribeEntry(d.ServerEntry(name)); said == "" || strings.Contains(said, "hunter2") || strings.Contains(said, "0123456789") {
			t.Error(said)
		}
	}
}
