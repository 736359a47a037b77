//go:build linux

package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"mcpproxy/internal/testutil/volume"
)

// TestStrictClients: the official clients in TypeScript, in both major versions and both protocols, list all valid and
// repaired definitions of a server with malformed ones, on each surface that combines servers. They can read a malformed
// result.
func TestStrictClients(t *testing.T) {
	t.Parallel()
	volume.SkipUnlessNightly(t, volume.Peers)
	modules, node := peers(t)
	installed(t, "@modelcontextprotocol", "client", "package.json")
	d := malformedDaemon(t)
	type answer struct {
		malformedLists
		Content []struct{ Type, Text string }
	}
	lists := func(sdk, mode, path, call, arguments string) (got answer, out []byte, err error) {
		out, err = exec.CommandContext(within(t), node, filepath.Join("testdata", "lists.mjs"), modules, sdk, mode, "http://"+d.address+path, call, arguments).Output()
		if err == nil {
			err = json.Unmarshal(out, &got)
		}
		return got, out, err
	}
	calls := map[string]string{"/all": "s__d", "/all/read": "s__a", "/all/write": "s__b", "/all/destructive": "s__c"}
	for _, c := range []struct{ sdk, mode string }{{"client", modernRevision}, {"client", "legacy"}, {"sdk", "legacy"}} {
		for path, want := range malformedSurfaces() {
			call := calls[path[len("/mcp"):]]
			if call == "" {
				call = calls[path[len("/mcp/p/few"):]]
			}
			got, out, err := lists(c.sdk, c.mode, path, call, "{}")
			if err != nil || !equalLists(got.malformedLists, want) || len(got.Content) != 2 || got.Content[0].Text != "well" || got.Content[1].Text != "odd" {
				t.Errorf("%+v %s: %v\n got %s\nwant %q", c, path, err, out, want)
			}
		}
		for _, path := range []string{"/mcp", "/mcp/p/few"} {
			got, out, err := lists(c.sdk, c.mode, path, "retrieve_tools", `{"query":"apples","limit":100,"detail":"full"}`)
			if err != nil || len(got.Tools) == 0 || len(got.Content) != 1 {
				t.Errorf("%+v %s: %v: %s", c, path, err, out)
			}
		}
	}
}
