package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A user's decision survives a crash directly after it. If the database is lost, a definition that may have been known
// does not count as new.
func TestDecisionsSurvive(t *testing.T) {
	t.Parallel()
	definition := func(name, text string) string {
		return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, text)
	}
	before := []string{definition("approved", "One."), definition("blocked", "One."), definition("off", "One."), definition("same", "One.")}
	after := []string{definition("approved", "Two."), definition("blocked", "Two."), definition("off", "One."), definition("same", "One.")}
	u := startUpstream(t, before...)
	d := startDaemon(t, u.config("s", ""))
	names := []string{"s:approved", "s:blocked", "s:off", "s:same"}
	d.awaitTools(names...)
	u.define(after...)
	if status, body := d.rest("POST", "/servers/s/restart", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	fingerprint := func(name string) string {
		_, body := d.rest("GET", "/servers/s/tools/"+name+"/diff", "")
		var diff struct {
			Fingerprint string
			Changes     []struct{ Path string }
		}
		if err := json.Unmarshal(body, &diff); err != nil || len(diff.Changes) != 1 || diff.Changes[0].Path != "/description" {
			t.Fatalf("the difference of %s: %s", name, body)
		}
		return diff.Fingerprint
	}
	decide := func(name, what, body string) {
		t.Helper()
		if status, answer := d.rest("POST", "/servers/s/tools/"+name+"/"+what, body); status != http.StatusOK {
			t.Fatalf("%s %s: %d %s", what, name, status, answer)
		}
	}
	decide("approved", "approve", `{"fingerprint":"`+fingerprint("approved")+`"}`)
	decide("blocked", "block", `{"fingerprint":"`+fingerprint("blocked")+`"}`)
	decide("off", "disable", "")
	want := statuses{"s:blocked": "pending_approval", "s:off": "disabled_by_user"}
	holds := func(when string, want statuses) {
		t.Helper()
		for _, name := range names {
			r := d.legacy().call("call_tool_write", `{"name":"`+name+`"}`)
			if r.IsError != (want[name] != "") || r.IsError && !strings.Contains(string(r.refusal(t).Details), want[name]) {
				t.Errorf("%s: the call of %s, which is %q: %+v", when, name, want[name], r)
			}
		}
	}
	holds("at once", want)
	d.kill()
	d.start()
	d.awaitTools(names...)
	holds("after a crash", want)

	// A truncated database file opens as a new database.
	d.stop()
	for _, suffix := range []string{"-wal", "-shm"} {
		_ = os.Remove(filepath.Join(d.dataDir(), "mcpproxy.db"+suffix)) // may already be removed
	}
	if err := os.Truncate(filepath.Join(d.dataDir(), "mcpproxy.db"), 0); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.awaitTools(names...)
	lost := statuses{}
	for _, name := range names {
		lost[name] = "pending_approval"
	}
	lost["s:off"] = "disabled_by_user" // restrictions are stored a second time outside the database
	holds("without the database", lost)
	_, body := d.rest("GET", "/status", "")
	if !strings.Contains(string(body), "approvals") {
		t.Errorf("the status does not report it: %s", body)
	}
	if code, _, stderr := d.cli("upstream", "approve", "s", "--yes"); code != 0 {
		t.Fatalf("approve the server: %s", stderr)
	}
	holds("after the server was approved anew", want)
}
