package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
)

// fakeApps has one tool for user interfaces. It marks the results that it gets.
type fakeApps struct{}

func (fakeApps) AnswerAppRequest(_ context.Context, r *session.Request, modern bool) session.Reply {
	return session.Reply{Result: json.RawMessage(fmt.Sprintf(`{"answered":%q,"modern":%v}`, r.Method, modern))}
}

func (fakeApps) AppTool(_ *session.Request, name string) *catalog.Tool {
	if name != "polls" && name != "retrieve_tools" {
		return nil
	}
	return &catalog.Tool{Definition: &tool.Definition{ID: tool.ID{Server: "s", Tool: name}}, CallWith: policy.CallToolDestructive}
}

func (fakeApps) NameApps(*session.Request, *catalog.Tool, json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"content":[],"named":true}`)
}

func (fakeApps) AddApp(*session.Request, *catalog.Tool, json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"content":[],"added":true}`)
}

// TestAppsOfTheBuiltInTools checks what /mcp offers to clients of MCP Apps, in both protocols, and that all others get
// the same as without.
func TestAppsOfTheBuiltInTools(t *testing.T) {
	h := newHarness(t)
	h.srv.BuiltIn.(*BuiltinTools).AppSurface = fakeApps{}
	seen := 0
	h.srv.AppsClientSeen = func() { seen++ }
	for _, modern := range []bool{false, true} {
		for _, apps := range []bool{false, true} {
			capabilities := "{}"
			if apps {
				capabilities = mcp.AppsCapabilities
			}
			seen = 0
			var hello answer
			ask := func(method, params, name string) answer {
				meta := strings.Replace(modernMeta, `clientCapabilities":{}`, `clientCapabilities":`+capabilities, 1)
				return h.post(map[string]string{mcp.HeaderVersion: mcp.Modern, mcp.HeaderMethod: method, mcp.HeaderName: name}, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+params+meta+`}}`)
			}
			if modern {
				hello = ask("server/discover", "", "-")
			} else {
				hello = h.post(nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"c","version":"9"}}}`)
				id := hello.header.Get(mcp.HeaderSession)
				ask = func(method, params, _ string) answer { return h.legacy(id, method, "{"+params+`"x":1}`) }
			}
			if announced := strings.Contains(string(hello.body), `"capabilities":{"tools":{"listChanged":true},"resources":{},"extensions":{"io.modelcontextprotocol/ui":{}}}`); announced != apps {
				t.Errorf("modern %v, apps %v: %s", modern, apps, hello.body)
			}
			for _, method := range []string{"resources/read", "resources/list", "resources/templates/list"} {
				a := ask(method, `"uri":"ui://x",`, map[bool]string{true: "ui://x", false: "-"}[method == "resources/read"])
				if apps && !strings.Contains(string(a.body), fmt.Sprintf(`{"answered":%q,"modern":%v}`, method, modern)) {
					t.Errorf("modern %v: %s: %s", modern, method, a.body)
				} else if !apps {
					a.fails(-32601)
				}
			}
			calls := h.gw.count()
			a := ask("tools/call", `"name":"polls","arguments":{"n":1},`, "polls")
			if !apps {
				a.fails(-32602)
			} else if r := h.gw.lastCall(t); r.Name != "s:polls" || r.CallTool != policy.CallToolDestructive || string(r.Args) != `{"n":1}` || !r.Whole || r.ResultRefs || !strings.Contains(string(a.body), `"named":true`) {
				t.Errorf("modern %v: %+v: %s", modern, r, a.body)
			}
			if n := h.gw.count() - calls; (n == 1) != apps {
				t.Errorf("modern %v, apps %v: %d calls", modern, apps, n)
			}
			a = ask("tools/call", `"name":"call_tool_read","arguments":{"name":"s:shows"},`, "call_tool_read")
			if r := h.gw.lastCall(t); r.Name != "s:shows" || r.Whole || strings.Contains(string(a.body), `"added":true`) != apps {
				t.Errorf("modern %v, apps %v: %s", modern, apps, a.body)
			}
			found := len(h.gw.found)
			ask("tools/call", `"name":"retrieve_tools","arguments":{"query":"x"},`, "retrieve_tools").is(http.StatusOK)
			if len(h.gw.found) != found+1 {
				t.Errorf("modern %v, apps %v: a server's tool has the name of a built-in one, and replaces it", modern, apps)
			}
			if (seen > 0) != apps {
				t.Errorf("modern %v, apps %v: seen %d times", modern, apps, seen)
			}
		}
	}
}
