package config

import (
	"os"
	"strings"
	"testing"

	"mcpproxy/internal/problem"
)

func TestProxyIsNotItsOwnServer(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, `{"listen": "127.0.0.1:9000", "data_dir": "/srv/mcp", "trusted_hosts": ["mcp.example.com"]}`, func(o *Options) {
		o.Addresses = func() []string { return []string{"127.0.0.1:9001", "[::]:9002"} }
	})
	stdio := func(command string, args ...string) Launch { return Launch{Command: command, Args: args} }
	for _, c := range []struct {
		launch Launch
		itself bool
	}{
		{Launch{URL: "http://127.0.0.1:9000/mcp"}, true},
		{Launch{URL: "http://localhost:9000/mcp/all"}, true},
		{Launch{URL: "http://LOCALHOST.:9000/mcp/servers/x"}, true},
		{Launch{URL: "http://[::1]:9000"}, true},
		{Launch{URL: "https://127.3.2.1:9000/x?y"}, true},
		{Launch{URL: "http://[::ffff:127.0.0.1]:9000/mcp"}, true},
		{Launch{URL: "http://0.0.0.0:9000/mcp"}, true},
		{Launch{URL: "http://a.localhost:9000/mcp"}, true},
		{Launch{URL: "http://user:pass@127.0.0.1:9001/mcp"}, true},
		{Launch{URL: "http://localhost:9002/mcp"}, true},
		{Launch{URL: "http://MCP.example.com:9002/mcp"}, true},
		{Launch{URL: "http://mcp.example.com:9003/mcp"}, false},
		{Launch{URL: "http://localhost:9003/mcp"}, false},
		{Launch{URL: "http://localhost/mcp"}, false},
		{Launch{URL: "http://example.com:9000/mcp"}, false},
		{Launch{URL: "http://192.0.2.1:9002/mcp"}, false},
		{stdio("mcpproxy", "stdio"), true},
		{stdio("/usr/local/bin/mcpproxy", "stdio", "--all"), true},
		{stdio(`C:\Tools\MCPProxy.exe`, "stdio"), os.PathSeparator == '\\'},
		{stdio("mcpproxy", "--json", "stdio"), true},
		{stdio("mcpproxy", "-o", "json", "stdio", "--server", "x"), true},
		{stdio(own, "stdio"), true},
		{stdio("mcpproxy", "--data-dir", "/srv/mcp", "stdio"), true},
		{stdio("mcpproxy", "stdio", "--data-dir=/srv/other"), false},
		{Launch{Command: "mcpproxy", Args: []string{"stdio"}, Env: map[string]string{EnvDataDir: "/srv/other"}}, false},
		{Launch{Command: "mcpproxy", Args: []string{"stdio"}, Env: map[string]string{EnvDataDir: "/srv/mcp"}}, true},
		{Launch{Command: "mcpproxy", Args: []string{"stdio"}, Env: map[string]string{EnvPath: f.path}}, true},
		{stdio("mcpproxy", "demo-upstream", "notes"), false},
		{stdio("mcpproxy", "demo-upstream", "stdio"), false},
		{stdio("other", "stdio"), false},
		{stdio("mcpproxy-tools", "stdio"), false},
	} {
		err := f.CheckNotSelfReference(c.launch)
		if (err != nil) != c.itself || err != nil && problem.From(err).Code != problem.InvalidParameter {
			t.Errorf("%+v: %v", c.launch, err)
		}
		if before := contents(t, f.path); c.itself {
			if err := f.AddServers(nil, NamedEdit{"again", ServerEdit{Launch: c.launch}}); err == nil || contents(t, f.path) != before {
				t.Errorf("%+v was added: %v", c.launch, err)
			}
		}
	}
}

// TestItselfInTheFile checks that a reference does not hide the proxy's own address. An existing entry causes a
// warning, and can be disabled and removed.
func TestItselfInTheFile(t *testing.T) {
	f := open(t, `{"listen": "127.0.0.1:9000", "mcpServers": {"again": {"url": "http://localhost:9000/mcp"}, "a": {"url": "http://localhost:9001/mcp"}}}`,
		func(o *Options) {
			o.Lookup = func(name string) (string, bool) {
				if name == "PORT" {
					return "9000", true
				}
				return env(name)
			}
		})
	warned := func() bool {
		return strings.Contains(strings.Join(f.Warnings(), "\n"), "mcpServers.again is MCPProxy itself")
	}
	if !warned() || strings.Contains(strings.Join(f.Warnings(), "\n"), "mcpServers.a ") {
		t.Errorf("the warnings are %q", f.Warnings())
	}
	if err := f.SetServer(nil, "a", "url", []byte(`"http://localhost:${env:PORT}/mcp"`)); err == nil || !strings.Contains(err.Error(), "its own server") {
		t.Errorf("got %v", err)
	}
	if err := f.SetServer(nil, "again", "trust", []byte(`"manual"`)); err != nil {
		t.Error(err)
	}
	if err := f.SetServer(nil, "again", "enabled", []byte(`false`)); err != nil || warned() {
		t.Errorf("%v, %q", err, f.Warnings())
	}
	if err := f.RemoveServer("again"); err != nil {
		t.Error(err)
	}
}
