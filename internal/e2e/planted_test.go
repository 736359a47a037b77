package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// gossip is a server that repeats its arguments in results, in errors, on stderr and on stdout.
func gossip() *mcptest.Server {
	says := func(c *mcptest.Call) string {
		text, _ := wirejson.String(wirejson.Find(c.Arguments, "text"))
		text += " by " + os.Getenv("GOSSIP_KEY")
		fmt.Fprintf(os.Stderr, "\x1b]0;owned\a called with %s\n%s\n", c.Arguments, text)
		return text
	}
	schema := `"inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false},"annotations":{"readOnlyHint":true}}`
	return mcptest.New(mcptest.Options{Banner: "no JSON on stdout"},
		mcptest.Tool{Definition: `{"name":"echo",` + schema, Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			text, err := json.Marshal(says(c))
			return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"structuredContent":{"said":%s},"_meta":{"said":%s}}`, text, text, text), err
		}},
		mcptest.Tool{Definition: `{"name":"fail",` + schema, Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			return nil, errors.New("it does not work with " + says(c))
		}},
		mcptest.Tool{Definition: `{"name":"report",` + schema, Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			text, err := json.Marshal("401 for " + says(c))
			return fmt.Appendf(nil, `{"isError":true,"content":[{"type":"text","text":%s}]}`, text), err
		}})
}

// planter generates credentials and remembers where it put them. It generates them at run time, so that no secret
// scanner reports this file.
type planter struct {
	t      testing.TB
	places map[string]string // the place of each planted credential
	n      int
}

// token returns a new credential in one of the forms that services use.
func (p *planter) token() string {
	some := func(n int) string {
		return strings.ToLower(rand.Text()[:6]) + (rand.Text() + "7a" + rand.Text() + rand.Text())[:n-6]
	}
	p.n++
	switch p.n % 8 {
	case 0:
		return "gl" + "pat-" + some(20)
	case 1:
		return "gh" + "p_" + some(36)
	case 2:
		return "s" + "k-ant-api03-" + some(60)
	case 3:
		return "np" + "m_" + some(36)
	case 4:
		return "sk" + "_live_" + some(24)
	case 5:
		return "h" + "f_" + some(34)
	case 6:
		return "xo" + "xb-123456789012-123456789012-" + some(24)
	default:
		return "do" + "p_v1_" + fmt.Sprintf("%x", rand.Text()+rand.Text())[:64]
	}
}

// in returns a new credential and records its place.
func (p *planter) in(place string) string {
	token := p.token()
	p.places[token] = place
	return token
}

// encoded returns a base64 text that contains a new credential.
func (p *planter) encoded(place string, in *base64.Encoding) string {
	token := p.token()
	text := in.EncodeToString([]byte("user:" + token + "@host?>"))
	p.places[token], p.places[text] = place, place
	return text
}

// tailSize is the length of the end of a secret that look searches for first. The ends of credentials are random.
const tailSize = 8

// look searches a text for the planted credentials in one pass: some texts are files of 16 MiB.
func (p *planter) look(where, text string) {
	p.t.Helper()
	tails := map[string][]string{}
	for secret := range p.places {
		tail := secret[len(secret)-tailSize:]
		tails[tail] = append(tails[tail], secret)
	}
	for end := tailSize; end <= len(text); end++ {
		tail := text[end-tailSize : end]
		for _, secret := range tails[tail] {
			if at := end - len(secret); strings.HasSuffix(text[:end], secret) {
				p.t.Errorf("the credential from %s is still in %s: …%q…", p.places[secret], where, text[max(0, at-120):min(len(text), end+20)])
			}
		}
	}
}

// TestPlantedSecrets puts credentials into every field that clients and servers control, on all endpoints. Then it
// searches for them in everything that is stored, shown or sent.
func TestPlantedSecrets(t *testing.T) {
	t.Parallel()
	plantedSecrets(t, "", "")
}

// plantedSecrets runs the test with a database at an address, whose files are in a directory, or with the default
// SQLite database if the address is "".
func plantedSecrets(t *testing.T, database, files string) {
	p := &planter{t: t, places: map[string]string{}}
	receiver := &collector{}
	endpoint := httptest.NewServer(receiver)
	defer endpoint.Close()
	command, env := mcptest.ChildCommand(t, "gossip")
	env["GOSSIP_KEY"] = p.in("the environment of a server")
	entries := map[string]any{"validate_arguments": "warn", "log": map[string]any{"level": "debug"}, "telemetry": map[string]any{"endpoint": endpoint.URL},
		"mcpServers": map[string]any{"leaky": map[string]any{"command": command, "env": env, "trust": "auto"},
			"gone": map[string]any{"url": "http://user:" + p.in("the user information of an address") + "@127.0.0.1:1/mcp?key=" + p.in("the query of an address"),
				"headers": map[string]any{"Authorization": "Bearer " + p.in("a header for a server"), "X-Key": p.in("another header")}}}}
	if database != "" {
		entries["database"] = database
	}
	config, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, string(config))
	d.awaitTools("leaky:echo", "leaky:report")
	listens := &listener{d: d, key: d.key()}
	listening, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() { defer close(left); listens.listen(listening) }()
	for _, path := range []string{"/mcp", "/mcp/all", "/mcp/servers/leaky"} {
		for _, modern := range []bool{false, true} {
			p.overMCP(d, path, modern)
		}
	}
	p.overREST(d)
	p.overCLI(d)
	if len(p.places) < 50 {
		t.Fatalf("only %d credentials are planted", len(p.places))
	}
	t.Logf("%d credentials are planted", len(p.places))
	p.checkShown(d)
	d.kill() // before everything is in the database
	p.look("the log of the daemon", d.stderr.String())
	p.checkFiles(d.dataDir())
	d.start()
	p.overCLI(d) // the spans of these calls are sent on stop
	p.checkShown(d)
	leave()
	<-left
	d.stop()
	p.look("the log of the daemon", d.stderr.String())
	p.checkFiles(d.dataDir(), files)
	if len(listens.events) == 0 || len(receiver.spans) == 0 || len(receiver.metrics) == 0 {
		t.Errorf("%d events, %d spans and %d metrics were sent", len(listens.events), len(receiver.spans), len(receiver.metrics))
	}
	for _, e := range listens.events {
		p.look("the event "+e.kind, string(e.data))
	}
	p.look("what was sent to the receiver of traces and metrics", receiver.raw.String())
}

// overMCP plants credentials in the messages on one path in one protocol.
func (p *planter) overMCP(d *daemon, path string, modern bool) {
	era := map[bool]string{false: "legacy", true: "modern"}[modern]
	at := func(place string) string { return p.in(place + " of " + path + ", " + era) }
	session := ""
	send := func(id, method, name, params string, headers map[string]string) http.Header {
		meta := fmt.Sprintf(`"progressToken":%q,"example.com/%s":%q`, at("a progress token"), at("a key of _meta"), at("a value of _meta"))
		all := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "User-Agent": at("the user agent") + "/1"}
		if modern {
			meta += fmt.Sprintf(`,"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":%q,"version":%q}`,
				modernRevision, "client "+at("a client's name"), at("a client's version"))
			all["Mcp-Protocol-Version"], all["Mcp-Method"], all["Mcp-Name"] = modernRevision, method, name
		} else if session != "" {
			all["Mcp-Session-Id"], all["Mcp-Protocol-Version"] = session, legacyRevision
		}
		for k, v := range headers {
			all[k] = v
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":{%s,"_meta":{%s}}}`, id, method, params, meta)
		req, err := http.NewRequest(http.MethodPost, "http://"+d.address+path+"?token="+at("a query")+"&"+at("a name in a query")+"=1", strings.NewReader(body))
		if err != nil {
			p.t.Fatal(err)
		}
		for k, v := range all {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			p.t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			p.t.Fatal(err)
		}
		return resp.Header
	}
	if !modern {
		session = send(at("the id of initialize"), "initialize", "", fmt.Sprintf(`"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":%q,"version":%q}`,
			legacyRevision, "client "+at("a client's name"), at("a client's version")), nil).Get("Mcp-Session-Id")
		if session == "" {
			p.t.Fatalf("no session on %s", path)
		}
	}
	call := func(tool, arguments string) {
		name, params := tool, fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments)
		if path == "/mcp" {
			name = "call_tool_read"
			params = fmt.Sprintf(`"name":"call_tool_read","arguments":{"name":%q,"args":%s,"intent":{"operation_type":"read","reason":%q}}`,
				tool, arguments, "to use "+at("a reason"))
		}
		send(at("a request id"), "tools/call", name, params, nil)
	}
	known := map[string]string{"/mcp": "leaky:", "/mcp/all": "leaky__", "/mcp/servers/leaky": ""}[path]
	for _, tool := range []string{"echo", "fail", "report"} {
		call(known+tool, fmt.Sprintf(`{"text":%q}`, "a text with "+at("an argument of "+tool)))
		call(known+tool, fmt.Sprintf(`{"text":"x",%q:1}`, at("a key of the arguments of "+tool)))
		call(known+tool, fmt.Sprintf(`{"text":"x","deep":{%q:[%q]}}`, at("a key further in"), at("a value further in")))
		for name, in := range map[string]*base64.Encoding{"standard": base64.StdEncoding, "raw standard": base64.RawStdEncoding, "URL": base64.URLEncoding, "raw URL": base64.RawURLEncoding} {
			call(known+tool, fmt.Sprintf(`{"text":%q}`, p.encoded(name+" base64 in "+tool, in)))
		}
	}
	call(known+at("the name of a tool"), `{}`)
	call(at("the name of a server")+":tool", `{}`)
	call(known+p.encoded("a tool's name in base64", base64.RawURLEncoding), `{}`)
	send(at("a request id"), at("a method"), "", `"x":1`, nil)
	send(at("a request id"), "resources/read", "file:///x", fmt.Sprintf(`"uri":"file:///%s"`, at("an address")), nil)
	send(at("a request id"), "prompts/get", "x", fmt.Sprintf(`"name":%q`, at("the name of a prompt")), nil)
	send(at("a request id"), "tools/list", "", `"cursor":"x"`, map[string]string{"Mcp-Session-Id": at("a session id"), "Mcp-Protocol-Version": legacyRevision})
	send(at("a request id"), "tools/list", at("a header"), `"cursor":"x"`, map[string]string{"Origin": "https://" + at("an origin"), "Traceparent": at("a trace")})
	if path == "/mcp" {
		for _, arguments := range []string{`{"query":%q}`, `{"query":"x","operation_type":%q}`, `{"query":"x","cursor":%q}`} {
			send(at("a request id"), "tools/call", "retrieve_tools", fmt.Sprintf(`"name":"retrieve_tools","arguments":`+arguments, at("a search")), nil)
		}
		send(at("a request id"), "tools/call", "read_result", fmt.Sprintf(`"name":"read_result","arguments":{"handle":%q}`, at("a handle")), nil)
		send(at("a request id"), "tools/call", "upstream_servers", fmt.Sprintf(`"name":"upstream_servers","arguments":{"operation":"restart","name":%q}`, at("a server to restart")), nil)
		send(at("a request id"), "tools/call", "call_tool_read", fmt.Sprintf(`"name":"call_tool_read","arguments":{"name":"leaky:echo","args":{},"intent":{"operation_type":%q,"data_sensitivity":%q}}`, at("an intent"), at("a sensitivity")), nil)
		send(at("a request id"), "tools/call", "call_tool_read", fmt.Sprintf(`"name":"call_tool_read","arguments":{"name":"leaky:echo","args_json":"{\"text\":\"%s\",\"text\":1}"}`, at("arguments as text")), nil)
	}
}

