package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
)

// appTool returns the definition of a tool with a user interface.
func appTool(name, uri, visibility string) string {
	return `{"name":"` + name + `","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"ui":{"resourceUri":"` + uri + `","visibility":` + visibility + `},"ui/resourceUri":"` + uri + `"}}`
}

const everyone, appsOnly, modelOnly = `["model","app"]`, `["app"]`, `["model"]`

// appWorld has the servers s and t, both with the user interface ui://x, and s also with ui://s. It returns /mcp/all,
// and the endpoint for the user interfaces of /mcp.
func appWorld(t *testing.T) (all, builtin *aggregateWorld, r *catalogtest.ScriptedServers) {
	all, r = allWorld(t, nil, appTool("shows", "ui://s", everyone), appTool("both", "ui://x", everyone), appTool("polls", "ui://s", appsOnly), appTool("asks", "ui://s", modelOnly), `{"name":"plain"}`)
	all.SetToolsOn("t", appTool("both", "ui://x", everyone), `{"name":"other","inputSchema":{"type":"object"}}`, `{"name":"s__plain","inputSchema":{"type":"object"}}`)
	r.Reply = func(_ context.Context, q *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(fmt.Sprintf(`{"contents":[{"uri":%s,"mimeType":"text/html;profile=mcp-app","text":"<p>","_meta":{"ui":{"csp":{}}}}]}`, wirejson.Find(q.Params, "uri")))}, nil
	}
	deps := all.all.AggregateDeps
	deps.OnlyApps = true
	return all, &aggregateWorld{Harness: all.Harness, all: NewAggregateEndpoint(deps)}, r
}

func appRequest(method, params string) *session.Request {
	r := catalogtest.NewRequest(method, params)
	r.Apps = true
	return r
}

// read reads a resource as a client with MCP Apps. It returns what the server received, or the code of the refusal.
func (w *aggregateWorld) read(r *catalogtest.ScriptedServers, q *session.Request) (got string) {
	r.Sent = nil
	a := session.Reply{}
	if w.all.OnlyApps {
		a = w.all.AnswerAppRequest(w.T.Context(), q, false)
	} else {
		a = w.do(w.T.Context(), q)
	}
	if a.Error != nil {
		c, _ := refusal(a)
		return string(c)
	}
	asked := uriOf(q.Params)
	if got := wirejson.Find(a.Result, "contents"); !strings.Contains(string(got), `"uri":"`+asked+`"`) || !strings.Contains(string(got), `"_meta":{"ui":{"csp":{}}}`) {
		w.T.Errorf("%s: contents %s", asked, got)
	}
	return strings.Join(r.Sent, " ")
}

