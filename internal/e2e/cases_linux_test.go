package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// serverCase is the test of one line of servers.jsonl.
type serverCase struct {
	run       func(*testing.T)
	elsewhere func(*testing.T) // a separate test that covers the line, if run is nil
}

// serverCases maps each line of the case list to its test.
func serverCases() map[string]serverCase {
	return map[string]serverCase{
		"session forgotten: after a good call drops its sessions and answers 400 with error -32600 'Session not found', or 410, or 200 with error -32001, or 400 with plain text": {run: forgottenSessions},
		"malformed tool: lists four tools, one with annotations null / inputSchema {} / required null / a top-level anyOf without type":                                           {run: malformedTools},
		`cursor: four tools and nextCursor "8" on every page`:                                                        {run: repeatedCursor},
		"cursor: nextCursor as a number":                                                                             {run: numericCursor},
		"revision: speaks 2024-10-07":                                                                                {run: draftRevision},
		"ids: echoes request ids as text":                                                                            {run: idsAsText},
		"body: UTF-8 BOM before JSON; gzip sent unasked (JSON and SSE)":                                              {run: oddBodies},
		"capabilities: capabilities {} and yet lists tools":                                                          {run: noCapabilities},
		"sse: older SSE: an event named ping before endpoint":                                                        {run: pingBeforeEndpoint},
		"orphan: sh -c 'server; true' where the server outlives the end of stdin; kill -9 of the daemon":             {run: orphans},
		"client path: /mcp/, /mcp/all/, /mcp/servers/x/":                                                             {run: trailingSlashes},
		"unset variable: one enabled server uses ${env:NOPE}":                                                        {elsewhere: TestUnsetVariable},
		"changed prompt: changes a prompt without announcing it; prompts/get right after prompts/list has hidden it": {run: silentlyChangedPrompt},
	}
}

// TestServerCases runs the test for each line of ../shared/cases/servers.jsonl. It fails for a line without a test, and
// for a line whose text has changed since its test was written.
func TestServerCases(t *testing.T) {
	t.Parallel()
	shared := os.Getenv("MCPPROXY_SHARED")
	if shared == "" {
		shared = "../../../shared"
	}
	file, err := os.Open(filepath.Join(shared, "cases", "servers.jsonl"))
	if err != nil {
		t.Skipf("the shared test data is not available: %v", err)
	}
	defer file.Close()
	cases := serverCases()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var line struct{ Kind, Server, Client, Config string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		key := line.Kind + ": " + line.Server + line.Client + line.Config
		c, known := cases[key]
		delete(cases, key)
		switch {
		case !known:
			t.Errorf("no test for %s", lines.Bytes())
		case c.run != nil:
			t.Run(key, func(t *testing.T) { t.Parallel(); c.run(t) })
		}
	}
	for key := range cases {
		t.Errorf("a test without a line: %s", key)
	}
}

// alteration returns a changed answer to the message m.
type alteration func(m *wirejson.Message, header http.Header, body []byte) []byte

// oddServer is a server over HTTP with the tools a, b, c and d whose answers are altered.
func oddServer(t *testing.T, opt mcptest.Options, alter alteration) string {
	opt.NoStream = true
	var tools []mcptest.Tool
	for _, name := range fourTools {
		tools = append(tools, mcptest.Tool{Definition: mcptest.ToolDefinition(name), Handle: sayWell})
	}
	s := mcptest.New(opt, tools...)
	return mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, _ := io.ReadAll(r.Body) // an incomplete request is not a message
		r.Body = io.NopCloser(bytes.NewReader(request))
		m, _ := wirejson.ParseServerMessage(request)
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		body, status := rec.Body.Bytes(), rec.Code
		if len(body) > 0 && alter != nil {
			body, status = alter(&m, rec.Header(), body), http.StatusOK
		}
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = w.Write(body) // the client may have disconnected
	})).URL
}

var fourTools = []string{"a", "b", "c", "d"}

func sayWell(*mcptest.Call) (json.RawMessage, error) {
	return json.RawMessage(`{"content":[{"type":"text","text":"well"}]}`), nil
}

// listing returns an alteration of tools/list. page returns the result without its closing brace.
func listing(page func(params string) string) alteration {
	return func(m *wirejson.Message, _ http.Header, body []byte) []byte {
		if m.Method != "tools/list" {
			return body
		}
		return wirejson.AppendResult(nil, m.ID, json.RawMessage(page(string(m.Params))+`,"resultType":"complete","ttlMs":0,"cacheScope":"private"}`))
	}
}

