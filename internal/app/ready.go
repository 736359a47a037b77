package app

import (
	"fmt"
	"net/http"
	"time"
)

// startupWait limits how long readiness waits for the tools of servers that were never listed.
const startupWait = 2 * time.Minute

// serveReady answers 200 when calls can be recorded and answered.
func (d *daemon) serveReady(w http.ResponseWriter, _ *http.Request) {
	if h := d.log.Health(); h.Degraded {
		http.Error(w, "the activity log is degraded: "+h.Message, http.StatusServiceUnavailable)
		return
	}
	if n := d.countServersWithoutTools(); n > 0 {
		http.Error(w, fmt.Sprintf("it has just started, and %d server(s) have not listed their tools yet", n), http.StatusServiceUnavailable)
		return
	}
	writeOK(w)
}

// countServersWithoutTools returns how many servers readiness still waits for. Servers that fail later do not matter.
func (d *daemon) countServersWithoutTools() (n int) {
	if d.toolsKnown.Load() {
		return 0
	}
	for _, s := range d.catalog.Current().Servers() {
		if s.AwaitsFirstList() {
			n++
		}
	}
	if n == 0 || time.Since(d.started) > startupWait {
		d.toolsKnown.Store(true)
		return 0
	}
	return n
}
