package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/testutil/mcptest"
)

// heardChanges signals, for each kind of list, that the client was notified of a change.
type heardChanges struct{ tools, prompts, resources chan struct{} }

// all connects the official client to /mcp/all.
func (d *daemon) all(version string) (*mcp.ClientSession, heardChanges) {
	d.t.Helper()
	h := heardChanges{make(chan struct{}, 100), make(chan struct{}, 100), make(chan struct{}, 100)}
	return d.sdkAt("/mcp/all", version, &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { h.tools <- struct{}{} },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { h.prompts <- struct{}{} },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { h.resources <- struct{}{} },
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
	}), h
}

// sdkAt connects the official client to a path.
func (d *daemon) sdkAt(path, version string, opt *mcp.ClientOptions) *mcp.ClientSession {
	d.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, opt)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: "http://" + d.address + path},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		d.t.Fatalf("%s: %v", version, err)
	}
	d.t.Cleanup(func() { s.Close() })
	return s
}

// within returns a context that limits one step of a test.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// useAll calls tools of all npm servers through /mcp/all with the official client.
func useAll(t *testing.T, d *daemon, version string) {
	s, _ := d.all(version)
	var tools []string
	for tool, err := range s.Tools(within(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool.Name)
	}
	for _, name := range []string{"everything__echo", "files__read_text_file", "memory__read_graph", "remote__remote_echo"} {
		if !slices.Contains(tools, name) {
			t.Errorf("%s is not among %q", name, tools)
		}
	}
	if !slices.IsSorted(tools) {
		t.Errorf("not in order: %q", tools)
	}
	for _, c := range []struct{ tool, arguments, want string }{
		{"everything__echo", `{"message":"ping"}`, "Echo: ping"},
		{"memory__create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["writes programs"]}]}`, ""},
		{"memory__search_nodes", `{"query":"Ada"}`, "writes programs"},
		{"remote__remote_echo", `{"a":1}`, `got {\"a\":1}`},
	} {
		r, err := s.CallTool(within(t), &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.arguments)})
		if text, _ := json.Marshal(r); err != nil || r.IsError || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: %s %v", c.tool, text, err)
		}
	}
	r, err := s.CallTool(within(t), &mcp.CallToolParams{Name: "everything__trigger-long-running-operation", Arguments: json.RawMessage(`{"duration":0.2,"steps":2}`)})
	if text, _ := json.Marshal(r); err != nil || r.IsError {
		t.Errorf("%s %v", text, err)
	}
	usePrompts(t, s)
	useResources(t, s)
}

func usePrompts(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	prompts, err := s.ListPrompts(within(t), nil)
	if err != nil || !slices.ContainsFunc(prompts.Prompts, func(p *mcp.Prompt) bool { return p.Name == "everything__simple-prompt" }) {
		t.Fatalf("%+v %v", prompts, err)
	}
	p, err := s.GetPrompt(within(t), &mcp.GetPromptParams{Name: "everything__simple-prompt"})
	if err != nil || len(p.Messages) == 0 {
		t.Errorf("%+v %v", p, err)
	}
	c, err := s.Complete(within(t), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "everything__completable-prompt"},
		Argument: mcp.CompleteParamsArgument{Name: "department", Value: "E"}})
	if err != nil || !slices.Contains(c.Completion.Values, "Engineering") {
		t.Errorf("%+v %v", c, err)
	}
}

