package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/volume"
)

// hostAnswer is what testdata/apps.mjs writes about one step.
type hostAnswer struct {
	Refused  string
	URI      string
	MimeType string
	Title    string
	Size     int
	Meta     struct {
		UI struct{ CSP map[string][]string }
	} `json:"_meta"`
	IsError bool
	Text    string
	Keys    []string
	UI      *struct {
		ResourceURI string
		Visibility  []string
	}
}

// host runs a client of the official SDK at a path of the daemon. It returns the extensions that the daemon announces,
// and the answer to each step.
func (d *daemon) host(sdk, mode, path string, apps bool, steps ...[]any) (extensions string, answers []json.RawMessage) {
	d.t.Helper()
	modules, node := peers(d.t)
	what, _ := json.Marshal(steps)
	cmd := exec.CommandContext(within(d.t), node, filepath.Join("testdata", "apps.mjs"), modules, sdk, mode, "http://"+d.address+path, map[bool]string{false: "none", true: "apps"}[apps], string(what))
	out, err := cmd.Output()
	var got struct {
		Extensions json.RawMessage
		Answers    []json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil || len(got.Answers) != len(steps) {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			out = append(out, exit.Stderr...)
		}
		d.t.Fatalf("%s %s at %s: %v\n%s", sdk, mode, path, err, out)
	}
	return string(got.Extensions), got.Answers
}

