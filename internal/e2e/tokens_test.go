package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/mcptest"
)

// createToken creates a token with the CLI.
func (d *daemon) createToken(name string, more ...string) string {
	d.t.Helper()
	code, stdout, stderr := d.cli(append([]string{"token", "create", name}, more...)...)
	if code != 0 {
		d.t.Fatalf("%d %s", code, stderr)
	}
	return strings.TrimSpace(stdout)
}

// discover sends server/discover with a token and returns the status and the answer.
func (d *daemon) discover(path, token string) (int, string) {
	a := &scopeActor{}
	status, answer := a.ask(d.t.(*testing.T), d, nil, token, path, "server/discover", "{}", true)
	return status, string(answer)
}

// TestTokenLifecycle: a token is valid from its creation until its revocation, across a restart. It is never stored in
// plain text, its calls are recorded under its name, and its only right is to call tools.
func TestTokenLifecycle(t *testing.T) {
	t.Parallel()
	upstream := mcptest.Serve(t, mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: `{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`}))
	config := func(more string) string {
		return fmt.Sprintf(`{%s"mcpServers":{"s":{"url":%q},"other":{"url":%q}}}`, more, upstream.URL, upstream.URL)
	}
	d := startDaemon(t, config(`"profiles":{"p":{"servers":["s"]}},`))
	d.awaitTools("s:look", "other:look")
	token := d.createToken("ci", "--profile", "p", "--lanes", "read")
	if len(token) != len("mcpp_t_")+64 {
		t.Fatalf("%d characters", len(token))
	}
	if status, text := d.discover("/mcp", token); status != 200 || !strings.Contains(text, "s (1)") || strings.Contains(text, "other") {
		t.Errorf("%d %s", status, text)
	}
	var session = map[string]string{}
	a := &scopeActor{}
	if status, _ := a.ask(t, d, session, token, "/mcp", "tools/list", "{}", false); status != 200 {
		t.Fatalf("a session: %d", status)
	}
	stream := openStream(t, d, token, session["/mcp"])

	// The token can call tools, also over REST, and can do nothing else there.
	for _, one := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/tools/call", `{"tool_variant":"call_tool_read","name":"s:look","args":{}}`, 200},
		{"POST", "/tools/call", `{"tool_variant":"call_tool_read","name":"other:look","args":{}}`, 403},
		{"POST", "/tools/call", `{"tool_variant":"call_tool_destructive","name":"s:look","args":{}}`, 403},
		{"GET", "/tokens", "", 403}, {"POST", "/tokens", `{"name":"x"}`, 403}, {"DELETE", "/tokens/ci", "", 403}, {"GET", "/tools", "", 403},
		{"GET", "/activity", "", 403}, {"GET", "/servers", "", 403}, {"GET", "/profiles", "", 403}, {"GET", "/config", "", 403}, {"GET", "/events", "", 403},
		{"POST", "/can", `{"who":"agent:ci","name":"s:look"}`, 403}, {"POST", "/policy/try", `{"text":"{}"}`, 403},
		{"POST", "/servers", `{"name":"x","command":"y"}`, 403}, {"POST", "/session/codes", "", 403}, {"POST", "/servers/s/disable", "", 403},
	} {
		if status, body := d.restAs(one.method, one.path, one.body, token); status != one.status {
			t.Errorf("%s %s: %d %s", one.method, one.path, status, body)
		}
	}
	_, body := d.rest("GET", "/activity?actor=agent:ci", "")
	for _, want := range []string{`"actor":"agent:ci"`, `"profile":"p"`, `"error_code":"OUT_OF_SCOPE"`} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("no %s in the records: %s", want, body)
		}
	}
	if _, body := d.rest("GET", "/activity?type=config_change", ""); !bytes.Contains(body, []byte(`"create_token"`)) || !bytes.Contains(body, []byte(`ci profile=p lanes=read`)) {
		t.Errorf("the creator is not recorded: %s", body)
	}

	// No file contains the token, even after a restart, and it is still valid then.
	d.stop()
	eachFile(t, d.dir, func(path string, content []byte) {
		if bytes.Contains(content, []byte(token[len("mcpp_t_"):])) {
			t.Errorf("the token is in %s", path)
		}
	})
	if strings.Contains(d.stderr.String(), token) {
		t.Error("the token is in the log of the daemon")
	}
	d.start()
	if status, _ := d.discover("/mcp", token); status != 200 { // works immediately: the request waits for the database
		t.Fatalf("after a restart: %d", status)
	}
	stream.Close()
	clear(session)
	if status, _ := a.ask(t, d, session, token, "/mcp", "tools/list", "{}", false); status != 200 {
		t.Fatalf("a session: %d", status)
	}
	stream = openStream(t, d, token, session["/mcp"])
	list, _, _ := d.cli("token", "list", "-o", "json")
	if list != 0 {
		t.Error("the tokens are not listed")
	}
	_, text, _ := d.cli("token", "list", "-o", "json")
	if strings.Contains(text, token[7:]) || !strings.Contains(text, `"last_used_at"`) || !strings.Contains(text, `"profile": "p"`) {
		t.Errorf("the list: %s", text)
	}

	// After its revocation the token is unknown, and its open stream ends.
	if code, _, stderr := d.cli("token", "revoke", "ci"); code != 0 {
		t.Fatal(stderr)
	}
	for _, path := range []string{"/mcp", "/mcp/all", "/mcp/servers/s", "/mcp/p/p", "/mcp/p/p/all"} {
		if status, text := d.discover(path, token); status != 401 || !strings.Contains(text, "mcpproxy token create") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _ := a.ask(t, d, session, token, "/mcp", "tools/list", "{}", false); status != 401 {
		t.Errorf("in the session: %d", status)
	}
	if status, _ := a.ask(t, d, session, "", "/mcp", "tools/list", "{}", false); status != 404 {
		t.Errorf("in the session without the token: %d", status)
	}
	if status, body := d.restAs("POST", "/tools/call", `{"tool_variant":"call_tool_read","name":"s:look"}`, token); status != 401 {
		t.Errorf("REST: %d %s", status, body)
	}
	if _, err := stream.ReadByte(); err == nil {
		for err == nil {
			_, err = stream.ReadByte()
		}
	}
	if code, _, _ := d.cli("token", "revoke", "ci"); code != 5 {
		t.Errorf("revoked twice: %d", code)
	}

	// The name can be used again. The new token cannot use the old sessions and results.
	if again := d.createToken("ci"); again == token {
		t.Error("the new token equals the old one")
	}

	// With require_mcp_auth, a token is accepted instead of the API key.
	bare := d.createToken("bare")
	d.writeConfig(config(`"require_mcp_auth":true,"profiles":{"p":{"servers":["s"]}},`))
	eventually(t, "a token or the key is required", func() error {
		if status, _ := d.discover("/mcp", ""); status != 401 {
			return fmt.Errorf("%d", status)
		}
		return nil
	})
	if status, _ := d.discover("/mcp", bare); status != 200 {
		t.Errorf("with a token: %d", status)
	}
}

