package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/store/activity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func telemeter(t testing.TB, endpoint string) *Telemetry {
	t.Helper()
	x, err := New(context.Background(), Options{Version: "1", Endpoint: endpoint, Logger: slog.New(slog.DiscardHandler),
		State: func() ProxyState {
			return ProxyState{Servers: map[string]int{"ready": 2}, Tools: map[string]int{"callable": 3}, Degraded: true}
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := x.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return x
}

func page(t testing.TB, x *Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	x.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	return w.Body.String()
}

// The number of labels is limited for any number of servers and concurrent calls, and every call is counted.
func TestLabelsAreBounded(t *testing.T) {
	x := telemeter(t, "")
	const callers, servers = 8, 1000
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range servers {
				x.CallEnded(gate.CallStats{Server: fmt.Sprint("server-", i), Operation: "read", Status: activity.Success, Duration: time.Millisecond}, nil)
			}
		})
	}
	all.Wait()
	text := page(t, x)
	if n := strings.Count(text, `mcpproxy_calls_total{lane="read",outcome="success",server="server-`); n != maxServers {
		t.Errorf("%d servers have labels", n)
	}
	if want := fmt.Sprintf(`mcpproxy_calls_total{lane="read",outcome="success",server="others"} %d`, callers*(servers-maxServers)); !strings.Contains(strings.ReplaceAll(text, "e+03", "000"), want) {
		t.Errorf("%s is missing", want)
	}
}

