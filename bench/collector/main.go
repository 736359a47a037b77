// Command collector makes an agent call a tool through MCPProxy. The agent, MCPProxy and the server send their spans to
// an OpenTelemetry Collector, and the command prints the received trace.
//
//	go build -o /tmp/mcpproxy ./cmd/mcpproxy && go run -C bench/collector . /tmp/mcpproxy
//
// The collector is the OTLP receiver of the OpenTelemetry Collector, over HTTP. Agent and server use the official SDKs.
// The exit code is 1 unless each call is one trace of four nested spans, and the received data contains no arguments,
// results or keys.
// It is a separate module, so that the product does not depend on a collector.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.26.0"
	oteltrace "go.opentelemetry.io/otel/trace"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run -C bench/collector . BINARY")
		os.Exit(2)
	}
	dir, err := os.MkdirTemp("", "mcpproxy-collector-")
	if err == nil {
		err = run(dir, os.Args[1])
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

// Texts that must not be in spans.
const (
	argument = "a planted argument"
	result   = "a planted result"
	reason   = "a planted reason"
)

// collectedSpan is a span that the collector has received.
type collectedSpan struct{ service, name, kind, trace, id, parent, attributes string }

// spanCollector stores the spans and metrics that the receiver passes on.
type spanCollector struct {
	mu      sync.Mutex // guards the fields below
	spans   []collectedSpan
	metrics int
	all     strings.Builder
}

func (c *spanCollector) addTraces(_ context.Context, td ptrace.Traces) error {
	text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Write(text)
	for _, of := range td.ResourceSpans().All() {
		service, _ := of.Resource().Attributes().Get("service.name")
		for _, scope := range of.ScopeSpans().All() {
			for _, s := range scope.Spans().All() {
				c.spans = append(c.spans, collectedSpan{service.AsString(), s.Name(), s.Kind().String(), s.TraceID().String(), s.SpanID().String(), s.ParentSpanID().String(), fmt.Sprint(s.Attributes().AsRaw())})
			}
		}
	}
	return err
}

func (c *spanCollector) addMetrics(_ context.Context, md pmetric.Metrics) error {
	text, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Write(text)
	c.metrics += md.MetricCount()
	return err
}

// startReceiver starts the receiver of the OpenTelemetry Collector.
func (c *spanCollector) startReceiver(ctx context.Context, address string) (stop func(context.Context) error, err error) {
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = address
	traces, err1 := consumer.NewTraces(c.addTraces)
	metrics, err2 := consumer.NewMetrics(c.addMetrics)
	set := receivertest.NewNopSettings(factory.Type())
	r, err3 := factory.CreateTraces(ctx, set, config, traces)
	m, err4 := factory.CreateMetrics(ctx, set, config, metrics)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	parts := []component.Component{r, m}
	stop = func(ctx context.Context) (err error) {
		for _, p := range parts {
			err = errors.Join(err, p.Shutdown(ctx))
		}
		return err
	}
	for _, p := range parts {
		if err := p.Start(ctx, componenttest.NewNopHost()); err != nil {
			return stop, err
		}
	}
	return stop, nil
}

// newTracer returns the tracer of a service whose spans go to the collector.
func newTracer(ctx context.Context, service, address string) (oteltrace.Tracer, *trace.TracerProvider, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpoint(address), otlptracehttp.WithInsecure())
	if err != nil {
		return nil, nil, err
	}
	p := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(resource.NewSchemaless(semconv.ServiceName(service))))
	return p.Tracer(service), p, nil
}

func run(dir, binary string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	address, err := freeAddress()
	if err != nil {
		return err
	}
	seen := &spanCollector{}
	stop, err := seen.startReceiver(ctx, address)
	if err != nil {
		return err
	}
	server, serverSpans, err := newTracer(ctx, "server", address)
	if err != nil {
		return err
	}
	agent, agentSpans, err := newTracer(ctx, "agent", address)
	if err != nil {
		return err
	}
	upstream := httptest.NewServer(newTracedServer(server))
	defer upstream.Close()
	key, err := callThroughProxy(ctx, dir, binary, address, upstream.URL, agent)
	err = errors.Join(err, agentSpans.Shutdown(ctx), serverSpans.Shutdown(ctx), stop(ctx))
	if err != nil {
		return err
	}
	return seen.checkTraces(key)
}

// newTracedServer returns an MCP server whose spans have the trace context of its calls as parent.
func newTracedServer(t oteltrace.Tracer) http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	type input struct {
		Text string `json:"text"`
	}
	look := &mcp.Tool{Name: "look", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	mcp.AddTool(s, look, func(ctx context.Context, req *mcp.CallToolRequest, _ input) (*mcp.CallToolResult, any, error) {
		carried := propagation.MapCarrier{}
		if parent, ok := req.Params.Meta["traceparent"].(string); ok {
			carried["traceparent"] = parent
		}
		_, of := t.Start(propagation.TraceContext{}.Extract(ctx, carried), "look", oteltrace.WithSpanKind(oteltrace.SpanKindServer))
		defer of.End()
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: result}}}, nil, nil
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