// TestAppsAreReadFromTheirServer checks that each user interface is read from the server whose tool names it, under a
// URI that names the server if two servers have the same, and that /mcp reads nothing else.
func TestAppsAreReadFromTheirServer(t *testing.T) {
	all, builtin, r := appWorld(t)
	r.Primitives["s resources/list"] = []json.RawMessage{json.RawMessage(`{"uri":"ui://listed","name":"l"}`), json.RawMessage(`{"uri":"ui://s","name":"l"}`), json.RawMessage(`{"uri":"file:///s","name":"l"}`)}
	r.Primitives["t resources/list"] = []json.RawMessage{json.RawMessage(`{"uri":"ui://s","name":"l"}`), json.RawMessage(`{"uri":"ui://x","name":"l"}`)}
	uris := map[string]string{}
	p, _ := all.page("tools/list", "")
	for _, raw := range p.items {
		name, _ := wirejson.String(wirejson.Find(raw, "name"))
		d, err := tool.ParseDefinition("x", raw)
		if err != nil || strings.Contains(string(raw), "ui/resourceUri") && strings.Count(string(raw), d.App.URI) != 2 {
			t.Errorf("%s: %v", raw, err)
		}
		uris[name] = d.App.URI
	}
	if uris["s__shows"] != "ui://s" || uris["s__both"] != "ui://mcpproxy/s/x" || uris["t__both"] != "ui://mcpproxy/t/x" || len(uris) != 8 {
		t.Errorf("%v", uris)
	}
	p, _ = all.page("resources/list", "")
	if got := keysOf(t, p, "uri"); !slices.Equal(got, []string{"file:///s", "ui://listed", "ui://mcpproxy/t/s", "ui://mcpproxy/t/x", "ui://s"}) {
		t.Errorf("/mcp/all lists %s", got)
	}
	a := builtin.all.AnswerAppRequest(t.Context(), appRequest("resources/list", `{}`), false)
	var listed []string
	_ = wirejson.EachElement(wirejson.Find(a.Result, "resources"), func(one []byte) error { listed = append(listed, uriOf(one)); return nil })
	if !slices.Equal(listed, []string{"ui://mcpproxy/t/x", "ui://s"}) {
		t.Errorf("/mcp lists %s: %v", listed, a.Error)
	}
	none, sent := string(problem.InvalidParameter), `{"uri":"ui://`
	for uri, want := range map[string][2]string{ // on /mcp/all and on /mcp
		"ui://s":              {"s " + sent + `s"}`, "s " + sent + `s"}`},
		"ui://mcpproxy/s/s":   {"s " + sent + `s"}`, "s " + sent + `s"}`},
		"ui://mcpproxy/s/x":   {"s " + sent + `x"}`, "s " + sent + `x"}`},
		"ui://mcpproxy/t/x":   {"t " + sent + `x"}`, "t " + sent + `x"}`},
		"ui://mcpproxy/t/s":   {"t " + sent + `s"}`, none}, // listed, but no tool of t names it
		"ui://x":              {none, none},
		"ui://listed":         {"s " + sent + `listed"}`, none},
		"file:///s":           {`s {"uri":"file:///s"}`, none},
		"mcpproxy://s/ui://s": {"s " + sent + `s"}`, none},
		"ui://mcpproxy/u/x":   {string(problem.ServerNotFound), string(problem.ServerNotFound)},
	} {
		q := appRequest("resources/read", `{"uri":"`+uri+`"}`)
		if strings.HasPrefix(uri, "file") {
			if got := builtin.read(r, q); got != want[1] {
				t.Errorf("%s on /mcp: %s", uri, got)
			}
			continue
		}
		for i, w := range []*aggregateWorld{all, builtin} {
			if got := w.read(r, q); got != want[i] {
				t.Errorf("%s at %d: got %s, want %s", uri, i, got, want[i])
			}
		}
	}
}

// TestAppsOutsideTheScope checks that a client reads no user interface of a tool that it may not use: outside its scope,
// locked, or of a quarantined server.
func TestAppsOutsideTheScope(t *testing.T) {
	all, builtin, r := appWorld(t)
	scoped := func(l policy.ScopeLimits) *session.Request {
		q := appRequest("resources/read", `{"uri":"ui://s"}`)
		caller := *q.Caller
		caller.Bounds = within(policy.NewScope(policy.NewScopeRule(l)))
		q.Caller = &caller
		return q
	}
	for name, q := range map[string]*session.Request{
		"another server": scoped(policy.ScopeLimits{Servers: []string{"t"}}),
		"another tool":   scoped(policy.ScopeLimits{Servers: []string{"s"}, Tools: []policy.ScopeTools{{Server: "s", Patterns: []string{"both"}}}}),
		"another lane":   scoped(policy.ScopeLimits{Servers: []string{"s"}, Lanes: []string{"write"}}),
	} {
		for i, w := range []*aggregateWorld{all, builtin} {
			if got := w.read(r, q); strings.HasPrefix(got, "s ") || got == "" {
				t.Errorf("%s at %d: %s", name, i, got)
			}
		}
	}
	if got := builtin.read(r, scoped(policy.ScopeLimits{Servers: []string{"s"}, Tools: []policy.ScopeTools{{Server: "s", Patterns: []string{"shows"}}}})); got != `s {"uri":"ui://s"}` {
		t.Errorf("inside its scope: %s", got)
	}
	q := appRequest("resources/read", `{"uri":"ui://s"}`)
	for name, change := range map[string]func(*config.Config){
		"locked":      func(c *config.Config) { c.Servers[0].DisabledTools = []string{"*s"} },
		"quarantined": func(c *config.Config) { c.Servers[0].Quarantined = true },
		"disabled":    func(c *config.Config) { c.Servers[0].Enabled = false },
	} {
		was := all.Config().Servers[0]
		all.Reload(change)
		for i, w := range []*aggregateWorld{all, builtin} {
			if got := w.read(r, q); strings.HasPrefix(got, "s ") || got == "" {
				t.Errorf("%s at %d: %s", name, i, got)
			}
		}
		all.Reload(func(c *config.Config) { c.Servers[0] = was })
	}
	if got := builtin.read(r, q); got != `s {"uri":"ui://s"}` {
		t.Errorf("afterwards: %s", got)
	}
}