// TestAppsOfRealServers: a host of MCP Apps, which is the official client, uses the official example servers through
// /mcp, /mcp/all and a lane. Two of them have the same user interface. A client without MCP Apps sees what the server
// shows it. A profile hides the user interfaces of other servers. A session reads them after a restart, too.
func TestAppsOfRealServers(t *testing.T) {
	t.Parallel()
	volume.SkipUnlessNightly(t, volume.Peers)
	_, node := peers(t)
	servers := map[string]any{}
	for name, example := range map[string]string{"time": "server-basic-vanillajs", "clone": "server-basic-vanillajs", "monitor": "server-system-monitor", "map": "server-map"} {
		servers[name] = map[string]any{"command": node, "args": []string{installed(t, "@modelcontextprotocol", example, "dist", "index.js"), "--stdio"}, "trust": "auto"}
	}
	installed(t, "@modelcontextprotocol", "client", "package.json")
	config, _ := json.Marshal(map[string]any{"mcpServers": servers, "profiles": map[string]any{"clocks": map[string]any{"servers": []string{"time"}}}})
	d := startDaemon(t, string(config))
	d.awaitTools("time:get-time", "clone:get-time", "monitor:get-system-info", "map:show-map")

	const page, timeURI, cloneURI, mapURI = "text/html;profile=mcp-app", "ui://mcpproxy/time/get-time/mcp-app.html", "ui://mcpproxy/clone/get-time/mcp-app.html", "ui://cesium-map/mcp-app.html"
	const plainURI, announced = "ui://get-time/mcp-app.html", `{"io.modelcontextprotocol/ui":{}}`
	where := map[string]any{"west": 7.0, "south": 50.0, "east": 8.0, "north": 51.0, "label": "Bonn"}
	step := func(s ...any) []any { return s }
	read := func(answer json.RawMessage) (a hostAnswer) {
		t.Helper()
		if err := json.Unmarshal(answer, &a); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		return a
	}
	for _, sdk := range [][2]string{{"client", modernRevision}, {"client", "legacy"}, {"sdk", "legacy"}} {
		for _, path := range []string{"/mcp", "/mcp/all", "/mcp/all/write"} {
			show := func(server, tool string, args any) []any { return step("call", server+"__"+tool, args) }
			if path == "/mcp" {
				show = func(server, tool string, args any) []any {
					return step("call", "call_tool_write", map[string]any{"name": server + ":" + tool, "args": args})
				}
			}
			none := map[string]any{}
			extensions, got := d.host(sdk[0], sdk[1], path, true, step("tools"), step("resources"), show("time", "get-time", none), show("map", "show-map", where),
				step("read", timeURI), step("read", cloneURI), step("read", mapURI), step("read", plainURI), step("read", "ui://other"), step("read", "file:///etc/passwd"), step("call", "poll-system-stats", none))
			fault := func(what string, answer json.RawMessage) {
				t.Helper()
				t.Errorf("%v at %s: %s: %s", sdk, path, what, answer)
			}
			var tools map[string]*struct {
				ResourceURI string
				Visibility  []string
			}
			if err := json.Unmarshal(got[0], &tools); err != nil || extensions != announced {
				fault("tools, with "+extensions, got[0])
			}
			if path == "/mcp" {
				if tools["call_tool_write"] != nil || len(tools) != 6 {
					fault("tools", got[0])
				}
			} else if one := tools["time__get-time"]; one == nil || one.ResourceURI != timeURI || tools["map__show-map"] == nil || tools["map__show-map"].ResourceURI != mapURI ||
				tools["monitor__poll-system-stats"] == nil || strings.Join(tools["monitor__poll-system-stats"].Visibility, " ") != "app" {
				fault("tools", got[0])
			}
			if want := fmt.Sprintf(`[%q,%q,%q,"ui://system-monitor/mcp-app.html"]`, mapURI, cloneURI, timeURI); string(got[1]) != want {
				fault("resources", got[1])
			}
			for i, uri := range []string{timeURI, mapURI} {
				a := read(got[2+i])
				if a.Refused != "" || a.IsError || (path == "/mcp") != (a.UI != nil && a.UI.ResourceURI == uri) {
					fault("call", got[2+i])
				}
			}
			for i, want := range []hostAnswer{{URI: timeURI, Title: "Get Time App"}, {URI: cloneURI, Title: "Get Time App"}, {URI: mapURI, Title: "CesiumJS Globe"}} {
				if a := read(got[4+i]); a.URI != want.URI || a.MimeType != page || a.Title != want.Title || a.Size < 100_000 || (len(a.Meta.UI.CSP["connectDomains"]) > 0) != (want.URI == mapURI) {
					fault("user interface", got[4+i])
				}
			}
			for _, answer := range got[7:10] {
				if read(answer).Refused == "" {
					fault("it must not be read", answer)
				}
			}
			if a := read(got[10]); a.IsError || !strings.Contains(strings.Join(a.Keys, " "), "memory") {
				fault("a call of the user interface", got[10])
			}
			if record := d.newest("type=tool_call"); record.ServerName != "monitor" || record.ToolName != "poll-system-stats" || record.Metadata.ToolVariant != "call_tool_write" {
				t.Errorf("%v at %s: record %+v", sdk, path, record)
			}
		}
	}

	query := step("call", "retrieve_tools", map[string]any{"query": "poll system stats", "limit": 50})
	extensions, got := d.host("client", modernRevision, "/mcp", false, step("call", "call_tool_write", map[string]any{"name": "map:show-map", "args": where}), step("read", mapURI), step("call", "poll-system-stats", map[string]any{}), query)
	if a := read(got[0]); extensions != "null" || a.UI != nil || a.IsError || read(got[1]).Refused == "" || read(got[2]).Refused == "" {
		t.Errorf("without MCP Apps, /mcp: %s %s", extensions, got[:3])
	}
	if a := read(got[3]); strings.Contains(a.Text, "poll-system-stats") || !strings.Contains(a.Text, "get-system-info") {
		t.Errorf("retrieve_tools finds a tool that is not for a model: %s", a.Text)
	}
	if _, got = d.host("sdk", "legacy", "/mcp/all", false, step("tools"), step("read", mapURI)); !strings.Contains(string(got[0]), "poll-system-stats") || read(got[1]).MimeType != page {
		t.Errorf("without MCP Apps, /mcp/all: %s", got)
	}
	for _, path := range []string{"/mcp/p/clocks", "/mcp/p/clocks/all", "/mcp/p/clocks/all/write"} {
		_, got := d.host("client", modernRevision, path, true, step("read", plainURI), step("read", mapURI), step("read", cloneURI), step("read", "ui://mcpproxy/map/cesium-map/mcp-app.html"), step("call", "poll-system-stats", map[string]any{}))
		if a := read(got[0]); a.URI != plainURI || a.MimeType != page {
			t.Errorf("%s: %s", path, got[0])
		}
		for _, answer := range got[1:] {
			if a := read(answer); a.Refused == "" && !a.IsError {
				t.Errorf("%s: outside the profile: %s", path, answer)
			}
		}
	}

	c := d.openAt("/mcp", `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["`+page+`"]}}}`)
	d.stop()
	d.start()
	answer := d.answerTo(c.post(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"` + mapURI + `"}}`))
	if wirejson.Find(answer, "result") == nil || !strings.Contains(string(answer), page) {
		t.Errorf("after a restart: %.500s", answer)
	}
	if _, err := os.Stat(filepath.Join(d.dataDir(), "apps_client")); err != nil {
		t.Error(err)
	}
}
