package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/volume"
)

// These tests compare two actors: one with a scope in a world with 52 tools, and one without a scope in a world that
// contains only the tools of that scope. In addition, a model predicts the outcome of each call. No answer may contain
// text of a tool, a server, a prompt or a resource outside the scope.

// scopeTool is a tool of the test world.
type scopeTool struct {
	server, name string
	lane         int // the effective lane: 1 read, 2 write, 3 destructive
	call         int // the lane of the tool variant to call it with
	canary       string
}

// scopeOperations returns the number of random operations.
func scopeOperations() int { return volume.FullOrQuick(10_000, 2_000) }

var (
	scopeServers = []string{"alphaq", "bravoq", "charlieq", "deltaq", "echoq", "foxtrotq"}
	scopeLanes   = []string{"", "read", "write", "destructive"}
	scopeVerbs   = []struct {
		verb, hints string
		lane, call  int
	}{
		{"get", `{"readOnlyHint":true}`, 1, 1}, {"list", `{"readOnlyHint":true}`, 1, 1}, {"search", `{"readOnlyHint":true,"destructiveHint":false}`, 1, 1},
		{"create", `{"readOnlyHint":false,"destructiveHint":false}`, 2, 2}, {"update", `{"destructiveHint":false}`, 2, 2}, {"delete", `{"destructiveHint":true}`, 3, 3},
		{"fetch", "", 2, 2}, {"remove", "", 3, 2}, {"both", `{"readOnlyHint":true,"destructiveHint":true}`, 3, 3},
	}
)

// scopeTools returns all tools. The disabled server foxtrotq has seven.
func scopeTools() (all []scopeTool) {
	for s, server := range scopeServers {
		for i, v := range scopeVerbs {
			if server == "foxtrotq" && i >= 7 {
				break
			}
			all = append(all, scopeTool{server, v.verb + "_" + []string{"issue", "note", "file", "user", "page", "mail"}[s], v.lane, v.call, fmt.Sprintf("kw%02d%dz", s, i)})
		}
	}
	return all
}

// definition returns a definition with words that many tools share and one unique word.
func (x scopeTool) definition() string {
	hints := scopeVerbs[slices.IndexFunc(scopeVerbs, func(v struct {
		verb, hints string
		lane, call  int
	}) bool {
		return strings.HasPrefix(x.name, v.verb+"_")
	})].hints
	if hints != "" {
		hints = `,"annotations":` + hints
	}
	return fmt.Sprintf(`{"name":%q,"description":"%s one by its number, as %s does. Repository, calendar and %s.","inputSchema":{"type":"object","properties":{"n":{"type":"integer","description":"number %s"}}}%s}`,
		x.name, strings.ReplaceAll(x.name, "_", " "), x.canary, x.name, x.canary, hints)
}

// scopeWorld starts the servers of the tools and returns the servers section of the configuration.
func scopeWorld(t *testing.T, tools []scopeTool, servers []string, reads bool) string {
	var out []string
	for _, server := range servers {
		var of []mcptest.Tool
		for _, x := range tools {
			if x.server != server {
				continue
			}
			of = append(of, mcptest.Tool{Definition: x.definition(), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
				text := "made by " + x.canary
				if c.IntArgument("n", 0) > 0 {
					text = strings.Repeat(text+". ", 400) // long enough to be cut
				}
				return fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, text), nil
			}})
		}
		capabilities := `{"tools":{"listChanged":true}}`
		if reads {
			capabilities = `{"tools":{"listChanged":true},"prompts":{},"resources":{}}`
		}
		upstream := mcptest.Serve(t, mcptest.New(mcptest.Options{Capabilities: capabilities,
			Other: func(method string, _ *mcptest.Call) (json.RawMessage, error) {
				switch method {
				case "prompts/list":
					return fmt.Appendf(nil, `{"prompts":[{"name":"ask_%s"}]}`, server), nil
				case "resources/list":
					return fmt.Appendf(nil, `{"resources":[{"uri":"%s://one","name":"one"},{"uri":"same://all","name":"all"}]}`, server), nil
				case "resources/templates/list":
					return json.RawMessage(`{"resourceTemplates":[]}`), nil
				case "prompts/get":
					return fmt.Appendf(nil, `{"messages":[{"role":"user","content":{"type":"text","text":"prompt of %s"}}]}`, server), nil
				case "resources/read":
					return fmt.Appendf(nil, `{"contents":[{"uri":"x://y","text":"resource of %s"}]}`, server), nil
				}
				return json.RawMessage("{}"), nil
			}}, of...))
		more := ""
		if server == "bravoq" {
			more = `,"disabled_tools":["search_*"]`
		}
		out = append(out, fmt.Sprintf(`%q:{"url":%q,"trust":"auto"%s}`, server, upstream.URL, more))
	}
	return "{" + strings.Join(out, ",") + "}"
}