func useResources(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	resources, err := s.ListResources(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(resources.Resources, func(r *mcp.Resource) bool { return strings.HasPrefix(r.URI, "demo://") })
	if at < 0 {
		t.Fatalf("%+v", resources)
	}
	demo := resources.Resources[at].URI
	for _, uri := range []string{demo, "mcpproxy://everything/" + demo, "demo://resource/dynamic/text/1"} {
		r, err := s.ReadResource(within(t), &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(r.Contents) != 1 {
			t.Errorf("%s: %+v %v", uri, r, err)
		}
	}
	templates, err := s.ListResourceTemplates(within(t), nil)
	if err != nil || len(templates.ResourceTemplates) == 0 {
		t.Errorf("%+v %v", templates, err)
	}
}

// Clients of both protocols are notified when the tools that they may call change, and when a server connects.
func TestAllAnnouncesChanges(t *testing.T) {
	t.Parallel()
	up := startUpstream(t, echo, strings.Replace(echo, `"echo"`, `"other"`, 1))
	d := startDaemon(t, up.config("fake", ""))
	d.awaitTools("fake:echo", "fake:other")
	for _, version := range []string{legacyRevision, modernRevision} {
		t.Run(version, func(t *testing.T) {
			s, told := d.all(version)
			tools := func() (names []string) {
				t.Helper()
				for tool, err := range s.Tools(within(t), nil) {
					if err != nil {
						t.Fatal(err)
					}
					names = append(names, tool.Name)
				}
				return names
			}
			if got := tools(); !slices.Equal(got, []string{"fake__echo", "fake__other"}) {
				t.Fatalf("%q", got)
			}
			for _, c := range []struct {
				command string
				want    []string
			}{{"disable", []string{"fake__other"}}, {"enable", []string{"fake__echo", "fake__other"}}} {
				if code, _, stderr := d.cli("tools", c.command, "fake:echo"); code != 0 {
					t.Fatal(stderr)
				}
				select {
				case <-told.tools:
				case <-within(t).Done():
					t.Fatalf("after %s: no notification", c.command)
				}
				if got := tools(); !slices.Equal(got, c.want) {
					t.Errorf("after %s: %q", c.command, got)
				}
				if c.command == "disable" {
					r, err := s.CallTool(within(t), &mcp.CallToolParams{Name: "fake__echo", Arguments: map[string]any{}})
					if text, _ := json.Marshal(r); err != nil || !r.IsError || !strings.Contains(string(text), "TOOL_LOCKED") || strings.Contains(string(text), "retrieve_tools") {
						t.Errorf("a tool that is off: %s %v", text, err)
					}
				}
			}
		})
	}
}

// Each listed name calls its own tool and no other, even with hostile names of servers and tools. The lists have
// several pages.
func TestAllHostileNames(t *testing.T) {
	t.Parallel()
	named := func(names ...string) (all []string) {
		for _, n := range names {
			q, _ := json.Marshal(n)
			all = append(all, fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, q))
		}
		return all
	}
	servers := map[string][]string{
		"a":  {"b", "_b", "b__c", "a__b", "x/y", "x_y", "x:y", "é", strings.Repeat("l", 200), strings.Repeat("l", 199) + "m"},
		"a_": {"b", "_b", "b__c"},
		"b":  {"a__b", "c", "tools/list"},
	}
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("tool_%d", i)
	}
	servers["many"] = many
	var config strings.Builder
	ups, total := map[string]*fakeUpstream{}, 0
	for server, names := range servers {
		ups[server] = startUpstream(t, named(names...)...)
		total += len(names)
		fmt.Fprintf(&config, `%q:{"url":%q,"trust":"auto"},`, server, ups[server].URL)
	}
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{%s}}`, config.String()))
	d.awaitTools("a:b", "a_:b", "b:c", "many:tool_9999")
	for _, version := range []string{legacyRevision, modernRevision} {
		s, _ := d.all(version)
		seen, order := map[string]bool{}, []string{}
		for tool, err := range s.Tools(within(t), nil) {
			if err != nil {
				t.Fatal(err)
			}
			seen[tool.Name], order = true, append(order, tool.Name)
		}
		if len(order) != total || len(seen) != total || !slices.IsSorted(order) {
			t.Errorf("%s: %d tools, %d names, %d expected", version, len(order), len(seen), total)
		}
		for _, name := range order {
			if strings.HasPrefix(name, "many__") {
				continue
			}
			before := map[string]int64{}
			for server, u := range ups {
				before[server] = u.calls.Load()
			}
			r, err := s.CallTool(within(t), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"by": name}})
			if err != nil || r.IsError {
				t.Errorf("%s: %+v %v", name, r, err)
			}
			called := ""
			for server, u := range ups {
				if u.calls.Load() != before[server] {
					called += server
				}
			}
			want := "a"
			switch {
			case strings.HasPrefix(name, "b__"):
				want = "b"
			case strings.HasPrefix(name, "a___b_") && len(name) > 30, strings.HasPrefix(name, "a____b_"), strings.HasPrefix(name, "a___b__c_"):
				want = "a_"
			}
			if called != want {
				t.Errorf("%s called %q, not %q", name, called, want)
			}
		}
	}
}

// A server's requests reach the client whose call caused them, in both protocols, even when two servers use the same
// IDs.
func TestAllAsks(t *testing.T) {
	t.Parallel()
	one := mcptest.Serve(t, mcptest.New(mcptest.Options{}, busyTool()))
	two := mcptest.Serve(t, mcptest.New(mcptest.Options{}, busyTool()))
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"one":{"url":%q},"two":{"url":%q}}}`, one.URL, two.URL))
	d.awaitTools("one:busy", "two:busy")
	for _, version := range []string{legacyRevision, modernRevision} {
		s, _ := d.all(version)
		var calls sync.WaitGroup
		for n := range 8 {
			calls.Go(func() {
				name := []string{"one__busy", "two__busy"}[n%2]
				r, err := s.CallTool(within(t), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"n": n}})
				text, _ := json.Marshal(r)
				if err != nil || !strings.Contains(string(text), fmt.Sprintf("call %d", n)) || !strings.Contains(string(text), `"Ada"`) {
					t.Errorf("%s %s %d: %s %v", version, name, n, text, err)
				}
			})
		}
		calls.Wait()
	}
}