func toolsPage(names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, mcptest.ToolDefinition(name))
	}
	return `{"tools":[` + strings.Join(all, ",") + `]`
}

// oddity is the URL of a server and a part of the warning about it, or "" if no warning is expected.
type oddity struct{ url, warning string }

// Warnings about lists that /mcp/servers/NAME passes on unchanged, so that a client sees them as it would without
// MCPProxy. Only an endless list is cut.
const (
	repeatsCursor = "the same next page"
	numberCursor  = "by a number"
)

// bothEras returns two servers with the same alteration, one for the legacy protocol and one for the modern protocol.
func bothEras(t *testing.T, opt mcptest.Options, alter alteration, warning string) map[string]oddity {
	modern := opt
	modern.Modern = true
	return map[string]oddity{"legacy": {oddServer(t, opt, alter), warning}, "modern": {oddServer(t, modern, alter), warning}}
}

// checkOddities checks that each server's four tools are listed and callable on every endpoint, in both protocols, and
// that upstream get and doctor show the warning.
func checkOddities(t *testing.T, servers map[string]oddity) {
	t.Helper()
	entries := map[string]any{}
	var tools []string
	for name, s := range servers {
		entries[name] = map[string]string{"url": s.url, "trust": "auto"}
		tools = append(tools, name+":d")
	}
	config, _ := json.Marshal(map[string]any{"mcpServers": entries})
	d := startDaemon(t, string(config))
	d.awaitTools(tools...)
	_, doctor, _ := d.cli("doctor")
	for name, s := range servers {
		d.checkFourTools(name, s.warning)
		_, get, _ := d.cli("upstream", "get", name)
		if s.warning == "" && strings.Contains(get, "Warnings") || !strings.Contains(get, s.warning) || !strings.Contains(doctor, s.warning) {
			t.Errorf("%s: no warning %q in\n%s\n%s", name, s.warning, get, doctor)
		}
	}
}

// checkFourTools checks that every endpoint lists the tools a, b, c and d of a server, and calls two of them.
func (d *daemon) checkFourTools(server, warning string) {
	d.t.Helper()
	for _, version := range []string{legacyRevision, modernRevision} {
		for path, prefix := range map[string]string{"/mcp/all": server + "__", "/mcp/servers/" + server: ""} {
			if warning == numberCursor && prefix == "" {
				continue
			}
			var names []string
			for tool, err := range d.sdkAt(path, version, nil).Tools(within(d.t), nil) {
				if err != nil {
					d.t.Errorf("%s, %s %s: %v", server, path, version, err)
					break
				}
				if name, ours := strings.CutPrefix(tool.Name, prefix); ours {
					names = append(names, name)
				}
			}
			if warning == repeatsCursor && prefix == "" && slices.Equal(names, slices.Concat(fourTools, fourTools)) {
				continue // this list repeats a page
			}
			if !slices.Equal(names, fourTools) {
				d.t.Errorf("%s, %s %s: tools %q", server, path, version, names)
			}
		}
	}
	for _, tool := range fourTools {
		if status, body := d.rest("GET", "/servers/"+server+"/tools/"+tool, ""); status != http.StatusOK {
			d.t.Errorf("%s: %d %s", server, status, body)
		}
	}
	for _, tool := range []string{"a", "d"} {
		for _, call := range d.everyCall(server, tool) {
			if what := call(); what != "ok" {
				d.t.Errorf("%s:%s: %s", server, tool, what)
			}
		}
	}
}