// scopeActor is a caller, its endpoint, and the model of its scope.
type scopeActor struct {
	name, token, base string // base is /mcp or the path of a profile
	in                func(server, tool string) bool
	lanes             []int
	small             *daemon // the world that contains only its scope
	principal         string
	sessions          map[string]string // session IDs of the legacy protocol by path
	smallSessions     map[string]string
}

func (a *scopeActor) has(lane int) bool       { return slices.Contains(a.lanes, lane) }
func (a *scopeActor) limited() bool           { return len(a.lanes) < 3 }
func (a *scopeActor) sees(x scopeTool) bool   { return a.in(x.server, x.name) && a.has(x.lane) }
func (a *scopeActor) server(name string) bool { return a.in(name, "") }

// ask sends a request of either protocol to a path and returns the status and the message.
func (a *scopeActor) ask(t *testing.T, d *daemon, sessions map[string]string, token, path, method, params string, modern bool) (int, []byte) {
	t.Helper()
	if !modern && sessions[path] == "" && method != "initialize" {
		_, _, header := scopePost(t, d, token, path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacyRevision+`","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`, nil)
		if sessions[path] = header.Get("Mcp-Session-Id"); sessions[path] == "" {
			return 0, nil // the path does not exist for this actor
		}
	}
	headers := map[string]string{}
	if modern {
		headers["Mcp-Protocol-Version"], headers["Mcp-Method"] = modernRevision, method
		for _, member := range []string{"name", "uri"} {
			if name, ok := wirejson.String(wirejson.Find([]byte(params), member)); ok && (method == "tools/call" || method == "prompts/get" || method == "resources/read") {
				headers["Mcp-Name"] = name
			}
		}
		params = strings.TrimSuffix(params, "}")
		if params != "{" {
			params += ","
		}
		params += `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernRevision + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"}}}`
	} else {
		headers["Mcp-Protocol-Version"], headers["Mcp-Session-Id"] = legacyRevision, sessions[path]
	}
	status, answer, _ := scopePost(t, d, token, path, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params), headers)
	return status, lastEvent(answer)
}

func scopePost(t testing.TB, d *daemon, token, path, body string, headers map[string]string) (int, []byte, http.Header) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+d.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer, resp.Header
}

const scopeProfiles = `{
	"one": {"servers": ["alphaq", "b*", "foxtrot?"], "tools": {"alpha*": ["get_*", "create_*", "delete_*", "fetch_*"]}, "lanes": ["read", "write"]},
	"two": {"servers": ["bravoq", "charlieq", "deltaq"], "lanes": ["read"]},
	"three": {"servers": ["alphaq", "d*"], "tools": {"alphaq": ["get_*", "create_*"]}}
}`

// scopeHandle is the handle of a result that was cut, and its owner.
type scopeHandle struct {
	handle, principal string
	of                scopeTool
}

var handlePattern = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)

// scopes is the state of one test run.
type scopes struct {
	t       *testing.T
	big     *daemon
	rng     *rand.Rand
	tools   []scopeTool
	actors  []*scopeActor
	handles []scopeHandle
	counts  map[string]int
}

