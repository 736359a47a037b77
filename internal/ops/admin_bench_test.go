package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
)

// manyTools returns a test environment with 100 servers of 100 approved tools each.
func manyTools(b *testing.B) *adminWorld {
	w := newAdminWorld(b, func(c *config.Config) {
		c.Servers = nil
		for i := range 100 {
			c.Servers = append(c.Servers, config.Server{Name: fmt.Sprintf("server%02d", i), Protocol: "stdio", Enabled: true, Trust: config.TrustScan})
		}
	})
	verbs := []string{"list", "get", "create", "update", "delete", "search", "move", "copy", "lock", "export"}
	nouns := []string{"issue", "repository", "file", "invoice", "customer", "calendar", "message", "deployment", "table", "secret"}
	for i := range 100 {
		var all []*tool.Definition
		for j := range 100 {
			verb, noun := verbs[j%10], nouns[j/10]
			raw := fmt.Sprintf(`{"name":"%s_%s","description":"%s one %s of project %d, with its history and what belongs to it.","inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"Which %s."},"limit":{"type":"integer","minimum":1}},"required":["id"]},"annotations":{"readOnlyHint":%v}}`,
				verb, noun, verb, noun, i, noun, j%10 < 2)
			d, err := tool.ParseDefinition(fmt.Sprintf("server%02d", i), json.RawMessage(raw))
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, &d)
		}
		w.Catalog.ToolsListed(fmt.Sprintf("server%02d", i), all)
	}
	w.Catalog.Publish()
	if n := w.Catalog.Current().CallableCount(); n != 10_000 {
		b.Fatalf("%d tools can be called", n)
	}
	return w
}

func BenchmarkRetrieve10000(b *testing.B) {
	w := manyTools(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.gateway.RetrieveTools(context.Background(), RetrieveRequest{Query: "delete an invoice of a customer", Caller: adminAgent}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRetrieveWithDisabled10000(b *testing.B) {
	w := manyTools(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.gateway.RetrieveTools(context.Background(), RetrieveRequest{Query: "delete an invoice of a customer", IncludeDisabled: true, Caller: adminAgent}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall10000 measures the overhead of a call with 10,000 tools, without the server and the activity log.
func BenchmarkCall10000(b *testing.B) {
	w := manyTools(b)
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		w.Begun, w.Ended, w.Events = w.Begun[:0], w.Ended[:0], w.Events[:0]
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	req := gate.LaneCall{CallTool: policy.CallToolRead, Name: "server42:list_issue", Args: json.RawMessage(`{"id":"1"}`), Caller: adminAgent}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.gateway.Call(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkForwarded10000 measures a tools/call request on a server's own address with 10,000 tools.
func BenchmarkForwarded10000(b *testing.B) {
	w := manyTools(b)
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		w.Begun, w.Ended, w.Events = w.Begun[:0], w.Ended[:0], w.Events[:0]
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	caller := adminAgent
	req := session.Request{ID: json.RawMessage("1"), Method: "tools/call", Params: json.RawMessage(`{"name":"list_issue","arguments":{"id":"1"}}`), Caller: &caller}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.gateway.GatedEndpoint("server42").Do(context.Background(), &req); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApprovalCheck10000 measures the approval check of one call with 10,000 approvals.
func BenchmarkApprovalCheck10000(b *testing.B) {
	w := manyTools(b)
	t := w.Catalog.Current().Tool(tool.ID{Server: "server42", Tool: "list_issue"})
	b.ReportAllocs()
	for b.Loop() {
		if w.Catalog.CurrentStatus(t) != policy.Callable {
			b.Fatal("locked")
		}
	}
}

// BenchmarkDecision10000 measures disabling and enabling one of 10,000 tools, without the database.
func BenchmarkDecision10000(b *testing.B) {
	w := manyTools(b)
	on := false
	for b.Loop() {
		if _, err := switchTool(w.gateway, tool.ID{Server: "server42", Tool: "list_issue"}, on); err != nil {
			b.Fatal(err)
		}
		on = !on
		w.Begun, w.Ended, w.Events = nil, nil, nil
	}
}

// BenchmarkFirstStart10000 measures a first start, which scans, accepts and indexes every definition.
func BenchmarkFirstStart10000(b *testing.B) {
	for b.Loop() {
		manyTools(b)
	}
}
