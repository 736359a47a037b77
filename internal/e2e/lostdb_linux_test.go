package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// When the disk fails for two seconds, nothing is lost and the healthy database stays in use.
func TestTemporaryIOError(t *testing.T) {
	t.Parallel()
	j := startJudged(t)
	stop := j.ioErrors("read,write,pread64,pwrite64,fsync,fdatasync,ftruncate")
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		j.legacy().call("call_tool_write", `{"name":"s:fine"}`)
		j.rest("GET", "/activity?search=fine", "")
		// A decision that cannot be stored does not take effect.
		if status, body := j.rest("POST", "/servers/s/tools/fine/disable", ""); status == http.StatusOK {
			t.Errorf("the decision was accepted: %s", body)
		}
	}
	stop()
	eventually(t, "the activity can be read", func() error {
		return want(j.rest("GET", "/activity", ""))
	})
	j.awaitReadyz(http.StatusOK)
	j.holds("afterwards", locked)
	j.stop()
	j.start()
	j.awaitTools(judgedTools...)
	if aside := j.aside(); len(aside) > 0 {
		t.Errorf("the healthy database was moved away: %q", aside)
	}
	j.holds("after a restart", locked)
}

// want returns nil if REST answered with status 200, and otherwise an error.
func want(status int, body []byte) error {
	if status != http.StatusOK {
		return fmt.Errorf("status %d: %s", status, body)
	}
	return nil
}