// callThroughProxy starts MCPProxy, makes the agent call in two ways, and stops MCPProxy. It returns the API key.
func callThroughProxy(ctx context.Context, dir, binary, collector, upstream string, t oteltrace.Tracer) (key string, err error) {
	listen, err := freeAddress()
	if err != nil {
		return "", err
	}
	config := filepath.Join(dir, "mcp_config.json")
	text := fmt.Sprintf(`{"telemetry":{"endpoint":"http://%s"},"mcpServers":{"s":{"url":%q}}}`, collector, upstream)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", err
	}
	proxy := exec.CommandContext(ctx, binary, "serve", "--config", config, "--data-dir", filepath.Join(dir, "data"), "--listen", listen)
	if err := proxy.Start(); err != nil {
		return "", err
	}
	defer func() { // the daemon sends its remaining spans before it ends
		err = errors.Join(err, proxy.Process.Signal(syscall.SIGTERM), proxy.Wait())
	}()
	for _, call := range []struct {
		path string
		how  mcp.CallToolParams
	}{
		{"/mcp", mcp.CallToolParams{Name: "call_tool_read", Arguments: map[string]any{"name": "s:look", "args": map[string]any{"text": argument}, "intent_reason": reason}}},
		{"/mcp/servers/s", mcp.CallToolParams{Name: "look", Arguments: map[string]any{"text": argument}}},
	} {
		if err := retryUntilDone(ctx, func() error { return callWithSpan(ctx, "http://"+listen+call.path, call.how, t) }); err != nil {
			return "", fmt.Errorf("%s: %w", call.path, err)
		}
	}
	saved, err := os.ReadFile(filepath.Join(dir, "data", "api_key"))
	return strings.TrimSpace(string(saved)), err
}

// callWithSpan makes a call within a span of the agent. The span of a failed call is not ended.
func callWithSpan(ctx context.Context, url string, how mcp.CallToolParams, t oteltrace.Tracer) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	if how.Name == "look" { // wait for the tool, so that the call is the first one
		if tools, err := session.ListTools(ctx, nil); err != nil || len(tools.Tools) == 0 {
			return errors.Join(err, errors.New("the server lists no tools"))
		}
	}
	ctx, of := t.Start(ctx, "ask", oteltrace.WithSpanKind(oteltrace.SpanKindClient))
	carried := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carried)
	how.Meta = mcp.Meta{"traceparent": carried["traceparent"]}
	answer, err := session.CallTool(ctx, &how)
	if err == nil && answer.IsError {
		err = fmt.Errorf("%v", answer.Content[0])
	}
	if err == nil {
		of.End()
	}
	return err
}

// retryUntilDone repeats do until it succeeds or the context ends.
func retryUntilDone(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// checkTraces prints the traces and returns an error that describes the wrong ones.
func (c *spanCollector) checkTraces(key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	below := map[string]collectedSpan{}
	for _, s := range c.spans {
		below[s.parent] = s
	}
	var errs []error
	chains := 0
	for _, top := range c.spans {
		if top.service != "agent" {
			continue
		}
		chains++
		fmt.Println("trace", top.trace)
		var services []string
		for s, ok := top, true; ok; s, ok = below[s.id] {
			fmt.Printf("  %-9s %-8s %-28s span %s below %-16s %s\n", s.service, s.kind, s.name, s.id, s.parent, s.attributes)
			services = append(services, s.service)
			if s.trace != top.trace {
				errs = append(errs, fmt.Errorf("span %s is in trace %s", s.id, s.trace))
			}
		}
		if want := []string{"agent", "mcpproxy", "mcpproxy", "server"}; !slices.Equal(services, want) {
			errs = append(errs, fmt.Errorf("trace %s is of %v, not of %v", top.trace, services, want))
		}
	}
	fmt.Printf("%d spans, %d metrics, %d bytes of them\n", len(c.spans), c.metrics, c.all.Len())
	if chains != 2 || c.metrics == 0 || key == "" {
		errs = append(errs, fmt.Errorf("%d traces of an agent, %d metrics", chains, c.metrics))
	}
	for _, text := range []string{argument, result, reason, key} {
		if strings.Contains(c.all.String(), text) {
			errs = append(errs, fmt.Errorf("%q came to the collector", text))
		}
	}
	return errors.Join(errs...)
}

// freeAddress returns a free loopback address.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
