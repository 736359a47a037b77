package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// judged is a daemon with a server that has a tool for each kind of decision: a user has blocked "blocked" and disabled
// "off", "changed" is held with its new definition, and "fine" is approved.
type judged struct {
	*daemon
	t testing.TB
	u *fakeUpstream
}

var judgedTools = []string{"s:fine", "s:blocked", "s:off", "s:changed"}

// locked are the tools that cannot be called, with their statuses.
var locked = statuses{"s:blocked": "pending_approval", "s:off": "disabled_by_user", "s:changed": "pending_approval"}

func definitionOf(name, text string) string {
	return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, text)
}

func startJudged(t testing.TB) *judged {
	t.Helper()
	u := startUpstream(t, definitionOf("fine", "One."), definitionOf("blocked", "One."), definitionOf("off", "One."), definitionOf("changed", "One."))
	return judge(t, u, u.config("s", ""))
}

func judge(t testing.TB, u *fakeUpstream, config string) *judged {
	t.Helper()
	j := &judged{t: t, u: u, daemon: startDaemon(t, config)}
	j.awaitTools(judgedTools...)
	u.define(definitionOf("fine", "One."), definitionOf("blocked", "Two."), definitionOf("off", "One."), definitionOf("changed", "Two."))
	if status, body := j.rest("POST", "/servers/s/restart", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	j.decide("blocked", "block")
	j.decide("off", "disable")
	j.holds("at once", locked)
	return j
}

// decide makes a decision about the currently listed definition of a tool.
func (j *judged) decide(name, what string) {
	j.t.Helper()
	_, body := j.rest("GET", "/servers/s/tools/"+name+"/diff", "")
	var diff struct{ Fingerprint string }
	if err := json.Unmarshal(body, &diff); err != nil || diff.Fingerprint == "" {
		j.t.Fatalf("the difference of %s: %s", name, body)
	}
	sent := ""
	if what == "approve" || what == "block" {
		sent = `{"fingerprint":"` + diff.Fingerprint + `"}`
	}
	if status, answer := j.rest("POST", "/servers/s/tools/"+name+"/"+what, sent); status != http.StatusOK {
		j.t.Fatalf("%s %s: %d %s", what, name, status, answer)
	}
}

// holds calls every tool and checks that exactly the tools in want are refused, each with its status.
func (j *judged) holds(when string, want statuses) {
	j.t.Helper()
	a := j.legacy()
	for _, name := range judgedTools {
		r := a.call("call_tool_write", `{"name":"`+name+`"}`)
		if r.IsError != (want[name] != "") || r.IsError && !strings.Contains(string(r.refusal(j.t).Details), want[name]) {
			j.t.Errorf("%s: the call of %s, which is %q: %+v", when, name, want[name], r)
		}
	}
}

func (j *judged) approveServer() {
	j.t.Helper()
	if code, _, stderr := j.cli("upstream", "approve", "s", "--yes"); code != 0 {
		j.t.Fatalf("approve the server: %s", stderr)
	}
}

func (d *daemon) database() string { return filepath.Join(d.dataDir(), "mcpproxy.db") }

// aside returns the databases that were moved away.
func (d *daemon) aside() []string {
	d.t.Helper()
	all, err := filepath.Glob(d.database() + ".corrupt-*")
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// ruin overwrites the database of a stopped daemon.
func (d *daemon) ruin() {
	d.t.Helper()
	for _, suffix := range []string{"-wal", "-shm"} {
		_ = os.Remove(d.database() + suffix) // may already be removed
	}
	if err := os.WriteFile(d.database(), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// An attacker damages the database, the daemon starts again, and the user follows the advice of the status and approves
// the server. Blocked and disabled tools must stay locked.
func TestLostDatabaseUnlocksNothing(t *testing.T) {
	t.Parallel()
	j := startJudged(t)
	j.stop()
	j.ruin()
	j.start()
	j.awaitTools(judgedTools...)
	if len(j.aside()) == 0 {
		t.Error("the damaged file was not kept")
	}
	j.holds("without the database", statuses{"s:fine": "pending_approval", "s:blocked": "pending_approval", "s:off": "disabled_by_user", "s:changed": "pending_approval"})
	j.approveServer()
	after := statuses{"s:blocked": "pending_approval", "s:off": "disabled_by_user"}
	j.holds("after the server was approved", after)
	j.kill()
	j.start()
	j.awaitTools(judgedTools...)
	j.holds("after another restart", after)

	// A tool that a user has unlocked stays unlocked, even when the database is lost again.
	j.decide("blocked", "approve")
	j.decide("off", "enable")
	j.holds("freed", statuses{})
	j.stop()
	if err := os.Truncate(j.database(), 0); err != nil {
		t.Fatal(err)
	}
	j.start()
	j.awaitTools(judgedTools...)
	j.approveServer()
	j.holds("freed, and the database lost again", statuses{})
}

// The file is damaged while the daemon runs. The daemon moves it away and writes everything that it knows into a new
// file. After a restart nothing has changed.
func TestDamagedDatabaseIsRefilled(t *testing.T) {
	t.Parallel()
	j := startJudged(t)
	j.stop()
	j.start() // so that all data is in the database file itself
	j.awaitTools(judgedTools...)
	info, err := os.Stat(j.database())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(j.database(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, int(info.Size())), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the database is moved away and refilled", func() error {
		j.legacy().call("call_tool_write", `{"name":"s:fine"}`)
		_, body := j.rest("GET", "/activity?type=system&limit=1000", "")
		if !strings.Contains(string(body), "database_reopened") {
			return fmt.Errorf("aside: %q, on record: %s", j.aside(), body)
		}
		return nil
	})
	j.holds("with a new database", locked)
	if len(j.aside()) == 0 {
		t.Error("the damaged file was not kept")
	}
	j.kill()
	j.start()
	j.awaitTools(judgedTools...)
	j.holds("after a restart", locked)
	if _, body := j.rest("GET", "/status", ""); strings.Contains(string(body), "approvals") {
		t.Errorf("the status says that approvals were lost: %s", body)
	}
	j.decide("changed", "approve")
	j.holds("approved", statuses{"s:blocked": "pending_approval", "s:off": "disabled_by_user"})
}
