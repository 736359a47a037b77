package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/store/activity"
)

// maxSpans limits the number of queued spans. Further spans are dropped.
const maxSpans = 4096

// The names of the trace context headers in package propagation.
const (
	parentKey = "traceparent"
	stateKey  = "tracestate"
)

// callTracer sends a trace of each call.
type callTracer struct {
	spans  *sdk.TracerProvider
	tracer trace.Tracer
	w3c    propagation.TraceContext
}

func newCallTracer(ctx context.Context, to *otlpHTTPUploader, version string) (*callTracer, error) {
	exporter, err := otlptrace.New(ctx, to)
	if err != nil {
		return nil, err
	}
	about := resource.NewSchemaless(attribute.String("service.name", serviceName), attribute.String("service.version", version))
	t := &callTracer{spans: sdk.NewTracerProvider(sdk.WithResource(about),
		sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(maxSpans), sdk.WithExportTimeout(sendTimeout)))}
	t.tracer = t.spans.Tracer(serviceName)
	return t, nil
}

// callSpan holds the spans of one call.
type callSpan struct {
	of     *callTracer
	call   trace.Span
	server trace.Span // nil before the call is sent to the server
}

// startSpan starts the span of a call. parent and state are the traceparent and tracestate of its client.
func (t *callTracer) startSpan(began time.Time, parent, state string) *callSpan {
	ctx := t.w3c.Extract(context.Background(), propagation.MapCarrier{parentKey: parent, stateKey: state})
	s := &callSpan{of: t}
	_, s.call = t.tracer.Start(ctx, mcp.CallTool, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(began))
	return s
}

// BeforeSend implements gate.CallTrace.
func (s *callSpan) BeforeSend() string {
	ctx, server := s.of.tracer.Start(trace.ContextWithSpan(context.Background(), s.call), mcp.CallTool, trace.WithSpanKind(trace.SpanKindClient))
	s.server = server
	carried := propagation.MapCarrier{}
	s.of.w3c.Inject(ctx, carried)
	return carried[parentKey]
}

// AfterAnswer implements gate.CallTrace.
func (s *callSpan) AfterAnswer() { s.server.End() }

// endWithOutcome ends the call's span with its outcome.
func (s *callSpan) endWithOutcome(o *gate.CallStats) {
	about := make([]attribute.KeyValue, 0, 8)
	about = append(about, attribute.String("mcp.method.name", mcp.CallTool), attribute.String("mcpproxy.outcome", string(o.Status)))
	for _, a := range [...]struct{ key, value string }{
		{"mcpproxy.server", o.Server}, {"gen_ai.tool.name", o.Tool}, {"mcpproxy.lane", o.Operation}, {"error.type", o.Code}, {"mcpproxy.record", o.Record},
	} {
		if a.value != "" {
			about = append(about, attribute.String(a.key, a.value))
		}
	}
	if o.Own > 0 {
		about = append(about, attribute.Float64("mcpproxy.own_ms", float64(o.Own.Microseconds())/1000))
	}
	s.call.SetAttributes(about...)
	if o.Status != activity.Success {
		s.call.SetStatus(codes.Error, o.Code)
	}
	s.call.End()
}