// overREST plants credentials in REST requests with the API key.
func (p *planter) overREST(d *daemon) {
	at := func(place string) string { return p.in(place + " over REST") }
	send := func(method, path, body string) {
		req, err := http.NewRequest(method, "http://"+d.address+"/api/v1"+path, strings.NewReader(body))
		if err != nil {
			p.t.Fatal(err)
		}
		req.Header = http.Header{"X-Api-Key": {d.key()}, "Content-Type": {"application/json"}, "X-Request-Id": {at("a request id")},
			"User-Agent": {at("the user agent") + "/" + at("a version") + " more"}, "X-Mcpproxy-Source": {at("a source")}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			p.t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			p.t.Fatal(err)
		}
	}
	for _, tool := range []string{"echo", "fail", "report"} {
		send("POST", "/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_read","name":"leaky:%s","args":{"text":%q,%q:1},"intent":{"reason":%q}}`,
			tool, at("an argument"), at("a key"), at("a reason")))
	}
	send("POST", "/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_read","name":%q,"args":{}}`, "leaky:"+at("a tool")))
	send("POST", "/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_read","name":%q,"args":{}}`, at("a server")+":x"))
	send("POST", "/tools/call", fmt.Sprintf(`{"tool_variant":%q,%q:1}`, at("a variant"), at("an unknown field")))
	send("GET", "/tools/search?q="+url.QueryEscape("find "+at("a search")), "")
	send("GET", "/activity?tool="+at("a filter")+"&q="+at("a text to find"), "")
	for _, path := range []string{"/servers/%s", "/servers/%s/restart", "/servers/%s/enable", "/servers/leaky/tools/%s/block", "/servers/leaky/tools/%s/approve", "/servers/%s/approve", "/%s"} {
		send("POST", fmt.Sprintf(path, at("the path "+path)), "")
		send("GET", fmt.Sprintf(path, at("the path "+path)), "")
		send("DELETE", fmt.Sprintf(path, at("the path "+path)), "")
	}
}

// overCLI plants credentials in commands.
func (p *planter) overCLI(d *daemon) {
	at := func(place string) string { return p.in(place + " of a command") }
	d.cli("call", "tool-read", "leaky:echo", "--json-args", fmt.Sprintf(`{"text":%q,%q:1}`, at("an argument"), at("a key")), "--reason", at("a reason"))
	d.cli("call", "tool-read", "leaky:"+at("a tool"))
	d.cli("call", "tool-read", at("a server")+":x")
	d.cli("tools", "search", at("a search"))
	d.cli("activity", "list", "--tool", at("a filter"))
	d.cli("upstream", "restart", at("a server"))
}

// checkShown searches every view of the activity log and of the logs.
func (p *planter) checkShown(d *daemon) {
	p.t.Helper()
	var list struct {
		Activities []struct{ ID string }
		Next       string `json:"next_cursor"`
	}
	for cursor := "start"; cursor != ""; cursor = list.Next {
		path := "/activity?limit=500"
		if cursor != "start" {
			path += "&cursor=" + url.QueryEscape(cursor)
		}
		status, body := d.rest("GET", path, "")
		list.Next, list.Activities = "", nil
		if err := json.Unmarshal(body, &list); err != nil || status != http.StatusOK || len(list.Activities) == 0 {
			p.t.Fatalf("%d %v %.300s", status, err, body)
		}
		p.look("REST "+path, string(body))
	}
	_, metrics := d.metrics(nil)
	p.look("/metrics", metrics)
	for _, path := range []string{"/servers/leaky/logs?lines=1000", "/servers/gone/logs?lines=1000", "/servers/leaky", "/servers/gone", "/servers", "/status", "/tools", "/tools/stats", "/approvals",
		"/activity/export?include_bodies=true", "/activity/export?format=csv&include_bodies=true", "/activity/summary?group=tool", "/activity/summary?group=client",
		"/sessions", "/config", "/diagnostics"} {
		status, body := d.rest("GET", path, "")
		if status != http.StatusOK {
			p.t.Errorf("%s: %d %.300s", path, status, body)
		}
		p.look("REST "+path, string(body))
		if bytes.Contains(body, []byte(`\u001b`)) || bytes.Contains(body, []byte(`\u0007`)) {
			p.t.Errorf("REST %s contains control characters: %.300s", path, body)
		}
	}
	for _, args := range [][]string{{"activity", "list", "--limit", "1000"}, {"activity", "list", "--limit", "1000", "--output", "json"}, {"activity", "show", list.Activities[0].ID},
		{"upstream", "logs", "leaky", "--lines", "1000"}, {"upstream", "get", "leaky"}, {"status"}, {"tools", "stats"}} {
		code, stdout, stderr := d.cli(args...)
		if code != 0 {
			p.t.Errorf("%q: code %d: %s", args, code, stderr)
		}
		p.look("`mcpproxy "+strings.Join(args, " ")+"`", stdout+stderr)
		if strings.ContainsAny(stdout, "\x1b\a") {
			p.t.Errorf("%q prints control characters", args)
		}
	}
}

// checkFiles searches all files in the directories, except the configuration and its history, which contain the user's
// own text.
func (p *planter) checkFiles(dirs ...string) {
	p.t.Helper()
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		files := eachFile(p.t, dir, func(path string, content []byte) {
			if filepath.Base(filepath.Dir(path)) != "config-history" {
				p.look(strings.TrimPrefix(path, filepath.Dir(dir)), string(content))
			}
		})
		if files < 3 {
			p.t.Errorf("only %d files", files)
		}
	}
}
