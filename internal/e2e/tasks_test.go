package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// taskClient is a client that supports tasks, connected to the server directly or through MCPProxy. It keeps the
// notifications that it gets.
type taskClient struct {
	t       testing.TB
	url     string
	key     string // API key, or ""
	modern  bool
	session string

	mu    sync.Mutex // guards the fields below
	notes []string
}

// meta returns the _meta of a modern client, with or without support for tasks.
func meta(tasks bool) string {
	extensions := ""
	if tasks {
		extensions = `"extensions":{"io.modelcontextprotocol/tasks":{}}`
	}
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernRevision + `","io.modelcontextprotocol/clientCapabilities":{` + extensions + `}}`
}

// open starts a session in the legacy protocol and listens in it until the test ends.
func (c *taskClient) open() *taskClient {
	if c.modern {
		return c
	}
	resp := c.post(c.t.Context(), "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacyRevision+
		`","capabilities":{"elicitation":{},"tasks":{"requests":{"elicitation":{"create":{}}}}},"clientInfo":{"name":"e2e","version":"1"}}}`)
	resp.Body.Close()
	if c.session = resp.Header.Get("Mcp-Session-Id"); c.session == "" {
		c.t.Fatalf("initialize gave no session: %s", resp.Status)
	}
	c.post(c.t.Context(), "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", c.session)
	if c.key != "" {
		req.Header.Set("X-API-Key", c.key)
	}
	stream, err := http.DefaultClient.Do(req)
	if err != nil || stream.StatusCode != http.StatusOK {
		c.t.Fatalf("no stream: %v %v", stream, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer stream.Body.Close()
		c.read(stream.Body)
	}()
	c.t.Cleanup(func() { cancel(); <-ended })
	return c
}

func (c *taskClient) post(ctx context.Context, name, body string) *http.Response {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return &http.Response{Body: http.NoBody}
	}
	method, _ := wirejson.String(wirejson.Find([]byte(body), "method"))
	headers := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-API-Key": c.key}
	if c.modern {
		headers["Mcp-Protocol-Version"], headers["Mcp-Method"], headers["Mcp-Name"] = modernRevision, method, encoded(name)
	} else {
		headers["Mcp-Session-Id"] = c.session
	}
	for name, value := range headers {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Error(err)
		return &http.Response{Body: http.NoBody}
	}
	return resp
}

// encoded returns a name as a header value.
func encoded(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r > '~' }) < 0 {
		return name
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
}

// read reads a stream: it keeps notifications, answers requests, and returns the requests and the response.
func (c *taskClient) read(r io.Reader) (asked []string, response string) {
	events := wirejson.NewSSEReader(r, 1<<20)
	for {
		e, err := events.Next()
		if err != nil {
			return asked, response
		}
		id := string(wirejson.Find(e.Data, "id"))
		switch method := wirejson.Find(e.Data, "method"); {
		case method == nil:
			response = string(e.Data)
		case id == "":
			c.mu.Lock()
			c.notes = append(c.notes, string(e.Data))
			c.mu.Unlock()
		default:
			asked = append(asked, string(e.Data[strings.Index(string(e.Data), `"method"`):])) // IDs differ between servers
			c.post(context.Background(), "", `{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"accept","content":{"n":9007199254740993}}}`).Body.Close()
		}
	}
}