// Refusals are counted by code and have no duration. Failures have a duration.
func TestOutcomes(t *testing.T) {
	x := telemeter(t, "")
	x.CallEnded(gate.CallStats{Server: "s", Operation: "write", Status: activity.Blocked, Code: "TOOL_LOCKED", Duration: time.Second}, nil)
	x.CallEnded(gate.CallStats{Server: "s", Operation: "write", Status: activity.Failed, Code: "TIMEOUT", Duration: 3 * time.Second, Own: time.Millisecond}, nil)
	x.CallEnded(gate.CallStats{Status: activity.Blocked, Code: "INVALID_NAME"}, nil)
	text := page(t, x)
	for _, want := range []string{
		`mcpproxy_calls_total{lane="write",outcome="blocked",server="s"} 1`, `mcpproxy_calls_total{lane="write",outcome="error",server="s"} 1`,
		`mcpproxy_calls_total{lane="",outcome="blocked",server=""} 1`, `mcpproxy_problems_total{code="TIMEOUT"} 1`,
		`mcpproxy_call_duration_seconds_sum{lane="write",server="s"} 3`, `mcpproxy_call_duration_seconds_count{lane="write",server="s"} 1`,
		`mcpproxy_servers{state="ready"} 2`, `mcpproxy_tools{status="callable"} 3`, `mcpproxy_log_degraded 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
}

// OTLP exports the same metrics as Prometheus.
func TestMetricsOverOTLP(t *testing.T) {
	upper, count, cumulative, sum := 1.0, uint64(5), uint64(3), 9.0
	name, help, kind := "h", "help", dto.MetricType_HISTOGRAM
	label, value := "lane", "read"
	began := time.Unix(1, 0)
	infinite, all := math.Inf(1), uint64(5)
	for _, withInfinity := range []bool{false, true} {
		buckets := []*dto.Bucket{{UpperBound: &upper, CumulativeCount: &cumulative}}
		if withInfinity {
			buckets = append(buckets, &dto.Bucket{UpperBound: &infinite, CumulativeCount: &all})
		}
		data := metricsToOTLP([]*dto.MetricFamily{{Name: &name, Help: &help, Type: &kind, Metric: []*dto.Metric{{
			Label: []*dto.LabelPair{{Name: &label, Value: &value}}, Histogram: &dto.Histogram{SampleCount: &count, SampleSum: &sum, Bucket: buckets},
		}}}}, "1", began, time.Unix(2, 0))
		p := data.ResourceMetrics[0].ScopeMetrics[0].Metrics[0].GetHistogram().DataPoints[0]
		if len(p.ExplicitBounds) != 1 || len(p.BucketCounts) != 2 || p.BucketCounts[0] != 3 || p.BucketCounts[1] != 2 || p.Count != 5 || p.GetSum() != 9 ||
			p.StartTimeUnixNano != uint64(time.Second) || p.Attributes[0].Key != "lane" || p.Attributes[0].Value.GetStringValue() != "read" {
			t.Errorf("infinity %v: %v", withInfinity, p)
		}
	}
}

// An invalid trace context starts a new trace. If the client's trace context is not sampled, no trace is sent.
func TestTraceContext(t *testing.T) {
	var mu sync.Mutex
	sent := 0
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/v1/traces" {
			sent++
		}
	}))
	defer endpoint.Close()
	x := telemeter(t, endpoint.URL+"/")
	const of = "0af7651916cd43dd8448eb211c80319c"
	for _, tt := range []struct{ parent, state, same, flags string }{
		{"00-" + of + "-b7ad6b7169203331-01", "a=b", of, "01"},
		{"00-" + of + "-b7ad6b7169203331-00", "", of, "00"},
		{"", "", "", "01"},
		{"00-zz-b7ad6b7169203331-01", "", "", "01"},
		{strings.Repeat("0", 1<<20), strings.Repeat("=", 1<<20), "", "01"},
	} {
		f := x.StartTrace(time.Now(), tt.parent, tt.state)
		parent := f.BeforeSend()
		f.AfterAnswer()
		x.CallEnded(gate.CallStats{Status: activity.Success}, f)
		parts := strings.Split(parent, "-")
		if len(parts) != 4 || tt.same != "" && parts[1] != tt.same || tt.same == "" && parts[1] == of || parts[3] != tt.flags {
			t.Errorf("%.60q: %q", tt.parent, parent)
		}
	}
	x.StartTrace(time.Now(), "", "") // a call that never ends
	x.CallEnded(gate.CallStats{Status: activity.Blocked, Code: "X"}, x.StartTrace(time.Now(), "", ""))
	if err := x.traces.spans.ForceFlush(context.Background()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if sent == 0 {
		t.Error("no trace was sent")
	}
}

// An endpoint that hangs delays no call, and delays Close only until its context is done.
func TestEndpointThatHangs(t *testing.T) {
	free := make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-free }))
	before := goleak.IgnoreCurrent()
	defer func() { // an abandoned request ends slightly later
		for end := time.Now().Add(time.Minute); goleak.Find(before) != nil && time.Now().Before(end); {
		}
	}()
	defer endpoint.Close()
	defer close(free)
	x, err := New(context.Background(), Options{Endpoint: endpoint.URL, State: func() ProxyState { return ProxyState{} }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * maxSpans { // more than the queue can hold
		x.CallEnded(gate.CallStats{Status: activity.Success}, x.StartTrace(time.Now(), "", ""))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := x.Close(ctx); err != nil {
		t.Error(err)
	}
	if ctx.Err() == nil {
		t.Error("Close returned no error, although the endpoint accepted nothing")
	}
}

func TestHeadersOfTheEndpoint(t *testing.T) {
	t.Setenv(headersVar, "x-key=a%20b, api=c")
	s, err := newOTLPHTTPUploader("http://127.0.0.1:1")
	if err != nil || s.header.Get("X-Key") != "a b" || s.header.Get("Api") != "c" {
		t.Errorf("%v %v", s, err)
	}
	t.Setenv(headersVar, "no pair")
	if _, err := newOTLPHTTPUploader("http://127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), headersVar) {
		t.Errorf("%v", err)
	}
}

// BenchmarkEnded measures CallEnded for a call without a trace.
func BenchmarkEnded(b *testing.B) {
	x := telemeter(b, "")
	o := gate.CallStats{Server: "s", Operation: "read", Status: activity.Success, Duration: time.Millisecond, Own: time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		x.CallEnded(o, x.StartTrace(time.Time{}, "", ""))
	}
}

// The dashboard and the alerts use existing metrics.
func TestFilesForOperators(t *testing.T) {
	x := telemeter(t, "")
	x.CallEnded(gate.CallStats{Status: activity.Failed, Code: "TIMEOUT"}, nil)
	text := page(t, x)
	names := regexp.MustCompile(`\b(mcpproxy_[a-z_]+|process_[a-z_]+)`)
	for _, file := range []string{"grafana.json", "alerts.yaml"} {
		data, err := os.ReadFile("../../../docs/operations/" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := names.FindAllString(string(data), -1)
		for _, name := range found {
			if !strings.Contains(text, "\n"+name) {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
		if len(found) < 10 {
			t.Errorf("%s: found only the metrics %q", file, found)
		}
	}
	var dashboard struct{ Panels []json.RawMessage }
	data, err := os.ReadFile("../../../docs/operations/grafana.json")
	if err == nil {
		err = json.Unmarshal(data, &dashboard)
	}
	if err != nil || len(dashboard.Panels) < 10 {
		t.Errorf("%d panels, %v", len(dashboard.Panels), err)
	}
}