// TestAppsOfResults checks that the client that received a result, and no other, can read the user interfaces that the
// result names.
func TestAppsOfResults(t *testing.T) {
	for _, modern := range []bool{false, true} {
		all, builtin, r := appWorld(t)
		request := func(client, params string) *session.Request {
			q := appRequest("resources/read", params)
			caller := *q.Caller
			if caller.SessionID = client; modern {
				caller.SessionID, caller.ClientName = "", client
			}
			q.Caller = &caller
			return q
		}
		const named = `{"content":[{"type":"resource_link","uri":"ui://once","name":"o"},{"type":"resource_link","uri":"file:///x"},{"type":"resource","resource":{"uri":"ui://x","text":""}},{"type":"resource","resource":{"uri":"ui://s","text":""}}],"x":9007199254740993}`
		now := all.Catalog.Current()
		got := builtin.all.AddApp(request("a", "{}"), now.Tool(tool.ID{Server: "t", Tool: "other"}), json.RawMessage(named))
		if want := strings.NewReplacer("ui://x", "ui://mcpproxy/t/x", "ui://s", "ui://mcpproxy/t/s").Replace(named); string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for uri, want := range map[string]string{"ui://once": `t {"uri":"ui://once"}`, "ui://mcpproxy/t/s": `t {"uri":"ui://s"}`, "ui://s": `s {"uri":"ui://s"}`} {
			if got := builtin.read(r, request("a", `{"uri":"`+uri+`"}`)); got != want {
				t.Errorf("%s: %s", uri, got)
			}
		}
		if got := builtin.read(r, request("b", `{"uri":"ui://once"}`)); got != string(problem.InvalidParameter) {
			t.Errorf("another client reads %s", got)
		}
		builtin.all.NameApps(request("a", "{}"), now.Tool(tool.ID{Server: "s", Tool: "plain"}), json.RawMessage(`{"content":[{"type":"resource_link","uri":"ui://once"}]}`))
		if got := builtin.read(r, request("a", `{"uri":"ui://once"}`)); got != string(problem.InvalidParameter) {
			t.Errorf("two servers named it, but the client reads %s", got)
		}
		all.Reload(func(c *config.Config) { c.Servers[1].DisabledTools = []string{"other"} })
		if got := builtin.read(r, request("a", `{"uri":"ui://mcpproxy/t/once"}`)); got != string(problem.InvalidParameter) {
			t.Errorf("the tool is locked, but the client reads %s", got)
		}
		shown := builtin.all.AddApp(request("a", "{}"), now.Tool(tool.ID{Server: "s", Tool: "shows"}), json.RawMessage(`{"content":[]}`))
		if string(shown) != `{"content":[],"_meta":{"ui":{"resourceUri":"ui://s"}}}` {
			t.Errorf("%s", shown)
		}
		plain := request("a", "{}")
		plain.Apps = false
		if shown := builtin.all.AddApp(plain, now.Tool(tool.ID{Server: "s", Tool: "shows"}), json.RawMessage(named)); string(shown) != named {
			t.Errorf("a client without MCP Apps gets %s", shown)
		}
	}
}

// TestAppsStayBounded checks that the user interfaces that results name take a limited amount of memory.
func TestAppsStayBounded(t *testing.T) {
	var a resultApps
	for i := range 3 * maxResultApps {
		a.add("c", tool.ID{Server: "s", Tool: "t"}, fmt.Sprintf("ui://%d", i))
	}
	a.add("c", tool.ID{Server: "s", Tool: "t"}, "ui://"+strings.Repeat("x", maxResultAppURI))
	if _, ok := a.toolOf("c", "s", fmt.Sprintf("ui://%d", 3*maxResultApps-1)); !ok || len(a.all) > maxResultApps {
		t.Errorf("%v %d", ok, len(a.all))
	}
}

