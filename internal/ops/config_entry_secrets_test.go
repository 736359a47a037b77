package ops_test

import (
	"reflect"
	"testing"

	"mcpproxy/internal/ops"
)

// TestEntries checks the variables and plain-text secrets found in an entry.
func TestEntries(t *testing.T) {
	got := ops.FindEntryVariablesAndSecrets([]byte(`{"mcpServers": {
		"my.gh": {"command": "x", "args": ["${env:A}/${env:B}"], "env": {"C": "${env:A}", "GITHUB_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}},
		"r": {"url": "https://e.example/mcp", "headers": {"Authorization": "Bearer ${keyring:K}"}}, // mine
	}}`))
	want := []ops.EntryReferences{{Server: "my.gh", Variables: []string{"A", "B"}, Clear: []ops.InClear{{Place: "env.GITHUB_TOKEN", Name: "GITHUB_TOKEN"}}}, {Server: "r"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := ops.FindEntryVariablesAndSecrets([]byte("{")); got != nil {
		t.Errorf("%+v", got)
	}
}
