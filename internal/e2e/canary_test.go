package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// canary is part of every text that the servers of these tests send. A different number follows it in each text.
const canary = "zqcanary"

// poisonedTool returns the definition of the tool name, with a canary in each field that a definition can have.
func poisonedTool(name string) (raw string, fields int) {
	raw = fmt.Sprintf(`{"name":%q,"title":"@","description":"Reads a note @","inputSchema":{"type":"object","title":"@","description":"@","$comment":"@",
		"properties":{"p@":{"type":"string","title":"@","description":"@","default":"@","enum":["@","x"],"const":"@","examples":["@"],"pattern":"@","format":"@","$comment":"@","x-vendor":"@"},
			"nested":{"type":"object","properties":{"p@":{"description":"@"}}}},
		"required":["p@"],"$defs":{"d@":{"description":"@"}},"oneOf":[{"title":"@"}]},
		"outputSchema":{"type":"object","properties":{"o@":{"description":"@"}}},
		"annotations":{"title":"@","readOnlyHint":true,"v@":"@"},"icons":[{"src":"https://@.example/i.png","mimeType":"@"}],
		"execution":{"taskSupport":"@"},"_meta":{"m@":"@"},"unknown@":"@"}`, name)
	parts := strings.Split(raw, "@")
	var out strings.Builder
	for i, part := range parts[:len(parts)-1] {
		fmt.Fprintf(&out, "%s%s%02d", part, canary, i)
	}
	out.WriteString(parts[len(parts)-1])
	return out.String(), len(parts) - 1
}

// chatty is a server that puts a canary into every text that it can send.
type chatty struct {
	*httptest.Server
	tool   string
	broken atomic.Bool // it answers with errors that contain canaries
	asked  atomic.Int64
}

func startChatty(t *testing.T, tool string) *chatty {
	c := &chatty{tool: tool}
	c.Server = httptest.NewServer(http.HandlerFunc(c.answer))
	t.Cleanup(c.Close)
	return c
}

func (c *chatty) answer(w http.ResponseWriter, r *http.Request) {
	c.asked.Add(1)
	body, err := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if r.Method != http.MethodPost || err != nil || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `"result":{}`
	switch {
	case c.broken.Load():
		result = fmt.Sprintf(`"error":{"code":-32000,"message":"%[1]s80","data":{"%[1]s81":"%[1]s82"}}`, canary)
	case m.Method == "initialize":
		result = fmt.Sprintf(`"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{},"experimental":{"%[1]s90":{"a":"%[1]s91"}}},
			"serverInfo":{"name":"%[1]s92","title":"%[1]s93","version":"%[1]s94","websiteUrl":"https://%[1]s95.example"},"instructions":"%[1]s96","_meta":{"%[1]s97":1}}`, canary)
	case m.Method == "tools/list":
		result = `"result":{"tools":[` + c.tool + `]}`
	case canaryLists[m.Method] != "":
		result = `"result":` + strings.ReplaceAll(canaryLists[m.Method], "@", canary)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, result)
}

// canaryLists are lists with a canary in each field that a prompt, a resource or a template can have.
var canaryLists = map[string]string{
	"prompts/list": `{"prompts":[{"name":"@p1","title":"@p2","description":"@p3","arguments":[{"name":"@p4","title":"@p5","description":"@p6","x@p7":1}],
		"icons":[{"src":"https://@p8.example","mimeType":"@p9"}],"_meta":{"@p10":"@p11"},"v@p12":"@p13"},{"name":"ask","description":"@p14"}]}`,
	"resources/list": `{"resources":[{"uri":"notes://@r1","name":"@r2","title":"@r3","description":"@r4","mimeType":"@r5","size":"@r6","annotations":{"audience":["@r7"],"lastModified":"@r8","@r9":1},
		"icons":[{"src":"https://@r10.example"}],"_meta":{"@r11":"@r12"},"@r13":"@r14"},{"uri":"notes://one","name":"@r15"}]}`,
	"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"@t1://{@t2}","name":"@t3","title":"@t4","description":"@t5","mimeType":"@t6","annotations":{"audience":["@t7"]},
		"icons":[{"src":"https://@t8.example"}],"_meta":{"@t9":"@t10"},"@t11":"@t12"},{"uriTemplate":"book://{page}","name":"@t13"}]}`,
}

// everythingAnAgentSees asks every question that an agent can ask about a
// server, and returns all that came back.
func (d *daemon) everythingAnAgentSees(server string) map[string]string {
	d.t.Helper()
	seen := map[string]string{}
	look := func(a *agent, name, path, body string) {
		d.t.Helper()
		req, err := http.NewRequest(http.MethodPost, "http://"+d.address+path, strings.NewReader(body))
		if err != nil {
			d.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if a.session != "" && path == "/mcp" {
			req.Header.Set("Mcp-Session-Id", a.session)
		}
		resp, err := a.client.Do(req)
		if err != nil {
			d.t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			d.t.Fatal(err)
		}
		seen[path+" "+name+" "+body] = fmt.Sprint(resp.Header) + string(answer)
	}
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacyRevision + `","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`
	a := d.legacy()
	for _, path := range []string{"/mcp", "/mcp/all", "/mcp/servers/" + server} {
		look(&agent{d: d, client: a.client}, "a new client", path, hello)
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover", "ping", "nonsense"} {
			look(a, "a list", path, `{"jsonrpc":"2.0","id":2,"method":"`+method+`"}`)
		}
	}
	call := func(tool, arguments string) {
		look(a, "a call", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments))
	}
	for _, query := range []string{"read a note", "zq", server, "p", ""} {
		for _, more := range []string{"", `,"include_disabled":true`, `,"include_disabled":true,"detail":"compact"`, `,"operation_type":"read"`} {
			call("retrieve_tools", fmt.Sprintf(`{"query":%q,"limit":100%s}`, query, more))
		}
	}
	call("upstream_servers", `{"operation":"list"}`)
	call("upstream_servers", fmt.Sprintf(`{"operation":"get","name":%q}`, server))
	call("upstream_servers", fmt.Sprintf(`{"operation":"restart","name":%q}`, server))
	call("upstream_servers", `{"operation":"get","name":"nearly-`+server+`"}`)
	for _, variant := range []string{"call_tool_read", "call_tool_write", "call_tool_destructive"} {
		for _, tool := range []string{"read_note", "read_not", "zq", "x"} {
			for _, args := range []string{"{}", `{"p":1}`, `[]`} {
				call(variant, fmt.Sprintf(`{"name":"%s:%s","args":%s}`, server, tool, args))
			}
		}
	}
	call("read_result", `{"handle":"x"}`)
	return seen
}

// everythingInSessions returns all lists of all servers and the answers of the built-in tools. The server's own
// endpoint does not return these lists while the server is quarantined.
func (d *daemon) everythingInSessions(server string) map[string]string {
	d.t.Helper()
	seen := map[string]string{}
	for _, path := range []string{"/mcp/all", "/mcp"} {
		c := d.openAt(path, `{}`)
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			resp, err := c.post(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{}}`)
			seen[path+" "+method] = readAll(d.t, resp, err)
			resp, err = d.tryModernAt(path, method, "", "", "")
			seen[path+" modern "+method] = readAll(d.t, resp, err)
		}
	}
	for _, method := range []string{"prompts/list", "resources/list", "server/discover", "resources/read"} {
		resp, err := d.tryModern(server, method, "", `"uri":"notes://one"`, "")
		seen["modern "+method] = readAll(d.t, resp, err)
	}
	return seen
}

