package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// modernPost sends a modern request to a server through /mcp/servers/NAME.
func (d *daemon) modernPost(server, method, name, params string) []byte {
	d.t.Helper()
	return d.answerTo(d.tryModern(server, method, name, params, ""))
}

// tryModern is like modernPost, with more members in _meta, and it returns the response unchecked.
func (d *daemon) tryModern(server, method, name, params, more string) (*http.Response, error) {
	return d.tryModernAt("/mcp/servers/"+server, method, name, params, more)
}

// modernParams adds the required members of _meta to params, which are given without braces.
func modernParams(params, more string) string {
	if params != "" {
		params += ","
	}
	if more != "" {
		more += ","
	}
	return fmt.Sprintf(`%s"_meta":{%s"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}`, params, more, modernRevision)
}

func (d *daemon) tryModernAt(path, method, name, params, more string) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+d.address+path,
		strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, modernParams(params, more))))
	if err != nil {
		return nil, err
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": modernRevision, "Mcp-Method": method} {
		req.Header.Set(k, v)
	}
	if name != "" {
		req.Header.Set("Mcp-Name", name)
	}
	return http.DefaultClient.Do(req)
}

// answerTo reads and checks the answer to a request.
func (d *daemon) answerTo(resp *http.Response, err error) []byte {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		d.t.Fatalf("%s: %s %v", resp.Status, body, err)
	}
	return lastEvent(body)
}

// TestRealToolsPassUnchanged: the definitions of real servers pass through the endpoint of a server byte for byte and
// in order, in both protocols.
func TestRealToolsPassUnchanged(t *testing.T) {
	t.Parallel()
	servers := realServers(t)
	var config strings.Builder
	var all []string
	direct := map[string]string{}
	for server, tools := range servers {
		definitions := make([]string, len(tools))
		for i, raw := range tools {
			definitions[i] = string(raw)
		}
		direct[server] = startUpstream(t, definitions...).URL
		fmt.Fprintf(&config, `%q:{"url":%q,"trust":"auto"},`, server, direct[server])
		all = append(all, server+":"+toolName(t, tools[len(tools)-1]))
	}
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{%s}}`, config.String()))
	d.awaitTools(all...)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	tools := func(answer []byte) string { return string(wirejson.Find(wirejson.Find(answer, "result"), "tools")) }
	checked := 0
	for server, definitions := range servers {
		want := tools(d.answerTo((&relayClient{t: t, url: direct[server]}).post(list)))
		if len(want) < 2*len(definitions) {
			t.Fatalf("%s lists %s", server, want)
		}
		older, modern := d.answerTo(d.relayClient(server).post(list)), d.modernPost(server, "tools/list", "", "")
		if tools(older) != want || tools(modern) != want {
			t.Errorf("the tools of %s changed", server)
		}
		checked += len(definitions)
	}
	t.Logf("%d tools of %d servers, in both protocols", checked, len(servers))
}

// TestUnknownMembersPassUnchanged: members and methods that MCPProxy does not know pass unchanged.
func TestUnknownMembersPassUnchanged(t *testing.T) {
	t.Parallel()
	const odd = `{"content":[{"type":"hologram","data":{"n":9007199254740993,"e":1e400}},{"type":"text","text":"a","vendor":[1.0]}],"structuredContent":[1,"x",null],"isError":false,"vendor":{"a":-0}}`
	server := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: `{"name":"größe/ an","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}`,
		Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			return json.RawMessage(odd[:len(odd)-1] + `,"params":` + string(wirejson.Find(c.Params, "arguments")) + `}`), nil
		}})
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"s":{"url":%q,"trust":"auto"}}}`, mcptest.Serve(t, server).URL))
	d.awaitState("s", "ready")
	const call, want = `"name":"größe/ an","arguments":{"n":9007199254740993,"x":1.50}`, `,"params":{"n":9007199254740993,"x":1.50}`
	older := d.answerTo(d.relayClient("s").post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + call + `}}`))
	if got := string(wirejson.Find(older, "result")); got != odd[:len(odd)-1]+want+"}" {
		t.Errorf("%s: %s", legacyRevision, got)
	}
	modern := d.modernPost("s", "tools/call", "=?base64?Z3LDtsOfZS8gYW4=?=", call)
	if got := string(wirejson.Find(modern, "result")); !strings.HasPrefix(got, odd[:len(odd)-1]+want+`,"resultType":"complete"`) {
		t.Errorf("%s: %s", modernRevision, got)
	}
}