func TestScopesHideEverythingElse(t *testing.T) {
	t.Parallel()
	all := scopeTools()
	config := func(servers string) string {
		return `{"result_limit":2000,"mcp_management":"read","profiles":` + scopeProfiles + `,"mcpServers":` + servers + `}`
	}
	s := &scopes{t: t, big: startDaemon(t, config(scopeWorld(t, all, scopeServers, true))), rng: rand.New(rand.NewPCG(14, 69)), tools: all, counts: map[string]int{}}
	one := func(server, tool string) bool {
		switch server {
		case "alphaq":
			verb, _, _ := strings.Cut(tool, "_")
			return tool == "" || slices.Contains([]string{"get", "create", "delete", "fetch"}, verb)
		case "bravoq", "foxtrotq":
			return true
		}
		return false
	}
	two := func(server, _ string) bool { return server == "bravoq" || server == "charlieq" || server == "deltaq" }
	part := func(server, _ string) bool { return server == "bravoq" || server == "deltaq" }
	three := func(server, tool string) bool {
		verb, _, _ := strings.Cut(tool, "_")
		return strings.HasPrefix(server, "d") || server == "alphaq" && slices.Contains([]string{"", "get", "create"}, verb)
	}
	reads, writes := []int{1}, []int{1, 2}
	var everything []string
	for _, x := range all {
		everything = append(everything, x.server+":"+x.name)
	}
	disable := func(d *daemon) {
		if status, body := d.rest("POST", "/servers/foxtrotq/disable", ""); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	s.big.awaitTools(everything...)
	disable(s.big)
	token := func(name string, more ...string) string {
		code, stdout, stderr := s.big.cli(append([]string{"token", "create", name}, more...)...)
		if code != 0 || !strings.HasPrefix(stdout, "mcpp_t_") {
			t.Fatalf("%d %s %s", code, stdout, stderr)
		}
		return strings.TrimSpace(stdout)
	}
	tokenOne, tokenTwo := token("one", "--profile", "one"), token("two", "--profile", "two", "--servers", "bravoq,delta*", "--expires", "30d")
	s.actors = []*scopeActor{
		{name: "token one", token: tokenOne, base: "/mcp", in: one, lanes: writes, principal: "one"},
		{name: "token one at its profile", token: tokenOne, base: "/mcp/p/one", in: one, lanes: writes, principal: "one"},
		{name: "token two", token: tokenTwo, base: "/mcp", in: part, lanes: reads, principal: "two"},
		{name: "token three", token: token("three", "--profile", "three"), base: "/mcp", in: three, lanes: []int{1, 2, 3}, principal: "three"},
		{name: "view one", base: "/mcp/p/one", in: one, lanes: writes, principal: "agent"},
		{name: "view two", base: "/mcp/p/two", in: two, lanes: reads, principal: "agent"},
	}
	small := map[string]*daemon{}
	for _, a := range s.actors {
		var tools []scopeTool
		var servers, names []string
		for _, x := range all {
			if a.sees(x) {
				tools, names = append(tools, x), append(names, x.server+":"+x.name)
			}
		}
		for _, server := range scopeServers {
			if a.server(server) {
				servers = append(servers, server)
			}
		}
		key := strings.Join(names, " ")
		if small[key] == nil {
			small[key] = startDaemon(t, strings.Replace(config(scopeWorld(t, tools, servers, true)), `"profiles":`+scopeProfiles+`,`, "", 1))
			small[key].awaitTools(names...)
			if a.server("foxtrotq") {
				disable(small[key])
			}
		}
		a.small, a.sessions, a.smallSessions = small[key], map[string]string{}, map[string]string{}
	}
	for range scopeOperations() {
		s.operate(s.actors[s.rng.IntN(len(s.actors))])
		if t.Failed() {
			break
		}
	}
	t.Logf("%v", s.counts)
	for _, what := range []string{"same retrieve", "same servers", "same list", "same greeting", "call ok", "call OUT_OF_SCOPE", "call TOOL_LOCKED", "call SERVER_MISMATCH", "call TOOL_NOT_FOUND", "call SERVER_NOT_FOUND", "suggested", "read ok", "read refused", "rest ok", "rest OUT_OF_SCOPE", "prompt ok", "prompt refused", "resource ok", "resource refused", "elsewhere refused"} {
		if s.counts[what] == 0 {
			t.Errorf("the case %q never occurred, so it is not tested", what)
		}
	}
}

// operate does one random operation and compares the result with the model.
func (s *scopes) operate(a *scopeActor) {
	modern := s.rng.IntN(2) == 0
	switch s.rng.IntN(12) {
	case 0, 1, 2:
		s.same("retrieve", a, modern, a.base, "tools/call", `{"name":"retrieve_tools","arguments":`+s.query()+`}`)
	case 3:
		arguments := `{"operation":"list"}`
		if server := s.server(); s.rng.IntN(2) == 0 {
			arguments = fmt.Sprintf(`{"operation":"get","name":%q}`, server)
			if !a.server(server) {
				_, answer := s.ask(a, modern, a.base, "tools/call", `{"name":"upstream_servers","arguments":`+arguments+`}`)
				s.want(a, "server", answer, "OUT_OF_SCOPE")
				return
			}
		}
		s.same("servers", a, modern, a.base, "tools/call", `{"name":"upstream_servers","arguments":`+arguments+`}`)
	case 4:
		s.same("list", a, modern, a.base+"/all", []string{"tools/list", "prompts/list", "resources/list"}[s.rng.IntN(3)], "{}")
	case 5:
		if modern {
			s.same("greeting", a, true, a.base+[]string{"", "/all"}[s.rng.IntN(2)], "server/discover", "{}")
		} else {
			s.same("greeting", a, false, a.base+[]string{"", "/all"}[s.rng.IntN(2)], "initialize", `{"protocolVersion":"`+legacyRevision+`","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`)
		}
	case 6:
		s.read(a, modern)
	case 7:
		s.offer(a, modern)
	case 8:
		s.elsewhere(a, modern)
	default:
		s.call(a, modern)
	}
}

// query returns random search arguments: the words of a tool, the name of a server, a misspelled word, or nothing.
func (s *scopes) query() string {
	x := s.tools[s.rng.IntN(len(s.tools))]
	query := []string{x.name, x.server, x.canary, x.server + " " + x.name, strings.ReplaceAll(x.name, "_", " "), x.name[1:], "repository", "calender", "number", "", "delete something", x.server + ":" + x.name}[s.rng.IntN(12)]
	out := fmt.Sprintf(`{"query":%q,"limit":%d,"include_disabled":%v`, query, 1+s.rng.IntN(60), s.rng.IntN(2) == 0)
	if lane := s.rng.IntN(6); lane > 0 && lane < 4 {
		out += fmt.Sprintf(`,"operation_type":%q`, scopeLanes[lane])
	}
	if s.rng.IntN(3) == 0 {
		out += `,"detail":"compact"`
	}
	return out + "}"
}

func (s *scopes) server() string {
	return append(scopeServers, "none")[s.rng.IntN(len(scopeServers)+1)]
}

// ask sends a request in the big world, and checks the answer for words from outside the scope.
func (s *scopes) ask(a *scopeActor, modern bool, path, method, params string) (int, []byte) {
	s.t.Helper()
	status, answer := a.ask(s.t, s.big, a.sessions, a.token, path, method, params, modern)
	s.clean(a, path+" "+method+" "+params, answer)
	return status, answer
}

// clean checks that an answer contains no words from outside the actor's scope, except words that are in the request.
func (s *scopes) clean(a *scopeActor, asked string, answer []byte) {
	s.t.Helper()
	for _, x := range s.tools {
		if !a.sees(x) && bytes.Contains(answer, []byte(x.canary)) && !strings.Contains(asked, x.canary) {
			s.t.Errorf("%s sees %s of %s:%s: %s\n%.2000s", a.name, x.canary, x.server, x.name, asked, answer)
		}
	}
	for _, server := range scopeServers {
		if !a.server(server) && bytes.Contains(answer, []byte(server)) && !strings.Contains(asked, server) {
			s.t.Errorf("%s sees %s: %s\n%.2000s", a.name, server, asked, answer)
		}
	}
}

// same sends the request in both worlds and requires identical answers. None of these answers contains IDs of records
// or addresses of servers.
func (s *scopes) same(what string, a *scopeActor, modern bool, path, method, params string) {
	s.t.Helper()
	_, got := s.ask(a, modern, path, method, params)
	inSmall := "/mcp" + strings.TrimPrefix(path, a.base)
	_, want := a.ask(s.t, a.small, a.smallSessions, "", inSmall, method, params, modern)
	if !bytes.Equal(got, want) {
		s.t.Errorf("%s, modern %v, %s %s %s\ngot  %.3000s\nwant %.3000s", a.name, modern, path, method, params, got, want)
	}
	s.counts["same "+what]++
}

// code returns the error code of an answer, or "ok" if it is not a refusal.
func code(answer []byte) string {
	result := wirejson.Find(answer, "result")
	of := wirejson.Find(wirejson.Find(result, "structuredContent"), "error")
	if of == nil {
		of = wirejson.Find(wirejson.Find(answer, "error"), "data")
	}
	if text, ok := wirejson.String(wirejson.Find(of, "code")); ok {
		return text
	}
	if result == nil {
		return "error " + string(wirejson.Find(wirejson.Find(answer, "error"), "code"))
	}
	return "ok"
}

func (s *scopes) want(a *scopeActor, what string, answer []byte, want string) {
	s.t.Helper()
	if got := code(answer); got != want {
		s.t.Errorf("%s, %s: %s, want %s\n%.1500s", a.name, what, got, want, answer)
	}
}

// outcome predicts the result of a call in a lane. 0 means the tool's own lane.
func (a *scopeActor) outcome(x scopeTool, variant int, there bool) string {
	locked := x.server == "foxtrotq" || x.server == "bravoq" && strings.HasPrefix(x.name, "search_") && there
	if variant == 0 {
		variant = x.call
	}
	switch {
	case !a.in(x.server, x.name):
		return "OUT_OF_SCOPE"
	case !slices.Contains(scopeServers, x.server):
		return "SERVER_NOT_FOUND"
	case a.limited() && (!there || !a.has(x.lane) || !a.has(max(x.lane, variant))):
		return "OUT_OF_SCOPE"
	case locked:
		return "TOOL_LOCKED"
	case !there:
		return "TOOL_NOT_FOUND"
	case x.call == 3 && variant < 3, x.call == 2 && variant == 1 && strings.HasPrefix(x.name, "create_"):
		return "SERVER_MISMATCH"
	}
	return "ok"
}

// call calls a random tool on a random endpoint.
func (s *scopes) call(a *scopeActor, modern bool) {
	x, there, variant := s.tools[s.rng.IntN(len(s.tools))], true, 1+s.rng.IntN(3)
	switch s.rng.IntN(16) { // names similar to other names
	case 0:
		x.name, there = x.name+"s", false
	case 1:
		x.name, there = "get_"+x.name, false
	case 2:
		x.server, there = "d"+x.server[1:], x.server == "deltaq"
	}
	big := 0
	if s.rng.IntN(4) == 0 {
		big = 1
	}
	what := fmt.Sprintf("%s:%s by %d", x.server, x.name, variant)
	var answer []byte
	switch door := s.rng.IntN(5); {
	case door == 0: // /mcp/all
		_, answer = s.ask(a, modern, a.base+"/all", "tools/call", fmt.Sprintf(`{"name":"%s__%s","arguments":{"n":0}}`, x.server, x.name))
		s.judged(a, what+" on all", answer, a.outcome(x, 0, there))
	case door == 1 && a.token != "" && a.base == "/mcp": // the endpoint of a server
		status, answer := s.ask(a, modern, "/mcp/servers/"+x.server, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{"n":0}}`, x.name))
		if !modern && status == 0 { // no session was opened
			if a.server(x.server) && x.server != "foxtrotq" && slices.Contains(scopeServers, x.server) {
				s.t.Errorf("%s has no session with %s", a.name, x.server)
			}
			s.counts["elsewhere refused"]++
			return
		}
		s.judged(a, what+" on its server", answer, a.outcome(x, 0, there))
	case door == 2 && a.token != "" && a.base == "/mcp": // REST
		status, body, _ := scopePost(s.t, s.big, a.token, "/api/v1/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_%s","name":"%s:%s","args":{"n":%d}}`, scopeLanes[variant], x.server, x.name, big), nil)
		s.clean(a, x.server+x.name, body)
		got, _ := wirejson.String(wirejson.Find(body, "code"))
		if status == 200 {
			got = "ok"
			s.keep(a, x, body)
		}
		if want := a.outcome(x, variant, there); got != want {
			s.t.Errorf("%s, REST, %s: %s, want %s: %s", a.name, what, got, want, body)
		}
		s.counts["rest "+got]++
	default:
		_, answer = s.ask(a, modern, a.base, "tools/call", fmt.Sprintf(`{"name":"call_tool_%s","arguments":{"name":"%s:%s","args":{"n":%d}}}`, scopeLanes[variant], x.server, x.name, big))
		s.judged(a, what, answer, a.outcome(x, variant, there))
		s.keep(a, x, answer)
	}
}