// everyCall returns all ways to call a tool that answers "well". Each returns "ok", or a description of the unexpected
// answer.
func (d *daemon) everyCall(server, tool string) map[string]func() string {
	calls := map[string]func() string{
		"REST": func() string {
			status, body := d.rest("POST", "/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_destructive","name":"%s:%s","args":{}}`, server, tool))
			if status != http.StatusOK || !bytes.Contains(body, []byte(`"well"`)) {
				return fmt.Sprintf("REST: %d %s", status, body)
			}
			return "ok"
		},
		"CLI": func() string {
			code, stdout, stderr := d.cli("call", "tool-destructive", server+":"+tool)
			if code != 0 || strings.TrimSpace(stdout) != "well" {
				return fmt.Sprintf("CLI: %d %s %s", code, stdout, stderr)
			}
			return "ok"
		},
	}
	for _, s := range mcptest.AllSurfaces() {
		c := d.caller(s, server)
		d.t.Cleanup(c.Close)
		calls[s.String()] = func() string {
			if o := c.Call(tool, "{}", "well"); o.What != "ok" {
				return s.String() + ": " + o.What
			}
			return "ok"
		}
	}
	return calls
}

// amnesiac is a server over HTTP that forgets its sessions on request. It answers a request in a forgotten session with
// answer.
type amnesiac struct {
	*mcptest.Server
	answer func(w http.ResponseWriter, id string)

	mu       sync.Mutex // guards the fields below
	forgot   map[string]bool
	sessions []string
	always   bool // it forgets each session immediately
	runs     int
}

func newAmnesiac(answer func(http.ResponseWriter, string)) *amnesiac {
	s := &amnesiac{answer: answer, forgot: map[string]bool{}}
	s.Server = mcptest.New(mcptest.Options{NoStream: true}, mcptest.Tool{Definition: mcptest.ToolDefinition("d"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs++
		return sayWell(c)
	}})
	return s
}

func (s *amnesiac) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // an incomplete request is not a message
	r.Body = io.NopCloser(bytes.NewReader(body))
	m, _ := wirejson.ParseServerMessage(body)
	s.mu.Lock()
	id := r.Header.Get("Mcp-Session-Id")
	forgotten := s.forgot[id] || s.always && id != "" && m.Method == "tools/call"
	s.mu.Unlock()
	if forgotten {
		s.answer(w, string(m.ID))
		return
	}
	s.Server.ServeHTTP(w, r)
	if made := w.Header().Get("Mcp-Session-Id"); made != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sessions = append(s.sessions, made)
	}
}

// forget deletes all sessions and returns the number of sessions and of calls so far.
func (s *amnesiac) forget() (sessions, runs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.sessions {
		s.forgot[id] = true
	}
	return len(s.sessions), s.runs
}

func (s *amnesiac) counts() (sessions, runs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions), s.runs
}

func forgottenSessions(t *testing.T) {
	answer := func(status int, mediaType, text string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", mediaType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(text, "ID", id)) // the client may have disconnected
		}
	}
	servers, config := map[string]*amnesiac{}, []string{}
	for name, answer := range map[string]func(http.ResponseWriter, string){
		"code":  answer(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}`),
		"gone":  answer(410, "text/plain", ""),
		"found": answer(200, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}`),
		"plain": answer(400, "text/plain", "Bad Request: no such session"),
		"never": answer(400, "text/plain", "Bad Request: no such session"),
	} {
		servers[name] = newAmnesiac(answer)
		config = append(config, fmt.Sprintf(`%q:{"url":%q,"trust":"auto"}`, name, mcptest.Serve(t, servers[name]).URL))
	}
	d := startDaemon(t, `{"mcpServers":{`+strings.Join(config, ",")+`}}`)
	for name, s := range servers {
		d.awaitTools(name + ":d")
		for how, call := range d.everyCall(name, "d") {
			if what := call(); what != "ok" {
				t.Fatalf("%s: the first call: %s", name, what)
			}
			if name == "never" {
				continue
			}
			sessions, runs := s.forget()
			what := call()
			if how == "/mcp/servers legacy" && what == how+": session over" { // the protocol's answer to a client of one server
				what = call()
			}
			if what != "ok" {
				t.Errorf("%s: the call that notices it: %s", name, what)
			}
			now, ran := s.counts()
			if ran != runs+1 || now != sessions+1 {
				t.Errorf("%s, %s: %d runs and %d new sessions for one call", name, how, ran-runs, now-sessions)
			}
			if what := call(); what != "ok" {
				t.Errorf("%s: the next call: %s", name, what)
			}
		}
		if name != "never" {
			d.awaitState(name, "ready")
		}
	}
	never := servers["never"]
	never.mu.Lock()
	never.always = true
	never.mu.Unlock()
	eventuallyIn(t, 4*patience, "a server that forgets each session is not ready", func() error { // it fails for a minute first
		for _, call := range d.everyCall("never", "d") {
			if what := call(); what == "ok" {
				return fmt.Errorf("a call worked")
			}
		}
		if s, err := d.server("never"); err != nil || s.State == "ready" {
			return fmt.Errorf("%+v %v", s, err)
		}
		return nil
	})
	if what := d.everyCall("code", "d")["REST"](); what != "ok" {
		t.Errorf("the other server: %s", what)
	}
}

func malformedTools(t *testing.T) {
	servers := map[string]oddity{}
	for name, fourth := range map[string]string{
		"annotations": `{"name":"d","description":"does d","inputSchema":{"type":"object"},"annotations":null}`,
		"empty":       `{"name":"d","description":"does d","inputSchema":{}}`,
		"required":    `{"name":"d","description":"does d","inputSchema":{"type":"object","required":null}}`,
		"any":         `{"name":"d","description":"does d","inputSchema":{"anyOf":[{"type":"object"},{"type":"object","required":["x"]}]}}`,
	} {
		page := strings.TrimSuffix(toolsPage("a", "b", "c"), "]") + "," + fourth + "]"
		for era, s := range bothEras(t, mcptest.Options{}, listing(func(string) string { return page }), "") {
			servers[name+"-"+era] = s
		}
	}
	checkOddities(t, servers)
}

func repeatedCursor(t *testing.T) {
	checkOddities(t, bothEras(t, mcptest.Options{}, listing(func(string) string { return toolsPage(fourTools...) + `,"nextCursor":"8"` }), repeatsCursor))
}

func numericCursor(t *testing.T) {
	checkOddities(t, bothEras(t, mcptest.Options{}, listing(func(params string) string {
		if strings.Contains(params, `"cursor":2`) {
			return toolsPage("c", "d")
		}
		return toolsPage("a", "b") + `,"nextCursor":2`
	}), numberCursor))
}

func draftRevision(t *testing.T) {
	checkOddities(t, map[string]oddity{"draft": {oddServer(t, mcptest.Options{Protocol: "2024-10-07"}, nil), ""}})
}

func idsAsText(t *testing.T) {
	checkOddities(t, bothEras(t, mcptest.Options{}, func(m *wirejson.Message, _ http.Header, body []byte) []byte {
		return bytes.Replace(body, append([]byte(`"id":`), m.ID...), []byte(`"id":"`+string(bytes.Trim(m.ID, `"`))+`"`), 1)
	}, ""))
}

