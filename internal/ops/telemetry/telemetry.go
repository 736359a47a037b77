// Package telemetry exports metrics for Prometheus on /metrics. If the configuration names an endpoint, it also sends
// these metrics and a trace of each call over OTLP.
//
// Files:
//   - telemetry.go: starts and stops the export, serves /metrics, counts calls and searches, and collects gauges of
//     servers, tools, sessions and the log
//   - otlp.go: creates the spans of a call, converts metrics to OTLP, and sends both
//
// Guarantees:
//   - Nothing is sent without an endpoint.
//   - No argument, result, header, token or text of a client or server is in a metric or a trace.
//   - The number of label values is limited, regardless of the number of servers.
//   - Tracing never blocks a call: spans that the endpoint does not accept in time are dropped.
//
// Package telemetry makes no decisions and stores nothing that calls need.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/store/activity"
)

// Options configure a Telemetry.
type Options struct {
	Version string
	// Endpoint is the URL of an OTLP receiver over HTTP, without /v1/traces and /v1/metrics. If it is "", nothing is
	// sent.
	Endpoint string
	State    func() ProxyState
	Logger   *slog.Logger
}

// Telemetry implements gate.CallObserver.
type Telemetry struct {
	metrics
	registry *prometheus.Registry
	logger   *slog.Logger

	// The fields below are set only if there is an endpoint.
	traces  *callTracer
	client  *otlpHTTPUploader
	version string
	began   time.Time
	stop    context.CancelFunc
	sending sync.WaitGroup
	failing atomic.Bool
}

// sendInterval is the time between two transmissions of the metrics.
const sendInterval = 30 * time.Second

// New returns a Telemetry. If there is an endpoint, New starts sending, even if the endpoint does not answer.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	t := &Telemetry{registry: prometheus.NewRegistry(), logger: o.Logger, version: o.Version, began: time.Now()}
	t.metrics = newMetrics(t.registry)
	about := prometheus.NewGauge(prometheus.GaugeOpts{Name: "mcpproxy_build_info", Help: "Always 1; the label contains the version.", ConstLabels: prometheus.Labels{"version": o.Version}})
	about.Set(1)
	t.registry.MustRegister(about, stateCollector{o.State}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if o.Endpoint == "" {
		return t, nil
	}
	var err error
	if t.client, err = newOTLPHTTPUploader(o.Endpoint); err == nil {
		t.traces, err = newCallTracer(ctx, t.client, o.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	ctx, t.stop = context.WithCancel(ctx)
	t.sending.Go(func() {
		tick := time.NewTicker(sendInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				t.logEndpointStateChange(t.sendMetrics(ctx))
			}
		}
	})
	return t, nil
}

// sendMetrics sends the current metrics.
func (t *Telemetry) sendMetrics(ctx context.Context) error {
	gathered, err := t.registry.Gather()
	if err != nil {
		return err
	}
	return t.client.post(ctx, "/v1/metrics", metricsToOTLP(gathered, t.version, t.began, time.Now()))
}

// logEndpointStateChange logs when the endpoint begins to fail and when it recovers.
func (t *Telemetry) logEndpointStateChange(err error) {
	switch {
	case err != nil && !t.failing.Swap(true):
		t.logger.Warn("the telemetry endpoint accepts no data; rejected data is lost", "error", err)
	case err == nil && t.failing.Swap(false):
		t.logger.Info("the telemetry endpoint accepts data again")
	}
}

// ServeHTTP writes the metrics in the Prometheus format.
func (t *Telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(t.logger.Handler(), slog.LevelWarn)}).ServeHTTP(w, r)
}

// StartTrace implements gate.CallObserver.
func (t *Telemetry) StartTrace(began time.Time, parent, state string) gate.CallTrace {
	if t.traces == nil {
		return nil
	}
	return t.traces.startSpan(began, parent, state)
}

// CallEnded implements gate.CallObserver.
func (t *Telemetry) CallEnded(o gate.CallStats, followed gate.CallTrace) {
	t.countCall(&o)
	if s, ok := followed.(*callSpan); ok {
		s.endWithOutcome(&o)
	}
}

// Close sends the remaining metrics and spans until ctx is done.
func (t *Telemetry) Close(ctx context.Context) error {
	if t.traces == nil {
		return nil
	}
	t.stop()
	t.sending.Wait()
	if err := errors.Join(t.traces.spans.Shutdown(ctx), t.sendMetrics(ctx), t.client.Stop(ctx)); err != nil {
		t.logger.Info("telemetry that the endpoint did not accept is lost", "error", err)
	}
	return nil
}

// ProxyState is a snapshot of the state of MCPProxy.
type ProxyState struct {
	Waiting    int            // number of requests that wait for a slot
	Sessions   int            // number of client sessions
	Servers    map[string]int // number of servers by state
	Tools      map[string]int // number of tools by status, or "callable"
	Degraded   bool           // whether the activity log is degraded
	Backlog    int64          // number of log entries that are not in the database yet
	SpoolBytes int64
	Records    int64
}

// stateCollector collects the ProxyState each time the metrics are read.
type stateCollector struct{ now func() ProxyState }

