package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/testutil/volume"
)

// event is a received server-sent event.
type event struct {
	id, kind string
	data     []byte
}

// listener follows the events of a daemon. When its stream ends, it reconnects with the last ID that it has read.
type listener struct {
	d      *daemon
	socket bool
	cut    int // disconnects after about this many events; 0 means never
	key    string

	mu     sync.Mutex // guards the fields below
	last   string
	opened int
	events []event
	failed error
}

// listen follows the events until ctx ends.
func (l *listener) listen(ctx context.Context) {
	transport := &http.Transport{}
	if l.socket {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(l.d.dataDir(), "mcpproxy.sock"))
		}
	}
	defer transport.CloseIdleConnections()
	for ctx.Err() == nil {
		if err := l.once(ctx, &http.Client{Transport: transport}); err != nil && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond) // the daemon restarts
		}
	}
}

func (l *listener) once(ctx context.Context, client *http.Client) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+l.d.address+"/api/v1/events", nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-API-Key", l.key)
	if l.last != "" {
		req.Header.Set("Last-Event-ID", l.last)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(resp.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed = fmt.Errorf("status %d: %s", resp.StatusCode, body)
		return l.failed
	}
	l.mu.Lock()
	l.opened++
	l.mu.Unlock()
	in := bufio.NewReader(resp.Body)
	for left := rand.IntN(2*l.cut + 1); l.cut == 0 || left >= 0; {
		e, err := readEvent(in)
		if err != nil {
			return err
		}
		l.mu.Lock()
		if e.id != "" {
			l.last = e.id
		}
		if e.kind != "" {
			l.events = append(l.events, e)
			left--
		}
		l.mu.Unlock()
	}
	return nil
}

func readEvent(in *bufio.Reader) (e event, err error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return event{}, err // ignore an incomplete event
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "":
			if value == "" {
				return e, nil
			}
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = []byte(value)
		}
	}
}

// told returns the started and completed calls that a listener was notified of, by record. It fails if an event came
// twice or out of order.
func (l *listener) told() (started, completed map[string]string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return nil, nil, l.failed
	}
	started, completed = map[string]string{}, map[string]string{}
	place := 0
	for _, e := range l.events {
		if e.kind == "reset" {
			return nil, nil, errors.New("it was told to load again")
		}
		number, _, _ := strings.Cut(e.id, "-")
		seq, err := strconv.Atoi(number)
		if err != nil || seq < place || seq == place && strings.HasPrefix(e.kind, "activity.") {
			return nil, nil, fmt.Errorf("%s has ID %s after position %d", e.kind, e.id, place)
		}
		place = seq
		var r struct {
			ID, Status, Tool_name, Server_name, Operation_type, Reason, Arguments, Response string
		}
		if err := json.Unmarshal(e.data, &r); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", e.data, err)
		}
		switch e.kind {
		case "activity.tool_call.started":
			if r.Status != "pending" {
				return nil, nil, fmt.Errorf("started: %s", e.data)
			}
			started[r.ID] = r.Reason
		case "activity.tool_call.completed":
			completed[r.ID] = r.Status
		default:
			continue
		}
		if r.Server_name != "m" || r.Tool_name != "echo" || r.Operation_type != "write" || r.Reason == "" || r.Arguments+r.Response != "" {
			return nil, nil, fmt.Errorf("completed: %s", e.data)
		}
	}
	return started, completed, nil
}

