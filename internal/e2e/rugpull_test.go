package e2e

import (
	"fmt"
	"testing"
)

// If a server reconnects with other definitions, it gets no call that was decided on the old ones, in any order of the
// call and the new list.
func TestNoCallIsDecidedOnAnOldList(t *testing.T) {
	t.Parallel()
	const (
		harmless    = `{"name":"wipe","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
		destructive = `{"name":"wipe","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`
	)
	upstream := startUpstream(t, harmless)
	// Trust "auto" accepts the new definition, because it is stricter.
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"s":{"url":%q,"trust":"auto"}}}`, upstream.URL))
	d.awaitTools("s:wipe")
	if r := d.legacy().call("call_tool_read", `{"name":"s:wipe"}`); r.IsError || upstream.calls.Load() != 1 {
		t.Fatalf("a harmless tool is refused: %+v", r)
	}

	d.stop()
	asked, release := make(chan struct{}, 10), make(chan struct{})
	hold := func(method string) {
		if method == "initialize" {
			asked <- struct{}{}
			<-release
		}
	}
	upstream.define(destructive)
	upstream.before.Store(&hold)
	d.start()
	<-asked // the daemon knows the tool from its previous run and is connecting
	answered := make(chan toolResult, 1)
	a := d.legacy()
	go func() {
		r, err := a.tryCall("call_tool_read", `{"name":"s:wipe"}`)
		if err != nil {
			t.Errorf("the call: %v", err)
		}
		answered <- r
	}()
	close(release)
	r := <-answered
	if !r.IsError || upstream.calls.Load() != 1 {
		t.Fatalf("the call reached the server %d times: %+v", upstream.calls.Load()-1, r)
	}
	eventually(t, "the new definition is applied", func() error {
		r, err := a.tryCall("call_tool_read", `{"name":"s:wipe"}`)
		if err != nil || !r.IsError || r.refusal(t).Code != "SERVER_MISMATCH" {
			return fmt.Errorf("%+v %w", r, err)
		}
		return nil
	})
}