// /mcp/all serves the same tools to a client over stdio.
func TestStdioAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := strings.Replace(startUpstream(t, echo).config("fake", ""), "{", `{"listen":"127.0.0.1:0",`, 1)
	if err := os.WriteFile(filepath.Join(dir, "mcp_config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{legacyRevision, modernRevision} {
		s := connect(t, stdioCommand(dir, "--all"), version)
		eventually(t, "the tool can be called", func() error {
			r, err := s.CallTool(within(t), &mcp.CallToolParams{Name: "fake__echo", Arguments: map[string]any{"a": 1}})
			if err == nil && (r.IsError || len(r.Content) == 0) {
				err = fmt.Errorf("%+v", r)
			}
			return err
		})
		tools, err := s.ListTools(within(t), nil)
		if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "fake__echo" {
			t.Errorf("%s: %+v %v", version, tools, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	if out, err := stdioCommand(dir, "--all", "--server", "fake").Output(); err == nil || len(out) > 0 {
		t.Errorf("both at once: %s", out)
	}
}

// All tools of real servers are unchanged, except for their names.
func TestAllKeepsRealTools(t *testing.T) {
	t.Parallel()
	servers := realServers(t)
	var config strings.Builder
	var last []string
	sent := map[string]json.RawMessage{}
	for server, tools := range servers {
		definitions := make([]string, len(tools))
		for i, raw := range tools {
			definitions[i] = string(raw)
			sent[server+"__"+toolName(t, raw)] = raw
		}
		fmt.Fprintf(&config, `%q:{"url":%q,"trust":"auto"},`, server, startUpstream(t, definitions...).URL)
		last = append(last, server+":"+toolName(t, tools[len(tools)-1]))
	}
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{%s}}`, config.String()))
	d.awaitTools(last...)
	c, cursor, got := d.clientAt("/mcp/all"), "", 0
	for {
		resp, err := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":%q}}`, cursor))
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Result struct {
				Tools      []json.RawMessage
				NextCursor string
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		for _, raw := range list.Result.Tools {
			name := toolName(t, raw)
			server, own, _ := strings.Cut(name, "__")
			back := bytes.Replace(raw, []byte(`"`+name+`"`), []byte(`"`+own+`"`), 1)
			back = bytes.ReplaceAll(back, []byte(`"ui://mcpproxy/`+server+`/`), []byte(`"ui://`)) // if two servers name it
			if sent[name] == nil || !reflect.DeepEqual(exact(t, back), exact(t, sent[name])) {
				t.Errorf("%s of %s has changed:\n%.300s\n%.300s", name, server, back, sent[name])
			}
			got++
		}
		if cursor = list.Result.NextCursor; cursor == "" {
			break
		}
	}
	if got != len(sent) {
		t.Errorf("got %d of %d tools", got, len(sent))
	}
	t.Logf("%d tools of %d servers", got, len(servers))
}