func (s *scopes) judged(a *scopeActor, what string, answer []byte, want string) {
	s.t.Helper()
	s.want(a, what, answer, want)
	s.counts["call "+want]++
	result := wirejson.Find(answer, "result")
	details := wirejson.Find(wirejson.Find(wirejson.Find(result, "structuredContent"), "error"), "details")
	_ = wirejson.EachElement(wirejson.Find(details, "nearest"), func(raw []byte) error {
		name, _ := wirejson.String(raw)
		server, own, isTool := strings.Cut(name, ":")
		known := slices.ContainsFunc(s.tools, func(x scopeTool) bool { return x.server == server && (!isTool || x.name == own && a.sees(x)) })
		if !known || !a.server(server) {
			s.t.Errorf("%s, %s: %s is suggested", a.name, what, name)
		}
		s.counts["suggested"]++
		return nil
	})
}

// keep stores the handle of a cut result.
func (s *scopes) keep(a *scopeActor, x scopeTool, answer []byte) {
	if h := handlePattern.Find(answer); h != nil && bytes.Contains(answer, []byte("read_result")) {
		s.handles = append(s.handles, scopeHandle{string(h), a.principal, x})
	}
}

// read continues a cut result, either the actor's own or another actor's.
func (s *scopes) read(a *scopeActor, modern bool) {
	if len(s.handles) == 0 {
		return
	}
	h := s.handles[s.rng.IntN(len(s.handles))]
	_, answer := s.ask(a, modern, a.base, "tools/call", fmt.Sprintf(`{"name":"read_result","arguments":{"handle":%q}}`, h.handle))
	if h.principal == a.principal && a.sees(h.of) {
		s.want(a, "a result of its own", answer, "ok")
		s.counts["read ok"]++
		return
	}
	s.want(a, "a result of "+h.principal, answer, "NOT_FOUND")
	s.counts["read refused"]++
}

