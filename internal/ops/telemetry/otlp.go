package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/store/activity"
)

const serviceName = "mcpproxy"

// sendTimeout limits one request to the endpoint.
const sendTimeout = 10 * time.Second

// otlpHTTPUploader sends OTLP over HTTP. It implements otlptrace.Client. The exporters of OpenTelemetry would add 7 MB
// of unused gRPC code to the binary.
type otlpHTTPUploader struct {
	client http.Client
	base   string
	header http.Header
}

// headersVar is the environment variable with headers for the endpoint, in the form name=value,name=value.
const headersVar = "OTEL_EXPORTER_OTLP_HEADERS"

func newOTLPHTTPUploader(endpoint string) (*otlpHTTPUploader, error) {
	s := &otlpHTTPUploader{base: strings.TrimSuffix(endpoint, "/"), header: http.Header{"Content-Type": {"application/x-protobuf"}}}
	s.client.Timeout = sendTimeout
	// Do not follow redirects, so that nothing is sent to another address.
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for line := range strings.SplitSeq(os.Getenv(headersVar), ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if name == "" && !ok {
			continue
		}
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || !ok {
			return nil, fmt.Errorf("%s must be name=value, separated by commas, with values encoded as in URLs", headersVar)
		}
		s.header.Set(strings.TrimSpace(name), value)
	}
	return s, nil
}

// Start does nothing. otlptrace.Client requires it.
func (s *otlpHTTPUploader) Start(context.Context) error { return nil }

func (s *otlpHTTPUploader) Stop(context.Context) error {
	s.client.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client.
func (s *otlpHTTPUploader) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// The request has the same encoding as TracesData.
	return s.post(ctx, "/v1/traces", &tracepb.TracesData{ResourceSpans: spans})
}

func (s *otlpHTTPUploader) post(ctx context.Context, path string, m proto.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = s.header.Clone()
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // lets the client reuse the connection
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the endpoint answered %s to %s", resp.Status, path)
	}
	return nil
}

// metricsToOTLP converts gathered Prometheus metrics to OTLP. The counters started at began.
func metricsToOTLP(gathered []*dto.MetricFamily, version string, began, now time.Time) *metricspb.MetricsData {
	var out []*metricspb.Metric
	for _, family := range gathered {
		m := &metricspb.Metric{Name: family.GetName(), Description: family.GetHelp()}
		var numbers []*metricspb.NumberDataPoint
		var histograms []*metricspb.HistogramDataPoint
		for _, one := range family.GetMetric() {
			labels := toAttributes(one.GetLabel())
			value := one.GetCounter().GetValue() + one.GetGauge().GetValue() + one.GetUntyped().GetValue() // only one of them is set
			if h := one.GetHistogram(); h != nil {
				histograms = append(histograms, toHistogramPoint(h, labels, began, now))
			} else if one.GetSummary() == nil {
				numbers = append(numbers, &metricspb.NumberDataPoint{Attributes: labels, StartTimeUnixNano: uint64(began.UnixNano()), TimeUnixNano: uint64(now.UnixNano()),
					Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: value}})
			}
		}
		const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
		switch family.GetType() {
		case dto.MetricType_COUNTER:
			m.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{DataPoints: numbers, IsMonotonic: true, AggregationTemporality: cumulative}}
		case dto.MetricType_HISTOGRAM:
			m.Data = &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{DataPoints: histograms, AggregationTemporality: cumulative}}
		case dto.MetricType_GAUGE, dto.MetricType_UNTYPED:
			m.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: numbers}}
		default:
			continue // the summary of Go's GC pauses, which only /metrics exports
		}
		out = append(out, m)
	}
	about := &resourcepb.Resource{Attributes: []*commonpb.KeyValue{newStringAttribute("service.name", serviceName), newStringAttribute("service.version", version)}}
	return &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{Resource: about,
		ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: &commonpb.InstrumentationScope{Name: serviceName}, Metrics: out}}}}}
}

func toHistogramPoint(h *dto.Histogram, labels []*commonpb.KeyValue, began, now time.Time) *metricspb.HistogramDataPoint {
	sum := h.GetSampleSum()
	p := &metricspb.HistogramDataPoint{Attributes: labels, StartTimeUnixNano: uint64(began.UnixNano()), TimeUnixNano: uint64(now.UnixNano()),
		Count: h.GetSampleCount(), Sum: &sum}
	below := uint64(0) // Prometheus buckets are cumulative, OTLP buckets are not
	for _, b := range h.GetBucket() {
		if math.IsInf(b.GetUpperBound(), 1) {
			break // the last bucket contains it anyway
		}
		p.ExplicitBounds = append(p.ExplicitBounds, b.GetUpperBound())
		p.BucketCounts = append(p.BucketCounts, b.GetCumulativeCount()-below)
		below = b.GetCumulativeCount()
	}
	p.BucketCounts = append(p.BucketCounts, h.GetSampleCount()-below)
	return p
}

func toAttributes(labels []*dto.LabelPair) (out []*commonpb.KeyValue) {
	for _, l := range labels {
		out = append(out, newStringAttribute(l.GetName(), l.GetValue()))
	}
	return out
}

func newStringAttribute(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

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