// TestAppsCallToolsOfTheirServer checks which tools a user interface calls by the server's own name: those for it, of a
// server with user interfaces, if the name is unique. The name of a tool on /mcp/all takes precedence.
func TestAppsCallToolsOfTheirServer(t *testing.T) {
	all, _, _ := appWorld(t)
	var called string
	all.AnswerCall = func(_ context.Context, r *session.Request) (session.Reply, error) {
		called, _ = wirejson.String(wirejson.Find(r.Params, "name"))
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	for name, want := range map[string]string{"polls": "polls", "plain": "plain", "other": "other", "both": "", "asks": "", "none": "", "s__plain": "plain", "t__s__plain": "s__plain", "s__asks": "asks"} {
		called, all.Begun = "", nil
		q := appRequest("tools/call", `{"name":"`+name+`","arguments":{}}`)
		a := all.do(t.Context(), q)
		if called != want || (want == "") != (code(a) != "") || want != "" && len(all.Begun) != 1 {
			t.Errorf("%s: called %q, %s, %d records", name, called, code(a), len(all.Begun))
		}
		called = ""
		q.Apps = false
		if all.do(t.Context(), q); !strings.Contains(name, "__") && called != "" {
			t.Errorf("%s: a client without MCP Apps called %s", name, called)
		}
	}
	all.Reload(func(c *config.Config) { c.Intent.RequireIntent = true })
	if a := all.do(t.Context(), appRequest("tools/call", `{"name":"polls","arguments":{}}`)); code(a) != problem.MissingIntent {
		t.Errorf("with require_intent: %s", code(a))
	}
	called = ""
	all.Reload(func(c *config.Config) {
		c.Intent.RequireIntent, c.Servers[0].ToolSettings = false, []config.ToolSettings{{Tool: "shows", Alias: "polls"}}
	})
	if a := all.do(t.Context(), appRequest("tools/call", `{"name":"polls","arguments":{}}`)); code(a) != problem.InvalidName || called != "" {
		t.Errorf("the name is the alias of another tool: called %q, %s", called, code(a))
	}
}

// TestLanesHaveTheirApps checks that in each lane a client with MCP Apps, and no other, reads user interfaces, and that
// the other resources stay in the read lane.
func TestLanesHaveTheirApps(t *testing.T) {
	world, _, r := appWorld(t)
	r.Primitives["s resources/list"] = []json.RawMessage{json.RawMessage(`{"uri":"ui://s","name":"l"}`), json.RawMessage(`{"uri":"file:///s","name":"l"}`)}
	for _, v := range laneVariants {
		deps := world.all.AggregateDeps
		deps.Lane = v
		w := &aggregateWorld{Harness: world.Harness, all: NewAggregateEndpoint(deps)}
		reads := v == policy.CallToolRead
		for _, apps := range []bool{false, true} {
			request := func(method, params string) *session.Request {
				q := appRequest(method, params)
				q.Apps = apps
				return q
			}
			if capabilities := w.all.mergedCapabilitiesJSON(request("", "")); strings.Contains(capabilities, `"resources"`) != (reads || apps) || !strings.Contains(capabilities, `"extensions":{"io.modelcontextprotocol/ui":{}}`) {
				t.Errorf("%s: %s", v, capabilities)
			}
			if got := w.read(r, request("resources/read", `{"uri":"ui://s"}`)); (got == `s {"uri":"ui://s"}`) != (reads || apps) {
				t.Errorf("%s, apps %v: %s", v, apps, got)
			}
			for _, uri := range []string{"file:///s", "mcpproxy://s/file:///s"} {
				r.Sent = nil
				if a := w.do(t.Context(), request("resources/read", `{"uri":"`+uri+`"}`)); (a.Error == nil) != reads || (len(r.Sent) > 0) != reads {
					t.Errorf("%s, apps %v: %s: %+v", v, apps, uri, a)
				}
			}
			a := w.do(t.Context(), request("resources/list", `{}`))
			if got := string(wirejson.Find(a.Result, "resources")); strings.Contains(got, "ui://s") != (reads || apps) || strings.Contains(got, "file://") != reads {
				t.Errorf("%s, apps %v: %s", v, apps, got)
			}
			if a := w.do(t.Context(), request("prompts/list", `{}`)); (a.Error == nil) != reads {
				t.Errorf("%s, apps %v: %+v", v, apps, a)
			}
		}
	}
}

// TestAppToolsAreHiddenFromSearch checks that no search finds a tool that is not for a model, callable or locked.
func TestAppToolsAreHiddenFromSearch(t *testing.T) {
	all, _, _ := appWorld(t)
	names := func() (found []string) {
		now := all.Catalog.Current()
		hits, _ := now.Search(nil, "polls", 10, nil)
		locked, _ := now.SearchLocked("polls", 10, nil)
		for _, h := range append(hits, locked...) {
			found = append(found, h.Tool.ID.Tool)
		}
		return found
	}
	if found := names(); slices.Contains(found, "polls") {
		t.Errorf("%v", found)
	}
	all.Reload(func(c *config.Config) { c.Servers[0].DisabledTools = []string{"polls"} })
	if found := names(); slices.Contains(found, "polls") {
		t.Errorf("locked: %v", found)
	}
}
