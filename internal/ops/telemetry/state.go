package telemetry

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

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