// offer uses a prompt or a resource of a server.
func (s *scopes) offer(a *scopeActor, modern bool) {
	server := s.server()
	kind, method, params := "prompt", "prompts/get", fmt.Sprintf(`{"name":"%s__ask_%s"}`, server, server)
	if s.rng.IntN(2) == 0 {
		kind, method, params = "resource", "resources/read", fmt.Sprintf(`{"uri":"%s://one"}`, server)
	}
	_, answer := s.ask(a, modern, a.base+"/all", method, params)
	if a.server(server) && server != "foxtrotq" {
		if !bytes.Contains(answer, []byte(kind+" of "+server)) {
			s.t.Errorf("%s, %s %s: %s", a.name, kind, server, answer)
		}
		s.counts[kind+" ok"]++
		return
	}
	if bytes.Contains(answer, []byte(kind+" of ")) || wirejson.Find(answer, "error") == nil {
		s.t.Errorf("%s, %s %s: %s", a.name, kind, server, answer)
	}
	s.counts[kind+" refused"]++
}

// elsewhere uses the endpoint of another profile or of a server.
func (s *scopes) elsewhere(a *scopeActor, modern bool) {
	if a.token == "" || a.base != "/mcp" {
		return
	}
	if s.rng.IntN(2) == 0 {
		other := []string{"one", "two", "three"}[s.rng.IntN(3)]
		path := "/mcp/p/" + other + []string{"", "/all"}[s.rng.IntN(2)]
		status, answer := s.ask(a, true, path, "tools/list", "{}")
		if (status == http.StatusOK) != (other == a.principal) {
			s.t.Errorf("%s at %s: %d %s", a.name, path, status, answer)
		}
		return
	}
	server := s.server()
	status, answer := s.ask(a, modern, "/mcp/servers/"+server, "tools/list", "{}")
	if !a.server(server) || server == "foxtrotq" {
		if status != 0 && wirejson.Find(answer, "error") == nil {
			s.t.Errorf("%s at the server %s: %d %s", a.name, server, status, answer)
		}
		s.counts["elsewhere refused"]++
		return
	}
	var got []string
	_ = wirejson.EachElement(wirejson.Find(wirejson.Find(answer, "result"), "tools"), func(raw []byte) error {
		name, _ := wirejson.String(wirejson.Find(raw, "name"))
		got = append(got, name)
		return nil
	})
	var want []string
	for _, x := range s.tools {
		if x.server == server && a.sees(x) && !(server == "bravoq" && strings.HasPrefix(x.name, "search_")) {
			want = append(want, x.name)
		}
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("%s at the server %s lists %v, want %v", a.name, server, got, want)
	}
}