// do sends a request about a task or a tool and returns all resulting messages.
func (c *taskClient) do(method, name, params string) string {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"x","method":%q,"params":{%s}}`, method, params)
	resp := c.post(context.Background(), name, body)
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		asked, response := c.read(resp.Body)
		return fmt.Sprintf("%d %s %q", resp.StatusCode, response, asked)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Error(err)
	}
	return fmt.Sprintf("%d %s %q", resp.StatusCode, answer, []string(nil))
}

func (c *taskClient) task(method, id, more string) string {
	params := fmt.Sprintf(`"taskId":%q%s`, id, more)
	if c.modern {
		params += "," + meta(true)
	}
	return c.do(method, id, params)
}

func (c *taskClient) create(tool, id string, ask bool) string {
	params := fmt.Sprintf(`"name":%q,"arguments":{"id":%q,"ask":%t}`, tool, id, ask)
	if c.modern {
		return c.do("tools/call", tool, params+","+meta(true))
	}
	return c.do("tools/call", tool, params+`,"task":{"ttl":60000,"vendor":1.0}`)
}

// play runs several tasks through all their states. Its result is the same each time.
func (c *taskClient) play(name string) (said []string) {
	a, b, d := name+"-a", name+"-b", name+"-d é"
	say := func(one string) { said = append(said, one) }
	say(c.create("work", a, false))
	say(c.task("tasks/get", a, ""))
	say(c.task("tasks/get", a, ""))
	say(c.create("must", b, true))
	say(c.task("tasks/get", b, ""))
	say(c.task("tasks/get", b, ""))
	if c.modern {
		say(c.task("tasks/update", b, `,"inputResponses":{"q":{"action":"accept","content":{"n":9007199254740993}}}`))
		say(c.task("tasks/get", b, ""))
		say(c.task("tasks/get", b, ""))
		say(c.do("tasks/get", a, fmt.Sprintf(`"taskId":%q,%s`, a, meta(false))))
		say(c.do("tools/call", "must", `"name":"must","arguments":{},`+meta(false)))
		say(c.do("tools/call", "work", `"name":"work","arguments":{"id":"now"},`+meta(false)))
		say(c.do("tasks/list", "", meta(true)))
	} else {
		say(c.task("tasks/result", a, ""))
		say(c.task("tasks/result", b, ""))
		say(c.do("tools/call", "", `"name":"must","arguments":{}`))
		say(c.do("tools/call", "", `"name":"work","arguments":{"id":"now"}`))
	}
	say(c.create("work", d, false))
	if !c.modern { // tasks/result waits for the end
		waits := make(chan string)
		go func() { waits <- c.task("tasks/result", d, "") }()
		said = append(said, c.task("tasks/cancel", d, ""), <-waits)
	} else {
		said = append(said, c.listens(name+"-e")...)
		say(c.task("tasks/cancel", d, ""))
	}
	say(c.task("tasks/cancel", d, ""))
	say(c.task("tasks/get", d, ""))
	say(c.task("tasks/get", "nobody's", ""))
	if !c.modern {
		say(c.do("tasks/list", "", `"cursor":"c"`))
	}
	return said
}

// listens subscribes to a task, makes it progress, and returns the notifications.
func (c *taskClient) listens(id string) (said []string) {
	said = append(said, c.create("work", id, true))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	resp := c.post(ctx, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":77,"method":"subscriptions/listen","params":{"notifications":{"taskIds":[%q,"nobody's"]},%s}}`, id, meta(true)))
	defer resp.Body.Close()
	events := wirejson.NewSSEReader(resp.Body, 1<<20)
	next := func() {
		e, err := events.Next()
		if err != nil {
			c.t.Errorf("the subscription ended: %v", err)
		}
		said = append(said, string(e.Data))
	}
	next()
	said = append(said, c.task("tasks/get", id, ""))
	next()
	said = append(said, c.task("tasks/update", id, `,"inputResponses":{"q":{"action":"decline"}}`))
	next()
	return said
}

// heard waits for n notifications outside of responses and returns them.
func (c *taskClient) heard(n int) (notes []string) {
	c.t.Helper()
	eventually(c.t, "the client gets its notifications", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if notes = slices.Sorted(slices.Values(c.notes)); len(notes) < n {
			return fmt.Errorf("%q", notes)
		}
		return nil
	})
	return notes
}

// TestTasks: tasks of both protocols pass unchanged through the endpoint of a server, over HTTP and stdio. A client's
// tasks are not accessible to other clients.
func TestTasks(t *testing.T) {
	t.Parallel()
	config := `"trust":"auto"`
	var servers []string
	direct := map[bool]string{}
	for _, modern := range []bool{false, true} {
		direct[modern] = mcptest.Serve(t, mcptest.NewTaskServer(modern)).URL
		servers = append(servers, fmt.Sprintf(`"http-%t":{"url":%q,%s}`, modern, mcptest.Serve(t, mcptest.NewTaskServer(modern)).URL, config))
		command, env := mcptest.ChildCommand(t, fmt.Sprintf("tasks-%t", modern))
		variables, err := json.Marshal(env)
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, fmt.Sprintf(`"pipe-%t":{"command":%q,"env":%s,%s}`, modern, command, variables, config))
	}
	d := startDaemon(t, `{"mcpServers":{`+strings.Join(servers, ",")+`}}`)
	for _, modern := range []bool{false, true} {
		for _, transport := range []string{"http", "pipe"} {
			server := fmt.Sprintf("%s-%t", transport, modern)
			t.Run(server, func(t *testing.T) {
				d.awaitTools(server + ":work")
				var wg sync.WaitGroup
				var clients []*taskClient
				statuses := 5 // status notifications for one client, if the server sends them unrequested
				if modern {
					statuses = 0
				}
				for i, name := range []string{"one", "two"} {
					mine := (&taskClient{t: t, url: direct[modern], modern: modern}).open()
					through := (&taskClient{t: t, url: "http://" + d.address + "/mcp/servers/" + server, modern: modern, key: []string{d.key(), ""}[i]}).open()
					clients = append(clients, through)
					wg.Go(func() {
						want, got := mine.play(transport+name), through.play(transport+name)
						for i := range want {
							if got[i] != want[i] {
								t.Errorf("%s, message %d:\n got %s\nwant %s", name, i, got[i], want[i])
							}
						}
						if notes := mine.heard(statuses); !slices.Equal(through.heard(statuses), notes) {
							t.Errorf("%s: notifications\n%q, want\n%q", name, through.notes, notes)
						}
					})
				}
				wg.Wait()
				if answer := clients[1].task("tasks/get", transport+"one-a", ""); !strings.Contains(answer, `"code":-32602`) {
					t.Errorf("the task of another caller: %s", answer)
				}
				if answer := clients[0].task("tasks/get", transport+"one-a", ""); !strings.Contains(answer, `"status":"completed"`) {
					t.Errorf("the client's own task: %s", answer)
				}
			})
		}
	}
}

