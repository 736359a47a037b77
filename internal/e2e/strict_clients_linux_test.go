//go:build linux

package e2e

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/volume"
)

// TestStrictClients: the official clients in TypeScript, in both major versions and both protocols, list all valid
// definitions on /mcp/all of a server that also has 34 malformed ones. They can read a malformed result.
func TestStrictClients(t *testing.T) {
	t.Parallel()
	volume.SkipUnlessNightly(t, volume.Peers)
	modules, node := peers(t)
	installed(t, "@modelcontextprotocol", "client", "package.json")
	const object = `"inputSchema":{"type":"object"}`
	odd := []string{ // MCPProxy repairs and lists these
		`{"name":"r1"}`, `{"name":"r2","inputSchema":null}`, `{"name":"r3","inputSchema":{}}`, `{"name":"r4","inputSchema":[]}`, `{"name":"r5","inputSchema":{"type":"OBJECT"}}`,
		`{"name":"r6","inputSchema":{"type":["object","null"]}}`, `{"name":"r7","inputSchema":{"anyOf":[{"required":["x"]}]}}`, `{"name":"r8","inputSchema":{"type":"object","required":null,"properties":null}}`,
		`{"name":"r9","inputSchema":{"type":"object","required":{},"properties":[]}}`, `{"name":"s1",` + object + `,"annotations":null,"title":null,"_meta":null,"icons":null}`,
		`{"name":"s2",` + object + `,"annotations":[],"_meta":[],"icons":{}}`, `{"name":"s3",` + object + `,"outputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/X"}}}}`,
		`{"name":"s4",` + object + `,"outputSchema":{"type":"object","properties":{"x":{"type":"string","pattern":"("}}}}`, `{"name":"s5",` + object + `,"outputSchema":{"type":"object","required":"x"}}`,
		`{"name":"s6",` + object + `,"outputSchema":true}`, `{"name":"s7",` + object + `,"outputSchema":{"type":"array","items":{}}}`, `{"name":"s8","inputSchema":{"type":"object","properties":{"x":true,"y":false}}}`,
		// MCPProxy omits the rest.
		`{"name":"t1","inputSchema":"{}"}`, `{"name":"t2","inputSchema":{"type":"string"}}`, `{"name":"t3","inputSchema":{"type":"object","required":"x"}}`, `{"name":"t4","inputSchema":{"type":"object","required":[1]}}`,
		`{"name":"t5","inputSchema":{"type":"object","properties":["x"]}}`, `{"name":"t6","inputSchema":{"type":"object","properties":{"x":"text"}}}`, `{"name":"t7",` + object + `,"description":{"en":"x"}}`,
		`{"name":"t8",` + object + `,"title":5}`, `{"name":"t9",` + object + `,"annotations":{"readOnlyHint":"yes"}}`, `{"name":"u1",` + object + `,"annotations":"none"}`, `{"name":"u2",` + object + `,"icons":"x.png"}`,
		`{"name":"u3",` + object + `,"icons":[{"src":7}]}`, `{"name":"u4",` + object + `,"_meta":"x"}`, `{"name":"u5",` + object + `,"execution":{"taskSupport":"maybe"}}`, `{"name":7,` + object + `}`, `{` + object + `}`, `"tool"`,
	}
	page := `{"tools":[`
	for _, definition := range odd {
		page += definition + ","
	}
	page += mcptest.ToolDefinition("a") + "," + mcptest.ToolDefinition("d") + `]}`
	url := oddServer(t, mcptest.Options{Capabilities: `{"tools":{},"prompts":{},"resources":{}}`}, func(m *wirejson.Message, _ http.Header, body []byte) []byte {
		result := map[string]string{
			"tools/list":               page,
			"prompts/list":             `{"prompts":[{"name":"good"},{"name":"empty","arguments":{}},{"name":"bad","arguments":{"x":1}}]}`,
			"resources/list":           `{"resources":[{"uri":"good://x"},{"uri":"users/me","name":null},{"uri":"bad://x","name":"b","size":"3"}]}`,
			"resources/templates/list": `{"resourceTemplates":[]}`,
			"tools/call":               `{"content":[{"type":"text","text":"well","annotations":null},{"type":"error","text":"odd"}],"_meta":null,"structuredContent":null}`,
		}[m.Method]
		if result == "" {
			return body
		}
		return wirejson.AppendResult(nil, m.ID, json.RawMessage(result))
	})
	config, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": map[string]string{"url": url, "trust": "auto"}}})
	d := startDaemon(t, string(config))
	d.awaitTools("s:d")
	want := struct {
		Tools, Prompts, Resources []string
		Content                   []struct{ Type, Text string }
	}{[]string{"s__a", "s__d"}, []string{"s__empty", "s__good"}, []string{"good://x", "mcpproxy://s/users/me"}, []struct{ Type, Text string }{{"text", "well"}, {"text", "odd"}}}
	for _, definition := range odd[:17] {
		name, _ := wirejson.String(wirejson.Find([]byte(definition), "name"))
		want.Tools = append(want.Tools, "s__"+name)
	}
	slices.Sort(want.Tools)
	wanted, _ := json.Marshal(want)
	for _, c := range []struct{ sdk, mode string }{{"client", modernRevision}, {"client", "legacy"}, {"sdk", "legacy"}} {
		out, err := exec.CommandContext(within(t), node, filepath.Join("testdata", "lists.mjs"), modules, c.sdk, c.mode, "http://"+d.address+"/mcp/all", "s__d").Output()
		got := want
		if err == nil {
			err = json.Unmarshal(out, &got)
		}
		if text, _ := json.Marshal(got); err != nil || string(text) != string(wanted) {
			t.Errorf("%+v: %v\n got %s\nwant %s", c, err, out, wanted)
		}
	}
}
