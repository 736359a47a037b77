package ops_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpproxy/internal/ops"
)

// TestExistingServers checks that a server with the same launch and the same values already exists, and that another
// value makes it another server. If a value is unknown, the server counts as existing and is not removed from the
// client.
func TestExistingServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		entry         string
		have, removed bool
	}{
		"the same":                 {`{"command": "x", "args": ["a"], "env": {"KNOWN_TOKEN": "value"}}`, true, true},
		"another value":            {`{"command": "x", "args": ["a"], "env": {"KNOWN_TOKEN": "other"}}`, false, true},
		"a longer value":           {`{"command": "x", "args": ["a"], "env": {"KNOWN_TOKEN": "value2"}}`, false, true},
		"other arguments":          {`{"command": "x", "args": ["b"], "env": {"KNOWN_TOKEN": "value"}}`, false, true},
		"more arguments":           {`{"command": "x", "args": ["a", "b"], "env": {"KNOWN_TOKEN": "value"}}`, false, true},
		"no arguments":             {`{"command": "x", "env": {"KNOWN_TOKEN": "value"}}`, false, true},
		"a value like an argument": {`{"command": "x", "env": {"KNOWN_TOKEN": "a"}}`, false, true},
		"another variable":         {`{"command": "x", "args": ["a"], "env": {"OTHER_TOKEN": "value"}}`, false, true},
		"a part around":            {`{"url": "https://e.example/mcp", "headers": {"Authorization": "Bearer value"}}`, true, true},
		"without the part":         {`{"url": "https://e.example/mcp", "headers": {"Authorization": "value"}}`, false, true},
		"not known":                {`{"command": "y", "env": {"MISSING_TOKEN": "value"}}`, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `{"mcpServers": {"x": {"command": "x", "args": ["a"], "env": {"KNOWN_TOKEN": "${keyring:KNOWN}"}}, "y": {"command": "y", "env": {"MISSING_TOKEN": "${keyring:MISSING}"}},
				"z": {"url": "https://e.example/mcp", "headers": {"Authorization": "Bearer ${keyring:KNOWN}"}}}}`)
			if _, err := w.store.Set(t.Context(), "KNOWN", "value"); err != nil {
				t.Fatal(err)
			}
			w.write(".cursor/mcp.json", `{"mcpServers": {"s": `+c.entry+`}}`)
			h := w.look("")
			r := w.take(h, ops.ImportOptions{Keyring: true, Remove: true})[0]
			if h.Found[0].AlreadyAdded != c.have || r.Added == c.have || r.Removed != c.removed || (r.Problem == nil) != c.removed {
				t.Errorf("%+v %+v %+v", h.Found[0], r, r.Problem)
			}
		})
	}
}

// TestFileOfTwoClients checks that the servers of a file that two clients share are found once. If two clients have the
// same server in different files, it can be imported from either one, with its secret.
func TestFileOfTwoClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	w.write("project/.mcp.json", `{"mcpServers": {"a": {"command": "a"}}}`)
	if n := len(w.look("").Found); n != 1 {
		t.Errorf("%d servers", n)
	}
	if n := len(w.look("copilot").Found); n != 1 {
		t.Errorf("%d servers of one client", n)
	}
	const same = `{"mcpServers": {"s": {"command": "s", "env": {"S_TOKEN": "value"}}}}`
	w.write(".cursor/mcp.json", same)
	w.write(".kiro/settings/mcp.json", same)
	h := w.look("")
	if out, err := h.ImportServers(t.Context(), ids(h)[2:], ops.ImportOptions{Keyring: true}); err != nil || !out.Results[0].Added || w.value("S_TOKEN") != "value" || strings.Contains(w.read(w.live.Path()), `"value"`) {
		t.Errorf("%+v %v", out, err)
	}
}

// TestUndoOfTheLastImport checks that each undo restores one import.
func TestUndoOfTheLastImport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	for name, file := range map[string]string{"a": ".cursor/mcp.json", "b": ".kiro/settings/mcp.json"} {
		w.write(file, `{"mcpServers": {"`+name+`": {"command": "`+name+`"}}}`)
	}
	w.take(w.look("cursor"), ops.ImportOptions{Remove: true})
	w.take(w.look("kiro"), ops.ImportOptions{Remove: true})
	for _, want := range []string{"import kiro", "import cursor"} {
		if undone := w.undo(""); len(undone) != 1 || undone[0].What != want {
			t.Errorf("%+v, want %s", undone, want)
		}
	}
}

// TestTooMany checks that the number of examined servers is limited and that the result reports this.
func TestTooMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	projects := map[string]any{}
	for p := range 5 {
		servers := map[string]any{}
		for i := range 250 {
			servers[fmt.Sprintf("s%d-%d", p, i)] = map[string]string{"command": "x"}
		}
		projects[fmt.Sprintf("/p%d", p)] = map[string]any{"mcpServers": servers}
	}
	text, _ := json.Marshal(map[string]any{"projects": projects})
	w.write(".claude.json", string(text))
	h := w.look("")
	if len(h.Found) != 1000 || len(h.Broken) != 1 || !strings.Contains(h.Broken[0].Message, "more than 1000") {
		t.Errorf("%d, %+v", len(h.Found), h.Broken)
	}
}
