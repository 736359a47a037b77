package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
)

// TestSelectAndResultHandles: an agent selects parts of results of servers from npm, and passes a large file from one
// tool to another by its handle.
func TestSelectAndResultHandles(t *testing.T) {
	t.Parallel()
	_, node := peers(t)
	official := func(name string) string { return installed(t, "@modelcontextprotocol", name, "dist", "index.js") }
	dir := t.TempDir()
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers": {
		"files": {"command": %q, "args": [%q, %q]},
		"memory": {"command": %q, "args": [%q], "env": {"MEMORY_FILE_PATH": %q}, "select": {"*_graph": "[.entities[] | .name]"}}}}`,
		node, official("server-filesystem"), dir, node, official("server-memory"), filepath.Join(dir, "memory.json")))
	d.awaitTools("files:write_file", "files:read_text_file", "memory:read_graph")
	a := d.legacy()
	var entities []string
	for i := range 200 {
		entities = append(entities, fmt.Sprintf(`{"name":"e%d","entityType":"thing","observations":["the first observation of it","a second one that is longer"]}`, i))
	}
	if r := a.call("call_tool_write", `{"name":"memory:create_entities","select":"length","args":{"entities":[`+strings.Join(entities, ",")+`]}}`); r.IsError {
		t.Fatal(r.text())
	}

	// The configuration has a default selection. The call can override it, and "." selects everything.
	all := a.call("call_tool_read", `{"name":"memory:read_graph","args":{},"select":"."}`)
	byDefault := a.call("call_tool_read", `{"name":"memory:read_graph","args":{}}`)
	own := a.call("call_tool_read", `{"name":"memory:read_graph","args":{},"select":"[.entities[:2][] | {name}]"}`)
	if len(all.text()) < 20_000 || len(byDefault.text()) > len(all.text())/5 || !strings.HasPrefix(byDefault.text(), `["e0","e1",`) || !strings.HasPrefix(own.text(), `[{"name":"e0"},{"name":"e1"}]`) {
		t.Fatalf("all %d bytes, by default %d: %.300s; selected: %.300s", len(all.text()), len(byDefault.text()), byDefault.text(), own.text())
	}
	handle := handleIn(t, own)
	if r := a.call("read_result", fmt.Sprintf(`{"handle":%q,"select":".entities[7].observations[1]"}`, handle)); r.IsError || !strings.Contains(r.text(), "a second one that is longer") {
		t.Errorf("read_result: %s", r.text())
	}
	if r := a.call("call_tool_read", `{"name":"memory:read_graph","args":{},"select":"reduce .[] as $x (0; 1)"}`); !r.IsError || r.refusal(t).Code != "SELECT_INVALID" {
		t.Errorf("an endless loop: %s", r.text())
	}

	// The file goes from one tool to another in an answer of 14 MB, which contains it twice. The model reads and writes
	// only short texts.
	big := bytes.Repeat([]byte("A line with \"quotes\", a tab\t and é.\n"), 6<<20/38)
	if err := os.WriteFile(filepath.Join(dir, "big.txt"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	read := a.call("call_tool_read", fmt.Sprintf(`{"name":"files:read_text_file","args":{"path":%q},"select":".content | length"}`, filepath.Join(dir, "big.txt")))
	copied := fmt.Sprintf(`{"name":"files:write_file","args":{"path":%q,"content":{"$result":%q,"path":"content[0].text"}}}`, filepath.Join(dir, "copy.txt"), handleIn(t, read))
	wrote := a.call("call_tool_destructive", copied)
	if got, err := os.ReadFile(filepath.Join(dir, "copy.txt")); err != nil || !bytes.Equal(got, big) {
		t.Errorf("%v, %d bytes of %d: %.300s", err, len(got), len(big), wrote.text())
	}
	if n := len(read.text()) + len(read.Content[1].Text) + len(copied) + len(wrote.text()); n > 1024 {
		t.Errorf("the model read and wrote %d bytes", n)
	}
	on := d.newest("type=tool_call")
	if args := string(on.Arguments); strings.Contains(args, handleIn(t, read)) || !strings.Contains(args, `"from":"files:read_text_file"`) {
		t.Errorf("record: %s", args)
	}
	if r := d.stateless().call("call_tool_write", strings.Replace(copied, "copy", "other", 1)); r.IsError && strings.Contains(r.text(), "RESULT_GONE") {
		t.Errorf("the same actor, without a session: %s", r.text())
	}
}

// handleIn returns the handle in the last text of an answer.
func handleIn(t *testing.T, r toolResult) string {
	t.Helper()
	text := r.Content[len(r.Content)-1].Text
	_, rest, ok := strings.Cut(text, "read_result ")
	if !ok {
		t.Fatalf("no handle in %.500s", text)
	}
	end := strings.IndexByte(rest, '}')
	if end < 0 || !json.Valid([]byte(rest[:end+1])) {
		t.Fatalf("no handle in %.500s", text)
	}
	handle, _ := wirejson.String(wirejson.Find([]byte(rest[:end+1]), "handle"))
	return handle
}
