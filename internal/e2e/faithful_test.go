package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// shared returns a path below the folder of shared test data. It skips the test if the folder is missing.
func shared(t testing.TB, path string) string {
	t.Helper()
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	full := filepath.Join(dir, path)
	if _, err := os.Stat(full); err != nil {
		t.Skipf("the shared data is not available: %v (set MCPPROXY_SHARED)", err)
	}
	return full
}

// realServers returns the recorded tool definitions of each real server.
func realServers(t testing.TB) map[string][]json.RawMessage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shared(t, "real-servers"), "*.tools.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tool lists: %v", err)
	}
	all := map[string][]json.RawMessage{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".tools.json")] = list.Tools
	}
	return all
}

// exact decodes without losing digits.
func exact(t testing.TB, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %.200s", err, raw)
	}
	return v
}

func TestRealToolsStayUnchanged(t *testing.T) {
	t.Parallel()
	servers := realServers(t)
	servers["big"] = []json.RawMessage{json.RawMessage(`{"name":"big_numbers","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993,"minimum":-9223372036854775809,"multipleOf":1.0,"default":1e300}},"$defs":{"x":{"oneOf":[true,false]}}},"annotations":{"title":"Big","openWorldHint":false,"vendor":1}}`)}
	var config strings.Builder
	var all []string
	for server, tools := range servers {
		definitions := make([]string, len(tools))
		for i, raw := range tools {
			definitions[i] = string(raw)
		}
		fmt.Fprintf(&config, `%q:{"url":%q,"trust":"auto"},`, server, startUpstream(t, definitions...).URL)
		all = append(all, server+":"+toolName(t, tools[len(tools)-1]))
	}
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{%s}}`, config.String()))
	d.awaitTools(all...)
	a, checked := d.legacy(), 0
	for server, tools := range servers {
		for _, raw := range tools {
			checkUnchanged(t, a, server, raw)
			checked++
		}
	}
	t.Logf("%d tools of %d servers", checked, len(servers))
}

func toolName(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	var d struct{ Name string }
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	return d.Name
}

func checkUnchanged(t *testing.T, a *agent, server string, raw json.RawMessage) {
	t.Helper()
	id := server + ":" + toolName(t, raw)
	r := a.call("retrieve_tools", fmt.Sprintf(`{"query":%q,"limit":1}`, id))
	var answer struct {
		Tools []struct {
			Name        string
			Description string
			InputSchema json.RawMessage
			Annotations map[string]any
		}
	}
	if err := json.Unmarshal(r.StructuredContent, &answer); err != nil || len(answer.Tools) != 1 || answer.Tools[0].Name != id {
		t.Errorf("%s is not the first hit for its own name: %.300s", id, r.StructuredContent)
		return
	}
	if !reflect.DeepEqual(exact(t, r.StructuredContent), exact(t, []byte(r.text()))) {
		t.Errorf("%s: the text differs from the structured content", id)
	}
	var sent struct {
		Description string
		InputSchema json.RawMessage
		Annotations map[string]any
	}
	if err := json.Unmarshal(raw, &sent); err != nil {
		t.Fatal(err)
	}
	got := answer.Tools[0]
	if got.Description != sent.Description {
		t.Errorf("%s: the description changed", id)
	}
	if !reflect.DeepEqual(exact(t, got.InputSchema), exact(t, sent.InputSchema)) {
		t.Errorf("%s: the schema changed:\n got %s\nwant %s", id, got.InputSchema, sent.InputSchema)
	}
	want := map[string]any{}
	for _, hint := range []string{"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		if v, said := sent.Annotations[hint]; said {
			want[hint] = v
		}
	}
	if got.Annotations == nil || !reflect.DeepEqual(got.Annotations, want) {
		t.Errorf("%s: hints %v, want %v", id, got.Annotations, want)
	}
}
