package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/store/activity"
)

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