func (d *daemon) restAs(method, path, body, token string) (int, []byte) {
	d.t.Helper()
	req, err := http.NewRequest(method, "http://"+d.address+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out bytes.Buffer
	_, err = out.ReadFrom(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, out.Bytes()
}

// eventStream is the GET stream of a session.
type eventStream struct {
	*bufio.Reader
	resp *http.Response
}

func (s eventStream) Close() { _ = s.resp.Body.Close() }

func openStream(t *testing.T, d *daemon, token, session string) eventStream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+d.address+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Accept": "text/event-stream", "Mcp-Session-Id": session, "Mcp-Protocol-Version": legacyRevision, "Authorization": "Bearer " + token} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("a stream: %s", resp.Status)
	}
	return eventStream{bufio.NewReader(resp.Body), resp}
}

// TestTokenOnStdio: `mcpproxy stdio` reads its token from the environment, and the token limits the session. When the
// token is revoked, the session ends.
func TestTokenOnStdio(t *testing.T) {
	t.Parallel()
	upstream := mcptest.Serve(t, mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("look")}))
	d := startDaemon(t, fmt.Sprintf(`{"profiles":{"p":{"servers":["s"]}},"mcpServers":{"s":{"url":%q},"other":{"url":%q}}}`, upstream.URL, upstream.URL))
	d.awaitTools("s:look", "other:look")
	token := d.createToken("desk", "--servers", "s")
	run := func(env string, args ...string) (ask func(string) string, end func()) {
		cmd := exec.Command(binary, append([]string{"stdio", "--data-dir", d.dataDir(), "--config", d.configPath()}, args...)...)
		cmd.Env = d.environ(env)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		ask = func(line string) string {
			if _, err := fmt.Fprintln(in, line); err != nil {
				t.Fatal(err)
			}
			answer, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return answer
		}
		return ask, func() { _ = in.Close(); _ = cmd.Wait() }
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacyRevision + `","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
	for _, one := range []struct{ env, all string }{{"MCPPROXY_TOKEN=" + token, "--all"}, {"MCPPROXY_TOKEN=", "--all --profile p"}} {
		ask, end := run(one.env, strings.Fields(one.all)...)
		ask(hello)
		if answer := ask(list); !strings.Contains(answer, "s__look") || strings.Contains(answer, "other__look") {
			t.Errorf("%s: %s", one.all, answer)
		}
		end()
	}
	ask, end := run("MCPPROXY_TOKEN=" + token)
	defer end()
	ask(hello)
	call := func() string {
		answer := ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"call_tool_write","arguments":{"name":"other:look"}}}`)
		var m struct {
			Result struct {
				StructuredContent struct{ Error struct{ Code string } }
			}
			Error *rpcError
		}
		if err := json.Unmarshal([]byte(answer), &m); err != nil {
			t.Fatal(err)
		}
		if m.Error != nil {
			return m.Error.Message
		}
		return m.Result.StructuredContent.Error.Code
	}
	if got := call(); got != "OUT_OF_SCOPE" {
		t.Errorf("a tool outside the token's scope: %s", got)
	}
	if code, _, stderr := d.cli("token", "revoke", "desk"); code != 0 {
		t.Fatal(stderr)
	}
	eventually(t, "the revoked token is rejected", func() error {
		if got := call(); !strings.Contains(got, "revoked") {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	wrong, end := run("MCPPROXY_TOKEN=mcpp_t_" + strings.Repeat("0", 64))
	defer end()
	if answer := wrong(hello); !strings.Contains(answer, "revoked") || !strings.Contains(answer, "mcpproxy token create") {
		t.Errorf("a wrong token: %s", answer)
	}
}

// TestProfileReload: a change of the file applies to open sessions, to their next request and their notifications.
func TestProfileReload(t *testing.T) {
	t.Parallel()
	upstream := mcptest.Serve(t, mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("look")}))
	config := func(profiles string) string {
		return fmt.Sprintf(`{"profiles":{%s},"mcpServers":{"s":{"url":%q},"other":{"url":%q}}}`, profiles, upstream.URL, upstream.URL)
	}
	d := startDaemon(t, config(`"p":{"servers":["s"]}`))
	d.awaitTools("s:look", "other:look")
	token := d.createToken("ci", "--profile", "p")
	session, a := map[string]string{}, &scopeActor{}
	lists := func(want ...string) {
		t.Helper()
		eventually(t, fmt.Sprint("the list has ", want), func() error {
			status, answer := a.ask(t, d, session, token, "/mcp/all", "tools/list", "{}", false)
			for _, name := range []string{"s__look", "other__look"} {
				if has := bytes.Contains(answer, []byte(name)); has != strings.Contains(strings.Join(want, " "), name) || status != 200 {
					return fmt.Errorf("%d %s", status, answer)
				}
			}
			return nil
		})
	}
	lists("s__look")
	d.writeConfig(config(`"p":{"servers":["other"]}`))
	lists("other__look")
	d.writeConfig(config(`"q":{}`)) // the profile is removed: nothing remains
	lists()
	if _, text, _ := d.cli("token", "list"); !strings.Contains(text, "p") {
		t.Errorf("%s", text)
	}
	if status, _ := d.discover("/mcp/p/p", ""); status != 404 {
		t.Errorf("the endpoint of a removed profile: %d", status)
	}
	if status, _ := d.discover("/mcp/p/q", ""); status != 200 {
		t.Errorf("the endpoint of a new profile: %d", status)
	}
	if status, _ := d.discover("/mcp/p/q", token); status != 404 {
		t.Errorf("the endpoint of another profile: %d", status)
	}
}

// TestTokensThatMayApprove: tokens in ask.answer_by_client are marked in the list. If a name matches no token, status
// and doctor warn.
func TestTokensThatMayApprove(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"ask": {"answer_by_client": ["trusted", "gone"]}, "mcpServers": {}}`)
	d.createToken("trusted")
	d.createToken("other")
	_, shown := d.rest("GET", "/tokens", "")
	var list struct {
		Tokens []struct {
			Name    string
			Answers bool
		}
	}
	if err := json.Unmarshal(shown, &list); err != nil || len(list.Tokens) != 2 || list.Tokens[0].Answers || !list.Tokens[1].Answers {
		t.Errorf("%v: %s", err, shown)
	}
	_, status := d.rest("GET", "/status", "")
	_, doctor, _ := d.cli("doctor", "-o", "json")
	for _, said := range []string{string(status), doctor} {
		if !strings.Contains(said, "ask.answer_by_client contains 'gone', but no token has this name") || strings.Contains(said, "contains 'trusted'") {
			t.Errorf("%s", said)
		}
	}
}
