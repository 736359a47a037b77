package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"mcpproxy/internal/store/activity"
)

// record returns the record with an ID, from its own request.
func (d *daemon) record(id string) (r activity.Record) {
	d.t.Helper()
	status, body := d.rest("GET", "/activity/"+id, "")
	if err := json.Unmarshal(body, &r); err != nil || status != http.StatusOK {
		d.t.Fatalf("status %d, %v: %s", status, err, body)
	}
	return r
}

// newest returns the newest record that matches the filter, from its own request.
func (d *daemon) newest(filter string) activity.Record {
	d.t.Helper()
	records, _ := d.records(filter)
	if len(records) == 0 {
		d.t.Fatal("there is no record with " + filter)
	}
	return d.record(records[0].ID)
}

// TestRecordsContainTheDecision: the record of a call, of a refusal and of a call that a kill interrupted contains the
// facts of the decision and its position in the chain.
func TestRecordsContainTheDecision(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		`{"name":"wipe","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`)
	d := startDaemon(t, u.config("m", ""))
	d.awaitTools("m:echo", "m:wipe")
	a := d.legacy()

	if r := a.call("call_tool_read", `{"name":"m:echo"}`); r.IsError {
		t.Fatal(r.text())
	}
	call := d.newest("type=tool_call")
	facts := call.Metadata.Decision
	if facts == nil || facts.Outcome != activity.Allowed || facts.Hints == nil || !facts.Hints.ReadOnly.Value || facts.Hints.ReadOnly.From != "server" ||
		facts.CallWith != "call_tool_read" || len(facts.Fingerprint) != 64 || len(facts.ConfigRevision) != 12 || facts.ApprovedBy != "trust:scan" || facts.ApprovedAt == nil {
		t.Errorf("a call: %+v", facts)
	}
	if call.OwnUS < 1 || call.OwnUS > (call.DurationMS+1)*1000 {
		t.Errorf("MCPProxy's own time: %d µs of %d ms", call.OwnUS, call.DurationMS)
	}
	if c := call.Chain; c == nil || len(c.Hash) != 64 || len(c.Previous) != 64 || c.EndSeq <= c.Seq || len(c.EndHash) != 64 {
		t.Errorf("its position in the log: %+v", c)
	}

	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	if r := a.call("call_tool_read", `{"name":"m:wipe","intent":{"operation_type":"look","reason":"with `+secret+`"}}`); !r.IsError {
		t.Fatal("the call was allowed")
	}
	refused := d.newest("type=policy_decision")
	letter := string(refused.Metadata.Intent.Declared)
	if facts := refused.Metadata.Decision; facts == nil || facts.Outcome != activity.Refused || facts.Check != "intent" || !facts.Hints.Destructive.Value ||
		!strings.HasPrefix(letter, `{"intent":{"operation_type":"look","reason":"with `) || strings.Contains(letter, secret) {
		t.Errorf("a refusal: %+v, declared %s", facts, letter)
	}

	reached := make(chan struct{}, 1)
	hang := func(method string) {
		if method == "tools/call" {
			reached <- struct{}{}
			<-t.Context().Done()
		}
	}
	u.before.Store(&hang)
	go func() { _, _ = a.tryCall("call_tool_read", `{"name":"m:echo"}`) }()
	<-reached
	d.kill()
	d.start()
	interrupted := d.newest("status=interrupted")
	if again := interrupted.Metadata.Decision; again == nil || again.Fingerprint != facts.Fingerprint || again.Outcome != activity.Allowed || interrupted.OwnUS != 0 {
		t.Errorf("an interrupted call: %+v", again)
	}
	if was := d.record(call.ID); was.Chain == nil || *was.Chain != *call.Chain || was.Metadata.Decision.Fingerprint != facts.Fingerprint {
		t.Errorf("after the restart: %+v", was)
	}

	_, all := d.records("")
	_, body := d.rest("GET", "/status", "")
	var status struct{ Activity struct{ Records int64 } }
	_, later := d.records("") // another record may be written in between
	if err := json.Unmarshal(body, &status); err != nil || status.Activity.Records < all || status.Activity.Records > later {
		t.Errorf("status reports %d records, want %d to %d: %v", status.Activity.Records, all, later, err)
	}
	if code, out, _ := d.cli("activity", "show", call.ID); code != 0 || !strings.Contains(out, "read-only (server)") || !strings.Contains(out, facts.Fingerprint) {
		t.Errorf("activity show: %d\n%s", code, out)
	}
}
