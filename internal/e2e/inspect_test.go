package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

// followed is a server log that the test follows over HTTP.
type followed struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (d *daemon) follow(t *testing.T, server string) *followed {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+d.address+"/api/v1/servers/"+server+"/logs/follow?lines=50", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", d.key())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("%s, %s", resp.Status, got)
	}
	return &followed{t, bufio.NewScanner(resp.Body)}
}

// until reads up to a line of this stream that contains the text.
func (f *followed) until(stream, text string) {
	f.t.Helper()
	var read []string
	for f.lines.Scan() {
		data, ok := strings.CutPrefix(f.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var l struct {
			At           time.Time
			Stream, Text string
		}
		if err := json.Unmarshal([]byte(data), &l); err != nil || time.Since(l.At).Abs() > time.Minute {
			f.t.Fatalf("%s: %v", data, err)
		}
		if l.Stream == stream && strings.Contains(l.Text, text) {
			return
		}
		read = append(read, data)
	}
	f.t.Fatalf("the stream ended without %s of %s: %v\n%s", text, stream, f.lines.Err(), strings.Join(read, "\n"))
}

// ends checks that the stream ends without another line.
func (f *followed) ends() {
	f.t.Helper()
	for f.lines.Scan() {
	}
	if err := f.lines.Err(); err != nil {
		f.t.Errorf("the stream did not end: %v", err)
	}
}

// A user inspects a server while it runs, writes logs, gets calls and stops.
func TestInspectServers(t *testing.T) {
	t.Parallel()
	command, env := mcptest.ChildCommand(t, "zoo")
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"zoo": map[string]any{"command": command, "env": env, "trust": "auto", "disabled_tools": []string{"echo"}, "call_timeout": "45s"}}})
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, string(config))
	d.awaitTools("zoo:stderr")
	log := d.follow(t, "zoo")
	log.until("mcpproxy", "connected")
	d.legacy().call("call_tool_write", `{"name":"zoo:stderr","args":{"bytes":200}}`)
	log.until("stderr", "this server has a lot to say")

	get := func(path string, to any) {
		t.Helper()
		if status, raw := d.rest("GET", path, ""); status != http.StatusOK || json.Unmarshal(raw, to) != nil {
			t.Fatalf("%s: %d %s", path, status, raw)
		}
	}
	var tail struct {
		Lines   []string
		Entries []struct{ At, Stream, Text string }
	}
	get("/servers/zoo/logs?lines=2", &tail)
	if len(tail.Lines) != 2 || len(tail.Entries) != 2 || tail.Entries[0].Text != tail.Lines[0] || tail.Entries[0].At == "" {
		t.Errorf("%+v", tail)
	}
	var server struct {
		Calls struct {
			Hours []any
			Calls int
		}
		Launch struct {
			Command string
			Env     []string
		}
		DisabledTools   []string `json:"disabled_tools"`
		CallTimeout     string   `json:"call_timeout"`
		DefinitionBytes int      `json:"definition_bytes"`
		Availability    []struct{ State string }
	}
	eventually(t, "the call is counted", func() error {
		if get("/servers/zoo", &server); server.Calls.Calls != 1 {
			return fmt.Errorf("%+v", server)
		}
		return nil
	})
	if len(server.Calls.Hours) != 24 || server.Launch.Command != command || len(server.Launch.Env) != 1 || !slices.Equal(server.DisabledTools, []string{"echo"}) ||
		server.CallTimeout != "45s" || len(server.Availability) == 0 || server.Availability[len(server.Availability)-1].State != "ready" {
		t.Errorf("%+v", server)
	}
	var tools struct {
		Tools []struct {
			Name  string
			Calls int
		}
		Facets struct{ Status map[string]int }
	}
	if get("/tools?sort=calls&limit=1", &tools); len(tools.Tools) != 1 || tools.Tools[0].Name != "zoo:stderr" || tools.Tools[0].Calls != 1 || tools.Facets.Status["disabled_by_config"] != 1 {
		t.Errorf("%+v", tools)
	}
	var found struct {
		Locked    []struct{ Tool, Remedy string }
		AllTokens int `json:"all_tokens"`
	}
	if get("/tools/search?q=echo&include_disabled=true", &found); len(found.Locked) != 1 || found.Locked[0].Tool != "echo" || found.Locked[0].Remedy == "" {
		t.Errorf("%+v", found)
	}
	var status struct {
		Definitions struct {
			Loaded int `json:"loaded_bytes"`
			All    int `json:"all_bytes"`
		}
	}
	get("/status", &status)
	_, raw, _ := d.legacy().post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil)
	var listed struct{ Result json.RawMessage }
	if err := json.Unmarshal(raw, &listed); err != nil {
		t.Fatal(err)
	}
	if status.Definitions.Loaded != len(listed.Result) || status.Definitions.All != server.DefinitionBytes || found.AllTokens != (server.DefinitionBytes+3)/4 {
		t.Errorf("%+v, an agent gets %d bytes, the server has %d", status, len(listed.Result), server.DefinitionBytes)
	}

	if status, raw := d.rest("DELETE", "/servers/zoo", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, raw)
	}
	log.ends()
	if status, _ := d.rest("GET", "/servers/zoo/logs/follow", ""); status != http.StatusNotFound {
		t.Errorf("the log of a removed server: %d", status)
	}
}

// A followed log does not delay a stop of the daemon.
func TestStopEndsFollowedLogs(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, `{"name":"one"}`)
	d := startDaemon(t, upstream.config("s", ""))
	d.awaitTools("s:one")
	log := d.follow(t, "s")
	log.until("mcpproxy", "connected")
	d.stop()
	log.ends() // a stream that outlasts the time for calls is cut off
}
