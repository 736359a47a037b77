// Package telemetry exports metrics for Prometheus on /metrics. If the configuration names an endpoint, it also sends
// these metrics and a trace of each call over OTLP.
//
// Files:
//   - telemetry.go: starts and stops the export, and serves /metrics
//   - metrics.go: counts calls and searches
//   - state.go: collects gauges of servers, tools, sessions and the log
//   - traces.go: creates the spans of a call
//   - otlp.go: converts metrics to OTLP and sends them and the spans
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
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"mcpproxy/internal/gate"
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
