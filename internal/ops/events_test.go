package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/volume"
)

func TestMain(m *testing.M) {
	os.Setenv("MCPPROXY_NO_KEYRING", "1")
	goleak.VerifyTestMain(m)
}

// eventsWorld is a test environment with a hub and a real activity log.
type eventsWorld struct {
	t       testing.TB
	log     *activity.Log
	hub     *EventHub
	running sync.WaitGroup
}

func (*eventsWorld) Servers(context.Context, Caller, Nothing) (ServerViews, error) {
	return ServerViews{Servers: []ServerView{{Name: "m", State: "ready"}}}, nil
}

func newEventsWorld(t testing.TB) *eventsWorld {
	t.Helper()
	dir := t.TempDir()
	w := &eventsWorld{t: t}
	db := store.OpenSQLite(filepath.Join(dir, "db"), catalogtest.Logger)
	var err error
	if w.log, err = activity.Open(activity.Options{Dir: filepath.Join(dir, "spool")}, db); err != nil {
		t.Fatal(err)
	}
	w.hub = NewEventHub(EventHubDeps{Log: w.log, Catalog: catalogtest.New(t, func(*config.Config) {}).Catalog, Servers: w})
	ctx, stop := context.WithCancel(context.Background())
	w.running.Go(func() { w.hub.Run(ctx) })
	t.Cleanup(func() {
		stop()
		w.running.Wait()
		if err := errors.Join(w.log.Close(context.Background()), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// call records the beginning and the end of a call.
func (w *eventsWorld) call(reason string) (id string) {
	w.t.Helper()
	r := activity.Record{Type: activity.ToolCall, ServerName: "m", ToolName: "echo", Arguments: []byte(`{"secret":"argument"}`), SessionID: "s",
		Actor: "agent", ClientName: "c", Metadata: activity.Metadata{Intent: &activity.Intent{OperationType: "write", Reason: reason}}}
	if err := w.log.Begin(&r); err != nil {
		w.t.Fatal(err)
	}
	o := activity.Outcome{Status: activity.Success, Duration: 7 * time.Millisecond, Response: []byte(`{"content":["secret response"]}`)}
	if err := w.log.End(r.ID, o); err != nil {
		w.t.Fatal(err)
	}
	return r.ID
}

// page is a listener. It collects the text of a stream. If block is set, each write waits for it.
type page struct {
	mu    sync.Mutex // guards text
	text  bytes.Buffer
	block chan struct{} // nil if writes do not block
	first chan struct{} // closed at the first write
	once  sync.Once
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	p.text.Write(b)
	p.mu.Unlock()
	p.once.Do(func() { close(p.first) })
	if p.block != nil {
		<-p.block
	}
	return len(b), nil
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// open opens a stream and waits for its first bytes.
func (w *eventsWorld) open(q EventQuery, block chan struct{}) (p *page, leave func()) {
	w.t.Helper()
	stream, err := w.hub.Events(w.t.Context(), Caller{}, q)
	if err != nil {
		w.t.Fatal(err)
	}
	p = &page{block: block, first: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	var listening sync.WaitGroup
	listening.Go(func() {
		if err := stream(ctx, p); err != nil {
			w.t.Error(err)
		}
	})
	<-p.first
	return p, func() { stop(); listening.Wait() }
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("timed out waiting: " + what)
		}
	}
}

// ids returns the IDs of the records in the events of a kind.
func ids(text, kind string) (all []string) {
	for _, block := range strings.Split(text, "\n\n") {
		if _, data, ok := strings.Cut(block, "event: "+kind+"\ndata: {\"id\":\""); ok {
			all = append(all, data[:26])
		}
	}
	return all
}

func lastID(text string) string {
	_, id, _ := strings.Cut(text[strings.LastIndex(text, "id: "):], "id: ")
	id, _, _ = strings.Cut(id, "\n")
	return id
}

func TestRecordEvents(t *testing.T) {
	w := newEventsWorld(t)
	p, leave := w.open(EventQuery{}, nil)
	defer leave()
	id := w.call("because\nevent: reset\ndata: {\"x\":\u2028\x1b}\xff")
	if err := w.log.AppendRefusal(&activity.Record{ToolName: "no", Actor: "agent", Metadata: activity.Metadata{ErrorCode: "INVALID_NAME"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.log.Append(&activity.Record{Type: activity.ServerChange, Status: activity.Failed, ServerName: "m"}); err != nil {
		t.Fatal(err)
	}
	await(t, "the last event", func() bool { return len(ids(p.String(), "activity.recorded")) > 0 })
	if strings.Contains(p.String(), "secret") {
		t.Error("the events contain arguments or responses")
	}
	var kinds []string
	for _, block := range strings.Split(strings.TrimSuffix(p.String(), "\n\n"), "\n\n")[1:] {
		lines := strings.Split(block, "\n")
		if len(lines) != 3 {
			t.Fatalf("%q", block)
		}
		kinds = append(kinds, strings.TrimPrefix(lines[1], "event: "))
		data := strings.TrimPrefix(lines[2], "data: ")
		var r EventRecord
		in := json.NewDecoder(strings.NewReader(data))
		in.DisallowUnknownFields()
		if err := in.Decode(&r); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		var again bytes.Buffer
		out := json.NewEncoder(&again)
		out.SetEscapeHTML(false)
		if err := out.Encode(r); err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal([]byte(data), &a) != nil || json.Unmarshal(again.Bytes(), &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("got %s, the type encodes %s", data, again.String())
		}
		if r.Type == activity.ToolCall && (r.ID != id || r.ServerName != "m" || r.OperationType != "write" || r.SessionID != "s" || r.ClientName != "c" || r.Actor != "agent") {
			t.Errorf("got %s", data)
		}
	}
	want := []string{"activity.tool_call.started", "activity.tool_call.completed", "activity.policy_decision", "activity.recorded"}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("got the kinds %q", kinds)
	}
}

// A listener that resumes after any event gets the following events of its kinds and nothing else.
func TestResumeFromAnyEvent(t *testing.T) {
	w := newEventsWorld(t)
	p, leave := w.open(EventQuery{}, nil)
	defer leave()
	var begun []string
	for range volume.FullOrQuick(300, 100) {
		begun = append(begun, w.call("r"))
	}
	await(t, "all calls", func() bool { return len(ids(p.String(), "activity.tool_call.completed")) == len(begun) })
	blocks := strings.Split(strings.TrimSuffix(p.String(), "\n\n"), "\n\n")
	random := rand.New(rand.NewPCG(1, 2))
	for range volume.FullOrQuick(50, 20) {
		i := random.IntN(len(blocks))
		rest := strings.Join(blocks[i+1:], "\n\n")
		for _, q := range []EventQuery{{}, {Types: []EventKind{EventCallCompleted, EventConfigChanged}}} {
			q.LastEventID = lastID(blocks[i])
			again, leave := w.open(q, nil)
			await(t, "everything since", func() bool {
				text := again.String()
				return strings.Contains(text, "event: config.changed") &&
					len(ids(text, "activity.tool_call.completed")) >= len(ids(rest, "activity.tool_call.completed"))
			})
			leave()
			for _, kind := range []EventKind{EventCallStarted, EventCallCompleted} {
				want := ids(rest, string(kind))
				if len(q.Types) > 0 && kind == EventCallStarted {
					want = nil
				}
				if got := ids(again.String(), string(kind)); !reflect.DeepEqual(got, want) {
					t.Fatalf("after %s: %d of %s, want %d", q.LastEventID, len(got), kind, len(want))
				}
			}
			if strings.Contains(again.String(), "event: reset") || strings.Contains(again.String(), "event: server.changed") != (len(q.Types) == 0) {
				t.Fatalf("after %s: %.300s", q.LastEventID, again)
			}
		}
	}
	for _, id := range []string{"nonsense", "1-0011223344556677", "100000-0011223344556677"} {
		again, leave := w.open(EventQuery{LastEventID: id, Types: []EventKind{EventCallStarted}}, nil)
		if !strings.Contains(again.String(), "event: reset\n") {
			t.Errorf("after %s: %s", id, again)
		}
		leave()
	}
}

// A listener that does not read delays no other listener. When it reads again, it gets all events, even those that are
// no longer buffered.
func TestListenerThatDoesNotRead(t *testing.T) {
	w := newEventsWorld(t)
	other, leaveOther := w.open(EventQuery{}, nil)
	defer leaveOther()
	block := make(chan struct{})
	slow, leave := w.open(EventQuery{}, block)
	defer leave()
	var begun []string
	for n := 0; n < 3*maxBufferBytes/2; n += 2 * 900 {
		begun = append(begun, w.call(strings.Repeat("because ", 100)))
	}
	await(t, "the other is told", func() bool { return len(ids(other.String(), "activity.tool_call.completed")) == len(begun) })
	if got := slow.String(); strings.Contains(got, "event:") {
		t.Fatalf("the blocked listener has read %.200s", got)
	}
	w.hub.mu.Lock()
	kept := w.hub.buffer.bytes
	w.hub.mu.Unlock()
	if kept > maxBufferBytes {
		t.Errorf("%d bytes are buffered", kept)
	}
	close(block)
	await(t, "it is told everything", func() bool { return len(ids(slow.String(), "activity.tool_call.completed")) >= len(begun) })
	for _, kind := range []string{"activity.tool_call.started", "activity.tool_call.completed"} {
		if got := ids(slow.String(), kind); !reflect.DeepEqual(got, begun) {
			t.Errorf("%s: got %d, want %d in order", kind, len(got), len(begun))
		}
	}
}

func TestTheHubCloses(t *testing.T) {
	w := newEventsWorld(t)
	_, leave := w.open(EventQuery{}, nil)
	w.hub.Close()
	leave()
	stream, err := w.hub.Events(t.Context(), Caller{}, EventQuery{})
	if err == nil {
		err = stream(t.Context(), io.Discard)
	}
	if p := problem.From(err); p.Code != problem.Overloaded {
		t.Errorf("Events after Close: %v", err)
	}
}

// BenchmarkBeginEnd measures the cost of recording a call with and without listeners.
func BenchmarkBeginEnd(b *testing.B) {
	for _, listeners := range []int{0, 1, 20} {
		b.Run(fmt.Sprint("listeners=", listeners), func(b *testing.B) {
			w := newEventsWorld(b)
			for range listeners {
				ctx, stop := context.WithCancel(context.Background())
				stream, _ := w.hub.Events(ctx, Caller{}, EventQuery{})
				var listening sync.WaitGroup
				listening.Go(func() { _ = stream(ctx, io.Discard) })
				defer listening.Wait()
				defer stop()
			}
			b.ReportAllocs()
			for b.Loop() {
				w.call("The user asked to file what they found")
			}
		})
	}
}

// held contains the resource counts of the process.
type held struct {
	goroutines, descriptors int
	heap                    uint64
}

// holds counts the resources of the process after two garbage collections. The second one empties the pools.
func holds() held {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	now := held{runtime.NumGoroutine(), 0, m.HeapAlloc}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil { // exists only on Linux
		now.descriptors = len(open)
	}
	return now
}

func (h held) moreThan(before held) bool {
	return h.goroutines > before.goroutines || h.descriptors > before.descriptors || h.heap > before.heap+2<<20
}

// TestTimersForADay simulates a day with a log, a database and a listener, and with one call and one refusal per
// minute. At the end, the process uses no more memory than after the second hour.
func TestTimersForADay(t *testing.T) {
	if testing.Short() {
		t.Skip("it accesses the disk 86,400 times")
	}
	synctest.Test(t, func(t *testing.T) {
		w := newEventsWorld(t)
		p, leave := w.open(EventQuery{}, nil)
		defer leave()
		var before held
		told := 0
		hours := volume.FullOrQuick(24, 3)
		for hour := range hours {
			for range 60 {
				time.Sleep(time.Minute)
				w.call("because")
				if err := w.log.AppendRefusal(&activity.Record{ToolName: "no", Actor: "agent"}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(30 * time.Second)
			synctest.Wait()
			p.mu.Lock()
			told += len(ids(p.text.String(), "activity.tool_call.completed"))
			p.text = bytes.Buffer{}
			p.mu.Unlock()
			now := holds()
			for try := 0; hour > 1 && try < 10 && now.moreThan(before); try++ { // waits for the concurrent work of the runtime
				now = holds()
			}
			switch {
			case hour == 1:
				before = now
			case hour > 1 && now.moreThan(before):
				t.Fatalf("after hour %d: %+v, after the second: %+v", hour+1, now, before)
			}
		}
		if told != hours*60 {
			t.Errorf("the listener got %d of %d calls", told, hours*60)
		}
	})
}

// An observer gets the entries of the log, whether or not there are listeners. For it alone, nothing is encoded.
func TestObserver(t *testing.T) {
	w := newEventsWorld(t)
	var mu sync.Mutex // guards seen and remote
	seen, remote := map[string]int{}, 0
	w.hub.Observe(func(e *activity.EntryEvent, other bool) {
		mu.Lock()
		defer mu.Unlock()
		if other {
			remote++
			return
		}
		seen[e.ID]++
	})
	observed := func(id string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return seen[id] == 2 // the beginning and the end
		}
	}
	await(t, "the log is followed", func() bool {
		w.call("r")
		mu.Lock()
		defer mu.Unlock()
		return len(seen) > 0
	})
	alone := w.call("r")
	await(t, "the call is observed", observed(alone))
	w.hub.mu.Lock()
	if w.hub.buffer.bytes > 0 || len(w.hub.buffer.chunks) > 0 {
		t.Error("events are collected without a listener")
	}
	w.hub.mu.Unlock()
	p, leave := w.open(EventQuery{}, nil)
	both := w.call("r")
	await(t, "the call is observed", observed(both))
	await(t, "the listener is told", func() bool { return slices.Contains(ids(p.String(), "activity.tool_call.completed"), both) })
	if strings.Contains(p.String(), alone) {
		t.Error("the listener gets an earlier call")
	}
	leave()
	after := w.call("r")
	await(t, "the call is observed", observed(after))
	w.hub.AddRemoteEntries([]activity.EntryEvent{{ID: "x"}}, false)
	mu.Lock()
	defer mu.Unlock()
	if remote != 1 {
		t.Errorf("%d entries of other instances", remote)
	}
}