var (
	waitingDesc  = prometheus.NewDesc("mcpproxy_calls_waiting", "Requests that wait for a slot.", nil, nil)
	sessionsDesc = prometheus.NewDesc("mcpproxy_sessions", "Sessions of clients.", nil, nil)
	serversDesc  = prometheus.NewDesc("mcpproxy_servers", "Servers by their state.", []string{"state"}, nil)
	toolsDesc    = prometheus.NewDesc("mcpproxy_tools", "Tools by their status.", []string{"status"}, nil)
	degradedDesc = prometheus.NewDesc("mcpproxy_log_degraded", "1 while records cannot be written, or the database is unavailable.", nil, nil)
	backlogDesc  = prometheus.NewDesc("mcpproxy_log_backlog_entries", "Entries of the log that are not in the database yet.", nil, nil)
	spoolDesc    = prometheus.NewDesc("mcpproxy_log_spool_bytes", "Size of the spool on the disk.", nil, nil)
	recordsDesc  = prometheus.NewDesc("mcpproxy_log_records", "Records in the database.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{waitingDesc, sessionsDesc, serversDesc, toolsDesc, degradedDesc, backlogDesc, spoolDesc, recordsDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s stateCollector) Collect(ch chan<- prometheus.Metric) {
	now := s.now()
	degraded := 0.0
	if now.Degraded {
		degraded = 1
	}
	for desc, value := range map[*prometheus.Desc]float64{
		waitingDesc: float64(now.Waiting), sessionsDesc: float64(now.Sessions), degradedDesc: degraded,
		backlogDesc: float64(now.Backlog), spoolDesc: float64(now.SpoolBytes), recordsDesc: float64(now.Records),
	} {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	for desc, counts := range map[*prometheus.Desc]map[string]int{serversDesc: now.Servers, toolsDesc: now.Tools} {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(counts[name]), name)
		}
	}
}

const (
	// maxServers limits the number of servers with their own label. Calls to further servers are counted under one
	// label.
	maxServers   = 200
	otherServers = "others"
	// noServer is the label for calls that name no configured server.
	noServer = ""
)

// metrics holds the metrics of calls and searches.
type metrics struct {
	calls    *prometheus.CounterVec
	refusals *prometheus.CounterVec
	took     *prometheus.HistogramVec
	own      *prometheus.HistogramVec
	searches prometheus.Histogram

	series *sync.Map // seriesKey → *callSeries
	labels *serverLabelLimiter
}

// seriesKey identifies a callSeries.
type seriesKey struct{ server, lane string }

// callSeries caches the metrics of one server in one lane.
type callSeries struct {
	ok, failed, refused prometheus.Counter
	took, own           prometheus.Observer
}

// serverLabelLimiter limits the number of servers that have their own label.
type serverLabelLimiter struct {
	mu   sync.Mutex // guards seen
	seen map[string]bool
}

// labelFor returns the label of a server.
func (l *serverLabelLimiter) labelFor(server string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if server == noServer || l.seen[server] {
		return server
	}
	if len(l.seen) >= maxServers {
		return otherServers
	}
	l.seen[server] = true
	return server
}

func newMetrics(r *prometheus.Registry) metrics {
	m := metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mcpproxy_calls_total",
			Help: "Tool calls by server, lane (read, write, destructive) and outcome (success, error, blocked, or held for approval). The server is empty if the call names no configured server."},
			[]string{"server", "lane", "outcome"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mcpproxy_problems_total",
			Help: "Calls that were refused or failed, by the code of the problem."}, []string{"code"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "mcpproxy_call_duration_seconds",
			Help:    "Duration of calls that were neither refused nor held, including their time in queues.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}}, []string{"server", "lane"}),
		own: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "mcpproxy_call_own_duration_seconds",
			Help:    "MCPProxy's own share of the duration of a call, without waiting for a slot and for the server.",
			Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5}}, []string{"lane"}),
		searches: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "mcpproxy_search_duration_seconds",
			Help:    "Duration of retrieve_tools.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5}}),
		series: &sync.Map{}, labels: &serverLabelLimiter{seen: map[string]bool{}},
	}
	r.MustRegister(m.calls, m.refusals, m.took, m.own, m.searches)
	return m
}

// ObserveSearch records the duration of a search.
func (m *metrics) ObserveSearch(took time.Duration) { m.searches.Observe(took.Seconds()) }

func (m *metrics) countCall(o *gate.CallStats) {
	s := m.seriesFor(seriesKey{o.Server, o.Operation})
	switch o.Status {
	case activity.Success:
		s.ok.Inc()
	case activity.Blocked:
		s.refused.Inc()
	case activity.Held:
		m.calls.WithLabelValues(m.labels.labelFor(o.Server), o.Operation, string(activity.Held)).Inc() // not cached, because it is rare
	default:
		s.failed.Inc()
	}
	if o.Code != "" {
		m.refusals.WithLabelValues(o.Code).Inc()
	}
	if o.Status != activity.Blocked && o.Status != activity.Held {
		s.took.Observe(o.Duration.Seconds())
		s.own.Observe(o.Own.Seconds())
	}
}

func (m *metrics) seriesFor(what seriesKey) *callSeries {
	if s, ok := m.series.Load(what); ok {
		return s.(*callSeries)
	}
	server, lane := m.labels.labelFor(what.server), what.lane
	s := &callSeries{
		ok: m.calls.WithLabelValues(server, lane, string(activity.Success)), failed: m.calls.WithLabelValues(server, lane, string(activity.Failed)),
		refused: m.calls.WithLabelValues(server, lane, string(activity.Blocked)),
		took:    m.took.WithLabelValues(server, lane), own: m.own.WithLabelValues(lane),
	}
	if server == what.server { // servers without their own label are not cached
		m.series.Store(what, s)
	}
	return s
}
