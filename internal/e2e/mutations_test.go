package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// A server changes one field of its tool at a time. Each time the tool is held. With the approved definition it can be
// called again.
func TestEachMutationIsHeld(t *testing.T) {
	t.Parallel()
	const original = `{"name":"t","title":"T","description":"Reads.","inputSchema":{"type":"object","properties":{"a":{"type":"string","description":"A.","default":"x","enum":["x","y"],"examples":["x"]}},"required":["a"],"$defs":{"d":{"title":"D"}}},
		"outputSchema":{"type":"object","properties":{"o":{"type":"string"}}},"annotations":{"title":"T","readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true,"vendor":1},
		"icons":[{"src":"https://example.com/a.png"}],"execution":{"taskSupport":"forbidden"},"_meta":{"k":"v"}}`
	mutations := [][2]string{
		{`"title":"T"`, `"title":"U"`}, {`Reads.`, `Reads!`}, {`"a":{"type"`, `"b":{"type"`}, {`"type":"string","description"`, `"type":"number","description"`},
		{`"A."`, `"B."`}, {`"default":"x"`, `"default":"y"`}, {`["x","y"]`, `["x"]`}, {`"examples":["x"]`, `"examples":["y"]`}, {`"required":["a"]`, `"required":[]`},
		{`"title":"D"`, `"title":"E"`}, {`"o":{"type":"string"}`, `"o":{"type":"number"}`}, {`"annotations":{"title":"T"`, `"annotations":{"title":"V"`},
		{`"readOnlyHint":false`, `"readOnlyHint":true`}, {`"destructiveHint":true`, `"destructiveHint":false`}, {`"destructiveHint":true,`, ``},
		{`"idempotentHint":false`, `"idempotentHint":true`}, {`"openWorldHint":true`, `"openWorldHint":false`}, {`"vendor":1`, `"vendor":2`},
		{`a.png`, `b.png`}, {`"forbidden"`, `"optional"`}, {`"k":"v"`, `"k":"w"`}, {`"_meta":{"k":"v"}`, `"_meta":{"k":"v"},"new":null`},
	}
	u := startUpstream(t, original)
	d := startDaemon(t, u.config("s", ""))
	d.awaitTools("s:t")
	a := d.legacy()
	call := func() toolResult { return a.call("call_tool_destructive", `{"name":"s:t","args":{"a":"x"}}`) }
	lists := func(definition string) {
		t.Helper()
		u.define(definition)
		if status, body := d.rest("POST", "/servers/s/restart", ""); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	if r := call(); r.IsError {
		t.Fatalf("the original: %s", r.text())
	}
	reached := u.calls.Load()
	for _, m := range mutations {
		changed := strings.Replace(original, m[0], m[1], 1)
		if changed == original {
			t.Fatalf("%s is not in the definition", m[0])
		}
		lists(changed)
		if r := call(); r.refusal(t).Code != "TOOL_LOCKED" || !strings.Contains(string(r.refusal(t).Details), "pending_approval") {
			t.Errorf("%s → %s: %s", m[0], m[1], r.text())
		}
	}
	if n := u.calls.Load(); n != reached {
		t.Errorf("%d calls reached the server", n-reached)
	}
	lists(original)
	if r := call(); r.IsError {
		t.Errorf("with the original definition: %s", r.text())
	}
}
