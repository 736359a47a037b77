package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
)

// serveEverything runs the reference server from npm over HTTP. The transport is "streamableHttp" or "sse".
func serveEverything(t testing.TB, transport string) (url string) {
	t.Helper()
	modules, node := peers(t)
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js"), transport)
	cmd.Env = append(os.Environ(), "PORT="+port)
	serveAt(t, cmd, address)
	return "http://" + address
}

// serveAt runs a server until the end of the test. It returns when the server listens.
func serveAt(t testing.TB, cmd *exec.Cmd, address string) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	eventually(t, "the server answers", func() error {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// curious is a client with all capabilities, connected to a server directly or through MCPProxy. It answers the
// server's requests.
type curious struct {
	t       testing.TB
	url     string
	session string
}

func (c *curious) send(body string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Session-Id": c.session, "Mcp-Protocol-Version": legacyRevision} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// ask sends a request and returns the resulting messages in order: the status, the server's notifications and requests,
// and the response.
func (c *curious) ask(method, params string) []string {
	c.t.Helper()
	resp := c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","method":%q,"params":%s}`, method, params))
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); c.session == "" {
		c.session = id
	}
	said := []string{resp.Status}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			c.t.Error(err)
		}
		return append(said, message(body))
	}
	events := wirejson.NewSSEReader(resp.Body, 16<<20)
	for {
		e, err := events.Next()
		if err != nil {
			return said
		}
		if len(bytes.TrimSpace(e.Data)) == 0 {
			continue
		}
		if m := message(e.Data); !unsolicited.MatchString(m) {
			said = append(said, m)
		}
		id, asked := wirejson.Find(e.Data, "id"), wirejson.Find(e.Data, "method")
		if id == nil || asked == nil {
			continue
		}
		method, _ := wirejson.String(asked)
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, map[string]string{
			"roots/list":             `{"roots":[{"uri":"file:///a","name":"a"}]}`,
			"sampling/createMessage": `{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}`,
			"elicitation/create":     `{"action":"accept","content":{"name":"n","interpretation":"technical"}}`,
		}[method])).Body.Close()
	}
}

// message returns a message without its envelope, in which the order and the IDs may differ.
func message(raw []byte) string {
	for _, name := range []string{"result", "error"} {
		if v := wirejson.Find(raw, name); v != nil {
			return name + " " + string(v)
		}
	}
	method, _ := wirejson.String(wirejson.Find(raw, "method"))
	return method + " " + string(wirejson.Find(raw, "params"))
}

// changing matches the parts of answers that differ in each run.
var changing = regexp.MustCompile(`\d{1,2}:\d\d:\d\d( [AP]M)?|\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}`)

// unsolicited matches messages that the server may send at any time, over HTTP on a separate stream.
var unsolicited = regexp.MustCompile(`^(notifications/\w+/list_changed|notifications/tasks/status|roots/list) `)