// Every record of 10,000 calls (fewer in a quick run) is sent exactly once, in order, to each of 20 listeners. One
// listener disconnects and reconnects all the time, one uses the socket, and another one reads nothing. The daemon is
// killed once in between.
func TestEventsAreSentOnce(t *testing.T) {
	t.Parallel()
	const clients, listeners, cuts = 16, 20, 50
	calls := volume.FullOrQuick(10_000, 2_000)
	upstream := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"}}`)
	d := startDaemon(t, upstream.config("m", ""))
	d.awaitTools("m:echo")

	ctx, stop := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	defer listening.Wait()
	defer stop()
	all := make([]*listener, listeners)
	for i := range all {
		all[i] = &listener{d: d, key: d.key(), socket: i == 1}
	}
	all[0].cut = 2 * calls / cuts / 2
	for _, l := range all {
		listening.Go(func() { l.listen(ctx) })
	}
	stalled, err := net.Dial("tcp", d.address)
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Close()
	fmt.Fprintf(stalled, "GET /api/v1/events HTTP/1.1\r\nHost: %s\r\nX-API-Key: %s\r\n\r\n", d.address, d.key())
	eventually(t, "all listeners are connected", func() error {
		for i, l := range all {
			l.mu.Lock()
			last := l.last
			l.mu.Unlock()
			if last == "" {
				return fmt.Errorf("listener %d has no event ID", i)
			}
		}
		return nil
	})

	var made atomic.Int64
	run := func(n int) {
		var working sync.WaitGroup
		for range clients {
			a := d.legacy()
			a.client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
			working.Go(func() {
				defer a.client.CloseIdleConnections()
				for {
					i := made.Add(1)
					if i > int64(n) {
						return
					}
					if i == int64(calls/2) {
						_ = d.cmd.Process.Kill()
					}
					if _, err := a.tryCall("call_tool_write", fmt.Sprintf(`{"name":"m:echo","args":{"n":%d},"intent_reason":"call %d"}`, i, i)); err != nil {
						return // the daemon has ended
					}
				}
			})
		}
		working.Wait()
	}
	run(calls)
	<-d.exited
	d.start()
	d.awaitTools("m:echo")
	made.Store(int64(calls / 2))
	run(calls + 1)

	recorded := map[string]string{}
	for cursor, more := "", true; more; more = cursor != "" {
		_, body := d.rest("GET", "/activity?type=tool_call&limit=1000&cursor="+cursor, "")
		var page struct {
			Activities []struct{ ID, Status string }
			NextCursor string `json:"next_cursor"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Activities {
			recorded[r.ID] = r.Status
		}
		cursor = page.NextCursor
	}
	if len(recorded) < calls-2*clients {
		t.Fatalf("%d calls are recorded", len(recorded))
	}
	for i, l := range all {
		eventually(t, fmt.Sprintf("listener %d got all events", i), func() error {
			started, completed, err := l.told()
			switch {
			case err != nil:
				t.Fatalf("listener %d: %v", i, err)
			case len(started) < len(recorded) || len(completed) < len(recorded):
				return fmt.Errorf("%d and %d of %d", len(started), len(completed), len(recorded))
			case len(started) != len(recorded) || len(completed) != len(recorded):
				t.Fatalf("listener %d: %d started and %d completed, %d are recorded", i, len(started), len(completed), len(recorded))
			}
			for id, status := range recorded {
				if _, ok := started[id]; !ok || completed[id] != status {
					t.Fatalf("listener %d: %s is recorded as %s; events: started %v, completed as %q", i, id, status, ok, completed[id])
				}
			}
			return nil
		})
	}
	if all[0].opened < cuts {
		t.Errorf("the listener that disconnects opened only %d streams", all[0].opened)
	}
	interrupted := 0
	for _, status := range recorded {
		if status == "interrupted" {
			interrupted++
		}
	}
	t.Logf("%d calls, %d interrupted; the listener that disconnects opened %d streams", len(recorded), interrupted, all[0].opened)
}

// The number of listeners is limited, and a stop ends all of them at once.
func TestListenersAreLimited(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers":{}}`)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	open := func(path string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, "GET", "http://"+d.address+"/api/v1/events"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-Key", d.key())
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	var streams []*http.Response
	for range 64 {
		r := open("")
		defer r.Body.Close()
		if e, err := readEvent(bufio.NewReader(r.Body)); err != nil || e.id == "" || e.kind != "" {
			t.Fatalf("the stream begins with %+v, %v", e, err)
		}
		streams = append(streams, r)
	}
	refused := open("")
	body, _ := io.ReadAll(refused.Body)
	refused.Body.Close()
	if refused.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), `"OVERLOADED"`) {
		t.Errorf("listener 65: %d %s", refused.StatusCode, body)
	}
	streams[0].Body.Close()
	eventually(t, "another listener is accepted", func() error {
		r := open("?types=server.changed,config.changed")
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", r.StatusCode)
		}
		return nil
	})
	d.stop()
	for _, r := range streams[1:] { // a stream that outlasts the time for calls is cut off
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Errorf("the stop cut off a stream: %v", err)
		}
	}
}

// Events that are not records arrive too: state changes of servers, tools, decisions and the configuration. A client
// that reconnects with an event ID gets their current state.
func TestStateChangesAreSent(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, `{"name":"echo","inputSchema":{"type":"object"}}`)
	d := startDaemon(t, `{"mcpServers":{}}`)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l := &listener{d: d, key: d.key()}
	var listening sync.WaitGroup
	defer listening.Wait()
	defer stop()
	listening.Go(func() { l.listen(ctx) })
	heard := func(what string, kind string, parts ...string) {
		t.Helper()
		eventually(t, what, func() error {
			l.mu.Lock()
			defer l.mu.Unlock()
			var of []string
			for _, e := range l.events {
				if e.kind != kind {
					continue
				}
				of = append(of, string(e.data))
				if containsAll(string(e.data), parts) {
					l.events = nil
					return nil
				}
			}
			return fmt.Errorf("events: %q", of)
		})
	}
	eventually(t, "the listener is connected", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.last == "" {
			return errors.New("no id")
		}
		return nil
	})
	d.writeConfig(upstream.config("m", ""))
	heard("a server is ready", "server.changed", `{"server":"m","state":"ready"}`)
	d.rest("POST", "/servers/m/tools/echo/disable", "")
	heard("a tool is off", "tool.changed", `{"server":"m"}`)
	d.writeConfig(`{"mcpServers":{"m":7}}`)
	heard("a refused file", "config.changed", `"keys":[]`, `"error":`)
	d.writeConfig(`{"mcpServers":{}}`)
	heard("a removed server", "server.changed", `{"server":"m","state":"removed"}`)
	d.writeConfig(upstream.config("n", ""))
	heard("a key", "config.changed", `"keys":["mcpServers.n"]`)

	d.kill()
	l.mu.Lock()
	l.events = nil
	l.mu.Unlock()
	d.start()
	heard("as it is after a restart", "config.changed", `"keys":[]`)
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}
