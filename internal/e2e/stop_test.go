package e2e

import "testing"

// A stop lets calls finish. It ends calls that take too long, with an error that gives the reason.
func TestStopRefusesUnfinishedCalls(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, `{"name":"hang","inputSchema":{"type":"object"}}`)
	called, release := make(chan struct{}), make(chan struct{})
	hang := func(method string) {
		if method == "tools/call" {
			close(called)
			<-release
		}
	}
	upstream.before.Store(&hang)
	defer close(release)
	d := startDaemon(t, upstream.config("slow", ""))
	d.awaitTools("slow:hang")
	a := d.legacy()
	answered := make(chan toolResult, 1)
	go func() {
		r, err := a.tryCall("call_tool_write", `{"name":"slow:hang"}`)
		if err != nil {
			t.Errorf("the caller was cut off: %v", err)
		}
		answered <- r
	}()
	<-called
	d.stop()
	if r := <-answered; !r.IsError || r.refusal(t).Code != "SERVER_UNAVAILABLE" {
		t.Errorf("the caller got %+v", r)
	}
}