// TestEverythingServerUnchanged: the reference server answers every method through the gateway as it does directly,
// over HTTP and stdio. That includes tools only for clients that accept requests from the server, and a tool that runs
// as a task.
func TestEverythingServerUnchanged(t *testing.T) {
	t.Parallel()
	modules, node := peers(t)
	direct := serveEverything(t, "streamableHttp") + "/mcp"
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"http":{"url":%q,"trust":"auto"},"pipe":{"command":%q,"args":[%q,"stdio"],"trust":"auto"}}}`,
		serveEverything(t, "streamableHttp")+"/mcp", node, filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js")))
	d.awaitTools("http:echo", "pipe:echo")
	call := func(name, arguments string) [2]string {
		return [2]string{"tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":7}}`, name, arguments)}
	}
	requests := [][2]string{
		{"ping", `{}`}, {"tools/list", `{}`}, {"tools/list", `{"cursor":"none"}`}, {"logging/setLevel", `{"level":"emergency"}`}, {"logging/setLevel", `{"level":"loud"}`},
		{"resources/list", `{}`}, {"resources/templates/list", `{}`}, {"prompts/list", `{}`}, {"no/such", `{}`}, {"server/discover", `{}`},
		{"resources/read", `{"uri":"demo://resource/dynamic/text/1"}`}, {"resources/read", `{"uri":"demo://resource/static/document/features.md"}`}, {"resources/read", `{"uri":"no:such"}`}, {"resources/read", `{}`},
		{"resources/subscribe", `{"uri":"demo://resource/dynamic/text/1"}`}, {"resources/unsubscribe", `{"uri":"demo://resource/dynamic/text/1"}`},
		{"prompts/get", `{"name":"simple-prompt"}`}, {"prompts/get", `{"name":"args-prompt","arguments":{"city":"Ulm"}}`}, {"prompts/get", `{"name":"args-prompt"}`},
		{"prompts/get", `{"name":"resource-prompt","arguments":{"resourceType":"Text","resourceId":"1"}}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"E"}}`},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"demo://resource/dynamic/text/{resourceId}"},"argument":{"name":"resourceId","value":"1"}}`},
		call("echo", `{"message":"é\u0000 9007199254740993"}`), call("echo", `{}`), call("get-sum", `{"a":1,"b":2.5}`), call("get-tiny-image", `{}`),
		call("get-annotated-message", `{"messageType":"error","includeImage":true}`), call("get-resource-links", `{"count":3}`), call("get-resource-reference", `{"resourceType":"Text","resourceId":1}`),
		call("get-structured-content", `{"location":"Chicago"}`), call("trigger-long-running-operation", `{"duration":0.2,"steps":4}`),
		call("trigger-sampling-request", `{"prompt":"p"}`), call("trigger-elicitation-request", `{}`), call("simulate-research-query", `{"topic":"t"}`),
		{"tasks/get", `{"taskId":"none"}`}, {"tasks/result", `{"taskId":"none"}`}, {"tasks/cancel", `{"taskId":"none"}`}, {"tasks/list", `{}`},
	}
	play := func(url string) (said [][]string) {
		c := &curious{t: t, url: url}
		said = append(said, c.ask("initialize", `{"protocolVersion":"`+legacyRevision+`","capabilities":{"sampling":{},"elicitation":{},"roots":{"listChanged":true}},"clientInfo":{"name":"e2e","version":"1"}}`))
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close()
		for _, r := range requests {
			said = append(said, c.ask(r[0], r[1]))
		}
		begun := c.ask("tools/call", `{"name":"simulate-research-query","arguments":{"topic":"t","ambiguous":true},"task":{"ttl":60000}}`)
		id := regexp.MustCompile(`"taskId":("[^"]+")`).FindStringSubmatch(begun[len(begun)-1])
		if id == nil {
			t.Errorf("no task: %q", begun)
			return append(said, begun)
		}
		return append(said, c.ask("tasks/result", `{"taskId":`+id[1]+`}`))
	}
	const away = "http://%s/mcp/servers/%s"
	urls := []string{direct, fmt.Sprintf(away, d.address, "http"), fmt.Sprintf(away, d.address, "pipe")}
	answers := make([][][]string, len(urls))
	var wg sync.WaitGroup
	for i, url := range urls {
		wg.Go(func() { answers[i] = play(url) })
	}
	wg.Wait()
	asked := append(append([][2]string{{"initialize"}}, requests...), [2]string{"tasks/result"})
	for i, got := range answers[1:] {
		for n, want := range answers[0] {
			a, b := fmt.Sprintf("%q", got[n]), fmt.Sprintf("%q", want)
			if changing.ReplaceAllString(a, "…") != changing.ReplaceAllString(b, "…") {
				t.Errorf("%s, %s:\n got %.1500s\nwant %.1500s", urls[i+1], asked[n], a, b)
			}
		}
	}
}

