package mcpserver

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/ops"
)

// discardWriter is a ResponseWriter that costs nothing.
type discardWriter struct {
	header http.Header
	size   int
}

func (w *discardWriter) Header() http.Header              { return w.header }
func (w *discardWriter) WriteHeader(int)                  {}
func (w *discardWriter) FlushError() error                { return nil }
func (w *discardWriter) SetReadDeadline(time.Time) error  { return nil }
func (w *discardWriter) SetWriteDeadline(time.Time) error { return nil }
func (w *discardWriter) Write(p []byte) (int, error) {
	w.size += len(p)
	return len(p), nil
}

type benchGateway struct {
	fakeGateway
	result json.RawMessage
}

func (g *benchGateway) Call(ctxT, gate.LaneCall) (gate.CallResult, error) {
	return gate.CallResult{Result: g.result}, nil
}

// BenchmarkCall measures the endpoint's work for one small call.
func BenchmarkCall(b *testing.B) {
	const args = `"name":"call_tool_read","arguments":{"name":"github:list_repos","args":{"owner":"octocat","page":1,"per_page":50},"intent_reason":"to see what is there"}`
	small := json.RawMessage(`{"content":[{"type":"text","text":"[{\"id\":1,\"name\":\"hello\"},{\"id\":2,\"name\":\"world\"}]"}],"structuredContent":{"items":[{"id":1,"name":"hello"},{"id":2,"name":"world"}]}}`)
	gw := &benchGateway{result: small}
	s := plainServer(gw)
	session := direct(s, nil, initializeBody).Header().Get(mcp.HeaderSession)
	for _, bb := range []struct {
		name   string
		body   string
		header http.Header
	}{
		{"modern", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + args + `,` + modernMeta + `}}`,
			http.Header{mcp.HeaderVersion: {mcp.Modern}, mcp.HeaderMethod: {"tools/call"}, mcp.HeaderName: {"call_tool_read"}}},
		{"legacy", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + args + `}}`,
			http.Header{mcp.HeaderVersion: {mcp.Legacy}, mcp.HeaderSession: {session}}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			bb.header["Content-Type"] = typeJSON
			bb.header["Accept"] = []string{"application/json, text/event-stream"}
			body := strings.NewReader(bb.body)
			r, _ := http.NewRequest("POST", "http://127.0.0.1:8080/mcp", nil)
			r.Header, r.ContentLength = bb.header, int64(len(bb.body))
			w := &discardWriter{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(bb.body)
				r.Body = io.NopCloser(body)
				s.ServeHTTP(w, r)
			}
			if w.size < b.N*len(small) {
				b.Fatal("no answers")
			}
		})
	}
}

// BenchmarkRetrieve returns ten tools with their schemas.
func BenchmarkRetrieve(b *testing.B) {
	tool := `{"name":"github:list_repos","description":"` + strings.Repeat("lists \\\"repositories\\\" ", 10) + `","inputSchema":{"type":"object","properties":{` +
		strings.Repeat(`"p":{"type":"string","description":"a parameter of the tool"},`, 20) + `"z":{}}}}`
	found := json.RawMessage(`{"query":"q","total":10,"tools":[` + strings.Repeat(tool+",", 9) + tool + `]}`)
	gw := &fakeGateway{retrieve: func(ctxT, ops.RetrieveRequest) (json.RawMessage, error) { return found, nil }}
	s := plainServer(gw)
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"retrieve_tools","arguments":{"query":"list"},` + modernMeta + `}}`
	r, _ := http.NewRequest("POST", "http://127.0.0.1:8080/mcp", nil)
	r.Header = http.Header{"Content-Type": typeJSON, mcp.HeaderVersion: {mcp.Modern}, mcp.HeaderMethod: {"tools/call"}, mcp.HeaderName: {"retrieve_tools"}}
	r.ContentLength = int64(len(body))
	w := &discardWriter{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		gw.found = gw.found[:0]
		r.Body = io.NopCloser(strings.NewReader(body))
		s.ServeHTTP(w, r)
	}
}
