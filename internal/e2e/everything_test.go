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

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
)

// serveEverything runs the reference server from npm over HTTP.
func serveEverything(t testing.TB) (url string) {
	t.Helper()
	modules, node := peers(t)
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js"), "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
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
	return "http://" + address + "/mcp"
}

// curious is a client that can do everything, on a server itself or through the
// gateway. It answers what it is asked.
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

// ask gives all that comes of a request, in order: the status, what is said and
// asked meanwhile, the response.
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
	events := jsonrpc.NewEventReader(resp.Body, 16<<20)
	for {
		e, err := events.Next()
		if err != nil {
			return said
		}
		if len(bytes.TrimSpace(e.Data)) == 0 {
			continue
		}
		if m := message(e.Data); !unasked.MatchString(m) {
			said = append(said, m)
		}
		id, asked := strictjson.Find(e.Data, "id"), strictjson.Find(e.Data, "method")
		if id == nil || asked == nil {
			continue
		}
		method, _ := strictjson.String(asked)
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, map[string]string{
			"roots/list":             `{"roots":[{"uri":"file:///a","name":"a"}]}`,
			"sampling/createMessage": `{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}`,
			"elicitation/create":     `{"action":"accept","content":{"name":"n","interpretation":"technical"}}`,
		}[method])).Body.Close()
	}
}

// message is a message without the envelope, whose order and ids are anybody's.
func message(raw []byte) string {
	for _, name := range []string{"result", "error"} {
		if v := strictjson.Find(raw, name); v != nil {
			return name + " " + string(v)
		}
	}
	method, _ := strictjson.String(strictjson.Find(raw, "method"))
	return method + " " + string(strictjson.Find(raw, "params"))
}

// changing are the parts of answers that are other ones each time.
var changing = regexp.MustCompile(`\d{1,2}:\d\d:\d\d( [AP]M)?|\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}`)

// unasked is what the server says at any time, over HTTP on a stream of its own.
var unasked = regexp.MustCompile(`^(notifications/\w+/list_changed|notifications/tasks/status|roots/list) `)

// TestEverythingAsItIs: the reference server answers every method through the
// gateway as it does directly, over HTTP and stdio: also the tools that it has
// only for clients that can be asked something, and the one that is a task.
func TestEverythingAsItIs(t *testing.T) {
	modules, node := peers(t)
	direct := serveEverything(t)
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"http":{"url":%q,"trust":"auto"},"pipe":{"command":%q,"args":[%q,"stdio"],"trust":"auto"}}}`,
		serveEverything(t), node, filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js")))
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
		{"prompts/get", `{"name":"none"}`}, {"prompts/get", `{"name":"resource-prompt","arguments":{"resourceType":"Text","resourceId":"1"}}`},
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