// TestModernEverythingServerUnchanged: the SDK's everything-server answers every method of 2026-07-28 through the
// gateway as it does directly: over HTTP with the same statuses and headers, and over stdio.
func TestModernEverythingServerUnchanged(t *testing.T) {
	t.Parallel()
	fixture := buildSDK(t, everythingServer)
	direct := serveFixture(t, fixture, true)
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"http":{"url":%q},"pipe":{"command":%q}}}`, serveFixture(t, fixture, true), fixture))
	d.awaitTools("http:test_simple_text", "pipe:test_simple_text")
	type request struct{ method, name, params string }
	call := func(name, more string) request {
		return request{"tools/call", name, fmt.Sprintf(`"name":%q,"arguments":{}%s`, name, more)}
	}
	requests := []request{
		{"server/discover", "", ""}, {"tools/list", "", ""}, {"tools/list", "", `"cursor":"none"`}, {"resources/list", "", ""}, {"resources/templates/list", "", ""}, {"prompts/list", "", ""},
		{"resources/read", "test://static-text", `"uri":"test://static-text"`}, {"resources/read", "test://static-binary", `"uri":"test://static-binary"`},
		{"resources/read", "no:such", `"uri":"no:such"`}, {"prompts/get", "test_simple_prompt", `"name":"test_simple_prompt"`},
		{"prompts/get", "test_prompt_with_arguments", `"name":"test_prompt_with_arguments","arguments":{"arg1":"é","arg2":"2"}`},
		{"completion/complete", "", `"ref":{"type":"ref/prompt","name":"test_prompt_with_arguments"},"argument":{"name":"arg1","value":"p"}`},
		{"ping", "", ""}, {"initialize", "", `"protocolVersion":"2026-07-28"`}, {"logging/setLevel", "", `"level":"debug"`},
		{"resources/subscribe", "", `"uri":"test://watched-resource"`},
	}
	for _, tool := range []string{"simple_text", "image_content", "audio_content", "embedded_resource", "multiple_content_types", "tool_with_logging", "error_handling",
		"missing_capability", "logging_tool", "input_required_result_elicitation", "input_required_result_sampling", "input_required_result_list_roots",
		"input_required_result_request_state", "input_required_result_multiple_inputs"} {
		requests = append(requests, call("test_"+tool, ""))
	}
	// Over stdio the server's texts for these requests differ, or it repeats the progress token, which MCPProxy
	// replaces on a shared connection.
	overHTTP := []request{{"no/such", "", ""}, {"tasks/get", "t", `"taskId":"t"`}, call("test_tool_with_progress", "")}
	requests = append(requests, overHTTP...)
	play := func(url string) (said [][]string) {
		for _, r := range requests {
			params := strings.TrimPrefix(r.params+`,"_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/protocolVersion":"`+modernRevision+
				`","io.modelcontextprotocol/clientCapabilities":{"sampling":{},"elicitation":{},"roots":{}}}`, ",")
			req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","method":%q,"params":{%s}}`, r.method, params)))
			if err != nil {
				t.Error(err)
				return nil
			}
			for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"Mcp-Protocol-Version": modernRevision, "Mcp-Method": r.method, "Mcp-Name": r.name} {
				if value != "" {
					req.Header.Set(name, value)
				}
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return nil
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Error(err)
			}
			resp.Body.Close()
			for _, name := range []string{"Date", "Connection", "X-Accel-Buffering", "Content-Length", "Content-Type"} { // headers of the connection or of the envelope
				resp.Header.Del(name)
			}
			got := []string{resp.Status, fmt.Sprint(resp.Header)}
			events := wirejson.NewSSEReader(bytes.NewReader(body), 16<<20)
			for {
				e, err := events.Next()
				if err != nil {
					break
				}
				if len(e.Data) > 0 {
					got = append(got, message(e.Data))
				}
			}
			if len(got) == 2 {
				got = append(got, message(body))
			}
			said = append(said, got)
		}
		return said
	}
	state := regexp.MustCompile(`\\"requestState\\":\\"[^"]*"`)
	want := play(direct)
	for _, server := range []string{"http", "pipe"} {
		said := play("http://" + d.address + "/mcp/servers/" + server)
		if server == "pipe" {
			said = said[:len(said)-len(overHTTP)]
		}
		for n, got := range said {
			if server == "pipe" { // stdio has no headers
				got[1], want[n][1] = "", ""
			}
			a, b := fmt.Sprintf("%q", got), fmt.Sprintf("%q", want[n])
			if state.ReplaceAllString(a, "") != state.ReplaceAllString(b, "") {
				t.Errorf("%s, %v:\n got %.1500s\nwant %.1500s", server, requests[n], a, b)
			}
		}
	}
}
