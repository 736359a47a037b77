package e2e

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// collector is an OTLP receiver over HTTP.
type collector struct {
	mu      sync.Mutex // guards the fields below
	spans   []*tracepb.Span
	metrics []string
	raw     bytes.Buffer
	wrong   error
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	c.raw.Write(body)
	var traces tracepb.TracesData
	var metrics metricspb.MetricsData
	switch {
	case err != nil:
	case r.URL.Path == "/v1/traces":
		err = proto.Unmarshal(body, &traces)
	case r.URL.Path == "/v1/metrics":
		err = proto.Unmarshal(body, &metrics)
	default:
		err = fmt.Errorf("it was sent to %s", r.URL)
	}
	if err != nil {
		c.wrong = err
	}
	for _, of := range traces.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	for _, of := range metrics.ResourceMetrics {
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				c.metrics = append(c.metrics, m.Name)
			}
		}
	}
}

// carried returns the trace context that a server received.
func carried(c *mcptest.Call) string {
	text, _ := wirejson.String(wirejson.Find(wirejson.Find(c.Params, "_meta"), "traceparent"))
	return text
}

// Each call has one trace: the agent's span, MCPProxy's span, and MCPProxy's span of the wait for the server, which the
// server receives as parent. The trace contains no content of the call.
func TestTraces(t *testing.T) {
	t.Parallel()
	const secret = "xK9-planted-argument"
	var mu sync.Mutex
	var parents []string
	tools := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: `{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			mu.Lock()
			defer mu.Unlock()
			parents = append(parents, carried(c))
			return json.RawMessage(`{"content":[{"type":"text","text":"` + secret + `"}]}`), nil
		}})
	receiver := &collector{}
	endpoint := httptest.NewServer(receiver)
	defer endpoint.Close()
	d := startDaemon(t, `{"telemetry":{"endpoint":"`+endpoint.URL+`"},"mcpServers":{"s":{"url":"`+mcptest.Serve(t, tools).URL+`"}}}`)
	d.awaitTools("s:look")
	const agentTrace, agentSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	meta := `"_meta":{"traceparent":"00-` + agentTrace + `-` + agentSpan + `-01"}`
	a := d.legacy()
	a.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"s:look","args":{"q":"`+secret+`"},"intent_reason":"`+secret+`"},`+meta+`}}`, nil)
	a.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"s:`+secret+`"},`+meta+`}}`, nil)
	own := d.requests("/mcp/servers/s", legacyRevision)
	own("tools/call", "look", `"name":"look","arguments":{"q":"`+secret+`"},`+meta)
	d.requests("/mcp/servers/s", modernRevision)("tools/call", "look", `"name":"look","arguments":{}`)
	d.stop()

	if receiver.wrong != nil {
		t.Fatal(receiver.wrong)
	}
	spans := map[string]*tracepb.Span{}
	for _, s := range receiver.spans {
		spans[hex.EncodeToString(s.SpanId)] = s
	}
	if len(parents) != 3 || len(spans) != 7 {
		t.Fatalf("%d calls with %q, %d spans: %v", len(parents), parents, len(spans), receiver.spans)
	}
	for i, parent := range parents {
		parts := strings.Split(parent, "-")
		if len(parts) != 4 {
			t.Fatalf("the server got the trace parent %q", parent)
		}
		asked := spans[parts[2]]
		if asked == nil || asked.Kind != tracepb.Span_SPAN_KIND_CLIENT || asked.EndTimeUnixNano == 0 {
			t.Fatalf("call %d: no client span for %q: %v", i, parent, asked)
		}
		call := spans[hex.EncodeToString(asked.ParentSpanId)]
		if call == nil || call.Kind != tracepb.Span_SPAN_KIND_SERVER || hex.EncodeToString(call.TraceId) != parts[1] {
			t.Fatalf("call %d: its span is %v", i, call)
		}
		if of := hex.EncodeToString(call.TraceId); (of == agentTrace) != (i < 2) || i < 2 && hex.EncodeToString(call.ParentSpanId) != agentSpan {
			t.Errorf("call %d: it is in trace %s, below %x", i, of, call.ParentSpanId)
		}
		if said := fmt.Sprint(call.Attributes); !strings.Contains(said, `"look"`) || !strings.Contains(said, `"success"`) || !strings.Contains(said, `"read"`) {
			t.Errorf("call %d: its attributes are %s", i, said)
		}
	}
	if !slices.Contains(receiver.metrics, "mcpproxy_calls_total") {
		t.Errorf("no metrics were sent: %q", receiver.metrics)
	}
	for _, what := range []string{secret, d.key()} {
		if strings.Contains(receiver.raw.String(), what) {
			t.Errorf("%q was sent to the endpoint", what)
		}
	}
}

// metrics reads /metrics.
func (d *daemon) metrics(header http.Header) (int, string) {
	d.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+d.address+"/metrics", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// The metrics are available, and calls run, even if the OTLP endpoint never responds.
func TestMetrics(t *testing.T) {
	t.Parallel()
	const secret = "xK9-planted-argument"
	away := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	away.Close()
	d := startDaemon(t, `{"telemetry":{"endpoint":"`+away.URL+`"},"mcpServers":{"s":{"url":"`+startUpstream(t, looksTool).URL+`"}}}`)
	d.awaitTools("s:look")
	a := d.legacy()
	a.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"s:look","args":{}}}}`, nil)
	for i := range 300 { // names that clients make up must not become labels
		a.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"call_tool_write","arguments":{"name":"%s%d:x","args":{"a":"%s"}}}}`, secret, i, secret), nil)
	}
	a.post(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"retrieve_tools","arguments":{"query":"`+secret+`"}}}`, nil)
	status, text := d.metrics(http.Header{})
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	for _, want := range []string{
		`mcpproxy_calls_total{lane="read",outcome="success",server="s"} 1`, `mcpproxy_calls_total{lane="write",outcome="blocked",server=""} 300`,
		`mcpproxy_problems_total{code="SERVER_NOT_FOUND"} 300`, `mcpproxy_call_duration_seconds_count{lane="read",server="s"} 1`,
		`mcpproxy_call_own_duration_seconds_count{lane="read"} 1`, `mcpproxy_search_duration_seconds_count 1`, `mcpproxy_sessions 1`,
		`mcpproxy_servers{state="ready"} 1`, `mcpproxy_tools{status="callable"} 1`, `mcpproxy_log_degraded 0`, `mcpproxy_calls_waiting 0`, `mcpproxy_build_info{version=`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(text, secret) || strings.Count(text, "\n") > 400 {
		t.Errorf("%d lines, or a client's text in the metrics:\n%s", strings.Count(text, "\n"), text)
	}
}

