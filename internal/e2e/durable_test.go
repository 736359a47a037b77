package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/testutil/volume"
)

var crashes = flag.Int("crashes", 2, "TestNoAnsweredCallIsLost: how often the daemon is killed during its calls")

// durable compares the answers that clients got with the activity log.
type durable struct {
	*daemon
	upstream *fakeUpstream
	answered sync.Map
	count    atomic.Int64 // number of entries in answered
	next     atomic.Int64 // the number of the last call
}

// startDurable starts a daemon with a log in the given database. "" means the daemon's own database.
func startDurable(t *testing.T, database string) *durable {
	upstream := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"}}`)
	config := upstream.config("m", "")
	if database != "" {
		config = fmt.Sprintf(`{"database":%q,%s`, database, strings.TrimPrefix(config, "{"))
	}
	d := &durable{daemon: startDaemon(t, config), upstream: upstream}
	d.awaitTools("m:echo")
	return d
}

// call lets clients call as fast as they can, until a number of calls is reached or the daemon has ended. It runs the
// function then once, after a given number of answered calls.
func (d *durable) call(clients int, upTo, when int64, then func()) {
	var all sync.WaitGroup
	var once sync.Once
	sessions := make([]*agent, clients)
	for i := range sessions {
		sessions[i] = d.legacy()
		sessions[i].client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	}
	for _, a := range sessions {
		all.Go(func() {
			defer a.client.CloseIdleConnections()
			for {
				n := d.next.Add(1)
				if n > upTo {
					return
				}
				mark := fmt.Sprintf("call-%d", n)
				r, err := a.tryCall("call_tool_write", fmt.Sprintf(`{"name":"m:echo","args":{"mark":%q},"intent_reason":%q}`, mark, mark))
				if err != nil {
					return // the daemon has ended
				}
				if !r.IsError && r.rpcError == nil {
					d.answered.Store(mark, true)
					if d.count.Add(1) >= when {
						once.Do(then)
					}
				}
			}
		})
	}
	all.Wait()
}

// During 10,000 calls (fewer in a quick run) from 32 sessions, the daemon is killed with kill -9 at random moments. The
// log contains every call that was answered or that reached the upstream.
func TestNoAnsweredCallIsLost(t *testing.T) {
	t.Parallel()
	loseNoAnsweredCall(t, "")
}

func loseNoAnsweredCall(t *testing.T, database string) {
	const clients = 32
	calls := int64(volume.FullOrQuick(10_000, 2_000))
	d := startDurable(t, database)
	seed := volume.Seed(t, 1)
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range int64(*crashes) {
		part := calls * 9 / 10 / int64(*crashes)
		running := d.cmd.Process
		d.call(clients, calls, i*part+random.Int64N(part), func() { _ = running.Kill() })
		d.kill()
		d.start()
		d.awaitTools("m:echo")
	}
	d.call(clients, calls, calls, func() {})
	d.check(t)
	t.Logf("killed %d times", *crashes)
}

// 6,000 calls (fewer in a quick run) from 200 sessions at full speed are all answered and recorded in the log.
func TestOverloadLosesNoCall(t *testing.T) {
	t.Parallel()
	const clients = 200
	calls := volume.FullOrQuick(6000, 2000)
	d := startDurable(t, "")
	d.call(clients, int64(calls), int64(calls), func() {})
	if n := d.count.Load(); n != int64(calls) {
		t.Errorf("%d of %d calls were answered", n, calls)
	}
	if recorded := d.check(t); recorded != calls {
		t.Errorf("%d of %d calls are in the log", recorded, calls)
	}
}

// check reads the log and returns the number of calls in it.
func (d *durable) check(t *testing.T) int {
	t.Helper()
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
	d.answered.Range(func(mark, _ any) bool {
		if recorded[mark.(string)] == "" {
			missing++
		}
		return true
	})
	if missing > 0 {
		t.Errorf("%d answered calls are not in the log", missing)
	}
	if reached := d.upstream.calls.Load(); int64(len(recorded)) < reached {
		t.Errorf("%d calls reached the upstream, %d are in the log", reached, len(recorded))
	}
	t.Logf("%d answered, %d reached the upstream, %d recorded, %d interrupted", d.count.Load(), d.upstream.calls.Load(), len(recorded), interrupted)
	return len(recorded)
}
