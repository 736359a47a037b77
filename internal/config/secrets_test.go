package config

import (
	"slices"
	"strings"
	"testing"
)

func TestSecretsOfAServer(t *testing.T) {
	env := map[string]string{"CMD": "from-command", "QUERY": "from-url", "ARG": "from-arg", "TOKEN": "from-header", "KEY": "from-env-key"}
	cfg, err := Parse([]byte(`{"mcpServers":{
		"a": {"command": "/bin/${env:CMD}/x", "args": ["--plain", "--key=${env:ARG}", "${env:ARG}${env:CMD}"], "env": {"K": "${env:KEY}", "DEBUG": "1"}},
		"b": {"url": "https://h.example/mcp?k=${env:QUERY}", "headers": {"X": "Bearer ${env:TOKEN}"}}
	}}`), func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"from-command", "from-arg", "from-env-key"}, {"from-url", "Bearer from-header"}} {
		got := cfg.Servers[i].SecretValues()
		for _, secret := range want {
			if !slices.ContainsFunc(got, func(s string) bool { return s == secret || strings.HasSuffix(s, secret) }) {
				t.Errorf("%s: %q is not in %q", cfg.Servers[i].Name, secret, got)
			}
		}
		if slices.Contains(got, "1") || slices.Contains(got, "") {
			t.Errorf("%s: %q", cfg.Servers[i].Name, got)
		}
	}
}