// If MCP requires a token or the API key, so do the metrics. A limited token cannot read them, because they name all
// servers.
func TestMetricsNeedAToken(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"require_mcp_auth":true,"mcpServers":{"s":{"url":"`+startUpstream(t, looksTool).URL+`"}}}`)
	token := func(args ...string) string {
		code, out, notes := d.cli(append([]string{"token", "create", "-o", "json"}, args...)...)
		text, ok := wirejson.String(wirejson.Find([]byte(out), "token"))
		if code != 0 || !ok {
			t.Fatalf("%d %s%s", code, out, notes)
		}
		return "Bearer " + text
	}
	for header, want := range map[string]int{
		"": 401, "Bearer wrong": 401, "Bearer " + d.key(): 200,
		token("prometheus"): 200, token("reader", "--lanes", "read"): 401, token("one", "--servers", "s"): 401,
	} {
		if status, text := d.metrics(http.Header{"Authorization": {header}}); status != want {
			t.Errorf("%q: %d %.200s", header, status, text)
		}
	}
	if status, text := d.metrics(http.Header{"Origin": {"http://evil.example"}, "Authorization": {"Bearer " + d.key()}}); status != http.StatusForbidden {
		t.Errorf("a foreign origin: %d %s", status, text)
	}
}

const looksTool = `{"name":"look","description":"Looks.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