func oddBodies(t *testing.T) {
	mark := func(_ *wirejson.Message, _ http.Header, body []byte) []byte { return append([]byte("\ufeff"), body...) }
	zip := func(_ *wirejson.Message, header http.Header, body []byte) []byte {
		header.Set("Content-Encoding", "gzip")
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body) // a write to memory does not fail
		_ = z.Close()
		return b.Bytes()
	}
	servers := map[string]oddity{}
	for name, s := range map[string]struct {
		events bool
		alter  alteration
	}{"bom": {false, mark}, "bom-events": {true, mark}, "gzip": {false, zip}, "gzip-events": {true, zip}} {
		for era, s := range bothEras(t, mcptest.Options{Events: s.events}, s.alter, "") {
			servers[name+"-"+era] = s
		}
	}
	checkOddities(t, servers)
}

func noCapabilities(t *testing.T) {
	checkOddities(t, bothEras(t, mcptest.Options{NoTools: true}, nil, "does not declare the capability"))
}

// pingBeforeEndpoint tests a server of the official SDK that sends another event before the endpoint event.
func pingBeforeEndpoint(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "old", Version: "1"}, nil)
	for _, name := range fourTools {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "well"}}}, nil
		})
	}
	sse := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": hello\n\nevent: ping\ndata: 2026-11-28\n\n") // the client may have disconnected
		}
		sse.ServeHTTP(w, r)
	}))
	t.Cleanup(s.CloseClientConnections)
	checkOddities(t, map[string]oddity{"found": {s.URL, ""}})
}

