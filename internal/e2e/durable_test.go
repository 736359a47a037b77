package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// The crash test: how many calls, from how many clients.
const (
	crashCalls   = 10_000
	crashClients = 64
)

// After kill -9 in the middle of 10,000 calls, every call that a client got an
// answer to is in the log, and every call that reached the upstream too.
func TestNoAnsweredCallIsLost(t *testing.T) {
	upstream := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"}}`)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:echo")

	var (
		answered sync.Map
		count    atomic.Int64
		next     atomic.Int64
		clients  sync.WaitGroup
		half     = make(chan struct{})
	)
	for range crashClients {
		a := d.legacy()
		a.client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
		clients.Go(func() {
			defer a.client.CloseIdleConnections()
			for {
				n := next.Add(1)
				if n > crashCalls {
					return
				}
				mark := fmt.Sprintf("call-%d", n)
				r, err := a.tryCall("call_tool_write", fmt.Sprintf(`{"name":"m:echo","args":{"mark":%q},"intent_reason":%q}`, mark, mark))
				if err != nil {
					return // the daemon is gone
				}
				if !r.IsError && r.rpcError == nil {
					answered.Store(mark, true)
					if count.Add(1) == crashCalls/2 {
						close(half)
					}
				}
			}
		})
	}
	<-half
	d.kill()
	clients.Wait()
	d.start()

	recorded, interrupted := map[string]string{}, 0
	cursor := ""
	for {
		status, body := d.rest("GET", "/activity?type=tool_call&limit=1000&cursor="+cursor, "")
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, body)
		}
		var page struct {
			Activities []struct {
				ID       string
				Status   string
				Metadata struct {
					Intent struct{ Reason string }
				}
			}
			NextCursor string `json:"next_cursor"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Activities {
			if before, twice := recorded[r.Metadata.Intent.Reason]; twice {
				t.Fatalf("%s is recorded twice: %s and %s", r.Metadata.Intent.Reason, before, r.ID)
			}
			recorded[r.Metadata.Intent.Reason] = r.ID
			switch r.Status {
			case "success":
			case "interrupted":
				interrupted++
			default:
				t.Errorf("%s: status %s", r.Metadata.Intent.Reason, r.Status)
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	missing := 0
	answered.Range(func(mark, _ any) bool {
		if recorded[mark.(string)] == "" {
			missing++
		}
		return true
	})
	if missing > 0 {
		t.Errorf("%d answered calls are not in the log", missing)
	}
	if reached := upstream.calls.Load(); int64(len(recorded)) < reached {
		t.Errorf("%d calls reached the upstream, %d are in the log", reached, len(recorded))
	}
	t.Logf("%d answered, %d reached the upstream, %d recorded, %d interrupted", count.Load(), upstream.calls.Load(), len(recorded), interrupted)
}
