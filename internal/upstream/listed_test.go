//go:build unix

package upstream

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
)

// TestChangedToolIsNotCalled: a call is sent only over a connection that lists exactly the definition that was
// evaluated.
func TestChangedToolIsNotCalled(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		call := func(name, listed string) error {
			c := Call{Tool: name}
			if listed != "" {
				c.Listed = json.RawMessage(listed)
			}
			_, err := b.Call(t.Context(), "s", c)
			return err
		}
		l := b.link()
		good := func(name, listed string) {
			t.Helper()
			before := l.count(mcp.CallTool)
			if err := call(name, listed); err != nil || l.count(mcp.CallTool) != before+1 {
				t.Errorf("%s %s: error %v, %d calls", name, listed, err, l.count(mcp.CallTool)-before)
			}
		}
		bad := func(name, listed string) {
			t.Helper()
			before := l.count(mcp.CallTool)
			p := wantCode(t, call(name, listed), problem.ServerUnavailable)
			if p.Message != "Server 's' has just changed the definition of '"+name+"', so the call was not sent" ||
				p.Hint != "Read the definition of the tool again, then repeat the call." || p.Detail("changed") != true {
				t.Errorf("problem %+v", p)
			}
			if n := l.count(mcp.CallTool); n != before {
				t.Errorf("%d calls were sent", n-before)
			}
		}
		good("t0", `{"name":"t0"}`)
		good("t0", "")
		good("hidden", "")
		bad("t0", `{"name":"t0","description":"safe"}`)
		bad("t0", `{"name": "t0"}`)
		bad("t1", `{"name":"t1"}`)

		l.set(func() { l.version = 1 })
		b.sv.ReportReceiver().ToolsChanged()
		sleep(relistPause)
		bad("t0", `{"name":"t0"}`)
		good("t1", `{"name":"t1"}`)
	})
}

// TestChangeWithTheConnection: while a call waits that was decided on the old list, the server reconnects with another
// list.
func TestChangeWithTheConnection(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		old := b.link()
		b.prepare(func(l *fakeLink) { l.version = 7 })
		old.Signal(errors.New("gone"))
		_, err := b.Call(t.Context(), "s", Call{Tool: "t0", Listed: json.RawMessage(`{"name":"t0"}`)})
		if p := wantCode(t, err, problem.ServerUnavailable); p.Detail("changed") != true {
			t.Errorf("problem %+v", p)
		}
		if now := b.link(); now == old || old.count(mcp.CallTool)+now.count(mcp.CallTool) != 0 {
			t.Error("the call was sent")
		}
		if _, err := b.Call(t.Context(), "s", Call{Tool: "t7", Listed: json.RawMessage(`{"name":"t7"}`)}); err != nil {
			t.Error(err)
		}
	})
}

// TestSilentServerIsListedAgain: a server that cannot announce changes is listed every minute.
func TestSilentServerIsListedAgain(t *testing.T) {
	for name, shape := range map[string]func(*fakeLink){
		"no promise": func(l *fakeLink) { l.silent = true },
		"no stream":  func(l *fakeLink) { l.deaf = true },
	} {
		t.Run(name, func(t *testing.T) {
			supervise(t, nil, func(t *testing.T, b *bench) {
				tools := func() []string {
					b.watcher.mu.Lock()
					defer b.watcher.mu.Unlock()
					return b.lastTools("s")
				}
				old := b.link()
				b.prepare(shape)
				old.Signal(errors.New("gone"))
				sleep(minBackoff)
				l := b.link()
				l.set(func() { l.version = 5 })
				sleep(unannouncedPause - 2*time.Second)
				if got := tools(); l.count(mcp.ListTools) != 1 || !slices.Equal(got, []string{"t0"}) {
					t.Errorf("%d lists, tools %q", l.count(mcp.ListTools), got)
				}
				sleep(4 * time.Second)
				if got := tools(); !slices.Equal(got, []string{"t5"}) {
					t.Errorf("tools %q", got)
				}
				sleep(10 * unannouncedPause)
				if n := l.count(mcp.ListTools); n != 12 {
					t.Errorf("%d lists", n)
				}
			})
		})
	}
}