func orphans(t *testing.T) {
	command, env := mcptest.ChildCommand(t, "deaf")
	mark := "MCPPROXY_E2E_ORPHAN=" + t.TempDir()
	name, value, _ := strings.Cut(mark, "=")
	env[name] = value
	config, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"s": map[string]any{"trust": "auto", "command": "sh", "args": []string{"-c", `"$0"; true`, command}, "env": env}}})
	d := startDaemon(t, string(config))
	d.awaitTools("s:echo")
	before := processesWith(mark)
	if len(before) != 2 {
		t.Fatalf("processes of the shell and the server: %q", before)
	}
	d.kill()
	d.start()
	d.awaitTools("s:echo")
	eventually(t, "the processes of the first run have ended", func() error {
		now := processesWith(mark)
		if slices.ContainsFunc(before, func(p string) bool { return slices.Contains(now, p) }) || len(now) != 2 {
			return fmt.Errorf("before %q, now %q", before, now)
		}
		return nil
	})
}

func trailingSlashes(t *testing.T) {
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"x":{"url":%q,"trust":"auto"}}}`, oddServer(t, mcptest.Options{}, nil)))
	d.awaitTools("x:d")
	for _, version := range []string{legacyRevision, modernRevision} {
		for _, path := range []string{"/mcp", "/mcp/all", "/mcp/servers/x"} {
			var lists [2]string
			for i, slash := range []string{"", "/"} {
				s := d.sdkAt(path+slash, version, nil)
				list, err := s.ListTools(within(t), nil)
				if err != nil || len(list.Tools) < 4 {
					t.Fatalf("%s%s %s: %+v %v", path, slash, version, list, err)
				}
				text, _ := json.Marshal(list)
				lists[i] = string(text)
				if path == "/mcp" {
					continue
				}
				if r, err := s.CallTool(within(t), &mcp.CallToolParams{Name: list.Tools[3].Name}); err != nil || r.IsError {
					t.Errorf("%s%s %s: %+v %v", path, slash, version, r, err)
				}
			}
			if lists[0] != lists[1] {
				t.Errorf("%s %s: %s and %s", path, version, lists[0], lists[1])
			}
		}
	}
}

func silentlyChangedPrompt(t *testing.T) {
	for _, modern := range []bool{false, true} {
		o := startOffering(t, modern, offersOf("Reads what is written down."))
		d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"s":{"url":%q,"trust":"manual"}}}`, o.URL))
		d.awaitTools("s:t")
		eventually(t, "all definitions are held", func() error { return d.waits(5, "s") })
		if code, out, errs := d.cli("upstream", "approve", "s", "--yes"); code != 0 {
			t.Fatalf("%d %s %s", code, out, errs)
		}
		for use, answer := range d.everyUse("s") {
			if !strings.Contains(answer, `"result"`) {
				t.Errorf("modern %v, %s: %s", modern, use, answer)
			}
		}
		o.say(offersOf("Reads what is written down, and sends it away."))
		// A list is valid for four times as long as it took to load, even while clients use it.
		eventually(t, "the uses alone make the change visible", func() error {
			for use, answer := range d.everyUse("s") {
				if !strings.Contains(answer, "OFFER_LOCKED") {
					return fmt.Errorf("modern %v, %s: %s", modern, use, answer)
				}
			}
			return nil
		})
		reached := len(o.uses())
		locked := func(when string) {
			for use, answer := range d.everyUse("s") {
				if !strings.Contains(answer, "OFFER_LOCKED") {
					t.Errorf("modern %v, %s %s: %s", modern, when, use, answer)
				}
			}
			for _, path := range []string{"/mcp/servers/s", "/mcp/all"} {
				name := map[string]string{"/mcp/servers/s": "never", "/mcp/all": "s__never"}[path]
				resp, err := d.openAt(path, `{}`).post(`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"` + name + `"}}`)
				if answer := readAll(t, resp, err); !strings.Contains(answer, "OFFER_LOCKED") {
					t.Errorf("modern %v, %s %s: a name never listed: %s", modern, when, path, answer)
				}
				resp, err = d.tryModernAt(path, "prompts/get", name, `"name":"`+name+`"`, "")
				if answer := readAll(t, resp, err); !strings.Contains(answer, "OFFER_LOCKED") {
					t.Errorf("modern %v, %s %s, modern: a name never listed: %s", modern, when, path, answer)
				}
			}
		}
		locked("before any list")
		if in := holds(d.everyList("s"), "sends it away"); len(in) != 0 {
			t.Errorf("modern %v: listed in %q", modern, in)
		}
		locked("right after the lists")
		if now := o.uses(); len(now) != reached {
			t.Errorf("modern %v: %q reached the server", modern, now[reached:])
		}
	}
}