func noCanary(t *testing.T, when string, seen map[string]string) {
	t.Helper()
	for question, answer := range seen {
		if at := strings.Index(answer, canary); at >= 0 {
			t.Errorf("%s, %s shows …%s…", when, question, answer[max(0, at-60):min(len(answer), at+60)])
		}
	}
}

// No text of a server reaches an agent before a user approves it, whatever request the agent sends.
func TestNothingUnapprovedIsShown(t *testing.T) {
	t.Parallel()
	hidden, fields := poisonedTool(canary + "_name")
	if fields < 30 {
		t.Fatalf("only %d fields contain a canary", fields)
	}
	named, _ := poisonedTool("read_note")
	quarantined, manual := startChatty(t, hidden), startChatty(t, named)
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{
		"held": {"url": %q, "quarantined": true},
		"manual": {"url": %q, "trust": "manual"}}}`, quarantined.URL, manual.URL))
	d.awaitTools("manual:read_note")
	noCanary(t, "before its launch is approved", d.everythingAnAgentSees("held"))
	if n := quarantined.asked.Load(); n > 0 {
		t.Errorf("the quarantined server was asked %d times", n)
	}
	eventually(t, "all definitions are held", func() error { return d.waits(9, "manual") })
	seen := d.everythingAnAgentSees("manual")
	maps.Copy(seen, d.everyList("manual"))
	maps.Copy(seen, d.everyUse("manual"))
	// A server that its owner added returns its identity on its own endpoint, but not its instructions.
	who := regexp.MustCompile(canary + "9[0-57]")
	for question, answer := range seen {
		if strings.HasPrefix(question, "/mcp/servers/") || strings.Contains(answer, "io.modelcontextprotocol/serverInfo") {
			seen[question] = who.ReplaceAllString(answer, "")
		}
	}
	noCanary(t, "with all of it waiting", seen)

	review := func() (raw string) {
		_, body := d.rest("GET", "/servers/held/review", "")
		return string(body)
	}
	var r struct{ Fingerprint string }
	if err := json.Unmarshal([]byte(review()), &r); err != nil {
		t.Fatal(err)
	}
	if status, body := d.rest("POST", "/servers/held/approve", `{"fingerprint":"`+r.Fingerprint+`"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	eventually(t, "the review shows the server's texts", func() error {
		if shown := review(); strings.Count(shown, canary) < fields+40 || !strings.Contains(shown, canary+"96") || !strings.Contains(shown, canary+"t12") {
			return fmt.Errorf("%s", shown)
		}
		return nil
	})
	noCanary(t, "during the review", d.everythingAnAgentSees("held"))
	noCanary(t, "during the review, in sessions", d.everythingInSessions("held"))

	quarantined.broken.Store(true)
	d.rest("POST", "/servers/held/restart", "")
	noCanary(t, "when it fails", d.everythingAnAgentSees("held"))
	d.stop()
	d.start()
	eventually(t, "the server fails after a restart", func() error {
		if s, err := d.server("held"); err != nil || s.State != "failed" {
			return fmt.Errorf("%+v %w", s, err)
		}
		return nil
	})
	noCanary(t, "after a restart", d.everythingAnAgentSees("held"))
	if status, body := d.rest("POST", "/servers/held/disable", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	noCanary(t, "when it is disabled, too", d.everythingAnAgentSees("held"))
}
