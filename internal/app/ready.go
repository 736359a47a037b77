package app

import (
	"fmt"
	"net/http"
	"time"
)

// firstTime is for how long a start waits for the tools of servers that have never told any.
const firstTime = 2 * time.Minute

// ready answers 200 when calls can be recorded and answered.
func (d *daemon) ready(w http.ResponseWriter, _ *http.Request) {
	if h := d.log.Health(); h.Degraded {
		http.Error(w, "the activity log is degraded: "+h.Message, http.StatusServiceUnavailable)
		return
	}
	if n := d.unheard(); n > 0 {
		http.Error(w, fmt.Sprintf("it has just started, and does not know the tools of %d server(s) yet", n), http.StatusServiceUnavailable)
		return
	}
	answerOK(w)
}

// unheard returns how many servers a start still waits for: else calls would come for tools
// that it does not know. What servers do later is no reason to send no calls here.
func (d *daemon) unheard() (n int) {
	if d.heard.Load() {
		return 0
	}
	for _, s := range d.catalog.Current().Servers() {
		if s.AwaitsFirstList() {
			n++
		}
	}
	if n == 0 || time.Since(d.started) > firstTime {
		d.heard.Store(true)
		return 0
	}
	return n
}