// TestTasksWhereUnsupported: endpoints without tasks do not announce tasks. A tool with optional tasks is called as
// usual, and a tool that requires a task returns an error that says so.
func TestTasksWhereUnsupported(t *testing.T) {
	t.Parallel()
	const unsolicited = `{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null}`
	odd := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: `{"name":"odd","annotations":{"readOnlyHint":true}}`,
		Handle: func(*mcptest.Call) (json.RawMessage, error) { return json.RawMessage(unsolicited), nil }})
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"older":{"url":%q,"trust":"auto"},"newer":{"url":%q,"trust":"auto"},"odd":{"url":%q,"trust":"auto"}}}`,
		mcptest.Serve(t, mcptest.NewTaskServer(false)).URL, mcptest.Serve(t, mcptest.NewTaskServer(true)).URL, mcptest.Serve(t, odd).URL))
	d.awaitTools("older:work", "newer:work", "odd:odd")
	client := func(path string, modern bool) *taskClient {
		c := &taskClient{t: t, url: "http://" + d.address + path, modern: modern}
		return c.open()
	}
	wants := func(what, answer string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if without, not := strings.CutPrefix(part, "!"); not == strings.Contains(answer, without) {
				t.Errorf("%s: %s, want %s", what, answer, part)
			}
		}
	}
	for _, surface := range []struct {
		path, prefix string
		modern       bool
		refusal      string // of the tool that requires a task
	}{
		{"/mcp/servers/newer", "", false, `"code":-32021`},
		{"/mcp/servers/older", "", true, `must runs as a task only`},
		{"/mcp/all", "newer__", true, `"code":-32021`},
		{"/mcp/all", "newer__", false, `"code":-32021`},
		{"/mcp/all", "older__", true, `must runs as a task only`},
		{"/mcp/all", "older__", false, `must runs as a task only`},
	} {
		what := fmt.Sprintf("%s %s modern %t", surface.path, surface.prefix, surface.modern)
		c := client(surface.path, surface.modern)
		if surface.modern {
			wants(what, c.do("server/discover", "", meta(true)), `"capabilities":{`, `!"tasks"`, "!modelcontextprotocol/tasks")
		}
		wants(what, c.create(surface.prefix+"work", "id", false), `"told":"at once"`, "!taskId")
		wants(what, c.create(surface.prefix+"must", "id", false), surface.refusal)
		wants(what, c.task("tasks/get", "id", ""), `"code":-32601`)
	}
	legacy := d.legacy()
	for tool, want := range map[string]string{"older:must": "must runs as a task only", "newer:must": "Missing required client capability", "odd:odd": "answered with a task"} {
		p := legacy.call("call_tool_read", fmt.Sprintf(`{"name":%q,"args":{}}`, tool)).refusal(t)
		if server, _, _ := strings.Cut(tool, ":"); p.Code != "UPSTREAM_ERROR" || !strings.Contains(p.Message, want) || !strings.Contains(p.Hint, "/mcp/servers/"+server) {
			t.Errorf("%s: %+v", tool, p)
		}
	}
	if r := legacy.call("call_tool_read", `{"name":"newer:work","args":{"id":"now"}}`); r.IsError || r.text() != "now" {
		t.Errorf("a tool with optional tasks: %+v", r)
	}

	older := client("/mcp/servers/older", false)
	wants("a task", older.create("work", "held", false), `"taskId":"held"`)
	if code, _, stderr := d.cli("tools", "disable", "older:work"); code != 0 {
		t.Fatal(stderr)
	}
	wants("a locked tool", older.create("work", "not", false), `"isError":true`, "!taskId")
	wants("its list", older.do("tasks/list", "", ""), `"taskId":"held"`, `!"not"`)
	_, recorded := d.rest("GET", "/activity?tool=work&server=older&limit=100", "")
	wants("the record", string(recorded), `"status":"success"`, `"status":"blocked"`, `"id":"held"`)
}
