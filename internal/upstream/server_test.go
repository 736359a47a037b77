//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/volume"
)

// fakeLink is a link in memory. It answers immediately unless hang is set.
type fakeLink struct {
	*session.EndSignal
	mu      sync.Mutex
	asked   map[string]int
	hang    bool          // it answers nothing
	silent  bool          // it does not announce changed tools
	deaf    bool          // its notifications are lost
	version int           // version of its tools
	slow    time.Duration // duration of a list of tools
	takes   time.Duration // duration of a call
	broken  bool          // the tools cannot be listed
	heard   atomic.Uint64
	flying  atomic.Int64
}

func newFakeLink() *fakeLink {
	return &fakeLink{EndSignal: session.NewEndSignal(), asked: map[string]int{}}
}

func (l *fakeLink) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	l.mu.Lock()
	l.asked[r.Method]++
	hang, version, silent, slow, takes, broken := l.hang, l.version, l.silent, l.slow, l.takes, l.broken
	l.mu.Unlock()
	if err := l.Cause(); err != nil {
		return session.Reply{}, &session.NotSentError{Cause: err}
	}
	if hang {
		l.flying.Add(1)
		defer l.flying.Add(-1)
		select {
		case <-ctx.Done():
			return session.Reply{}, ctx.Err()
		case <-l.Done():
			return session.Reply{}, &transport.ConnectionLostError{Reason: l.Cause()}
		}
	}
	l.heard.Add(1)
	switch r.Method {
	case mcp.CallTool:
		l.flying.Add(1)
		defer l.flying.Add(-1)
		select {
		case <-time.After(takes):
		case <-l.Done():
			return session.Reply{}, &transport.ConnectionLostError{Reason: l.Cause()}
		}
	case mcp.Initialize:
		return session.Reply{Result: fmt.Appendf(nil, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":%t}}}`, !silent)}, nil
	case mcp.ListTools:
		select {
		case <-time.After(slow):
		case <-l.Done():
			return session.Reply{}, &transport.ConnectionLostError{Reason: l.Cause()}
		case <-ctx.Done():
			return session.Reply{}, ctx.Err()
		}
		if broken {
			return session.Reply{Error: &wirejson.RPCError{Code: wirejson.CodeInternal}}, nil
		}
		return session.Reply{Result: fmt.Appendf(nil, `{"tools":[{"name":"t%d"}]}`, version)}, nil
	}
	return session.Reply{Result: json.RawMessage("{}")}, nil
}

func (l *fakeLink) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *fakeLink) count(method string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[method]
}

func (l *fakeLink) NotifyServer(context.Context, string, json.RawMessage) error { return nil }
func (l *fakeLink) AnswerServerQuestion(context.Context, json.RawMessage, session.Reply) error {
	return nil
}
func (l *fakeLink) Listen(context.Context, func(session.Event), func()) error { return nil }
func (l *fakeLink) OpenNotificationStream(context.Context)                    {}
func (l *fakeLink) SetVersion(string)                                         {}
func (l *fakeLink) MarkStartComplete()                                        {}
func (l *fakeLink) HasSessionID() bool                                        { return false }
func (l *fakeLink) CloseIdle(time.Time)                                       {}
func (l *fakeLink) Stop(<-chan struct{})                                      { l.Signal(transport.ErrStopped) }
func (l *fakeLink) Health() transport.LinkHealth {
	l.mu.Lock()
	defer l.mu.Unlock()
	return transport.LinkHealth{Received: l.heard.Load(), InFlight: int(l.flying.Load()), Listening: !l.deaf}
}

// bench is one supervised server with fake links in fake time.
type bench struct {
	*Set
	*watcher
	sv    *Server
	mu    sync.Mutex
	opens []time.Time
	links []*fakeLink
	fail  error // the error of opening a link
	shape func(*fakeLink)
}

// prepare applies change to every link that is opened after it.
func (b *bench) prepare(change func(*fakeLink)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shape = change
}

func (b *bench) link() *fakeLink {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.links[len(b.links)-1]
}

func (b *bench) tries() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.opens)
}

// lastPause returns the time between the last two attempts.
func (b *bench) lastPause() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.opens)
	return b.opens[n-1].Sub(b.opens[n-2])
}

func (b *bench) setFail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

// supervise runs test in a synctest bubble with a newly started server.
func supervise(t *testing.T, fail error, test func(t *testing.T, b *bench)) {
	superviseSpec(t, Spec{Name: "s", Transport: Stdio, ConnectTimeout: 20 * time.Second}, fail, test)
}

func superviseSpec(t *testing.T, spec Spec, fail error, test func(t *testing.T, b *bench)) {
	superviseFor(t, nil, spec, fail, test)
}

// superviseFor is superviseSpec for a server with clients.
func superviseFor(t *testing.T, clients ServerClients, spec Spec, fail error, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{watcher: newWatcher(), fail: fail}
		b.Set = NewSet(Options{Observer: b.watcher}, noClients)
		b.Set.sharedState.starts = nil
		sv := newServer(spec, &b.Set.sharedState, noClients)
		if clients != nil {
			sv.Clients = clients
		}
		sv.open = func() (transport.Link, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.opens = append(b.opens, time.Now())
			if b.fail != nil {
				return nil, b.fail
			}
			b.links = append(b.links, newFakeLink())
			if b.shape != nil {
				b.shape(b.links[len(b.links)-1])
			}
			return b.links[len(b.links)-1], nil
		}
		b.sv = sv
		ctx, cancel := context.WithCancel(t.Context())
		sv.cancel = cancel
		b.Set.servers.Store(&map[string]*Server{"s": sv})
		b.Set.wg.Go(func() { sv.supervise(ctx, nil) })
		synctest.Wait()
		test(t, b)
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// sleep lets fake time pass.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestBackoffGrowsForEver(t *testing.T) {
	supervise(t, errors.New("no"), func(t *testing.T, b *bench) {
		sleep(2 * time.Hour)
		var pauses []time.Duration
		for i := 1; i < len(b.opens); i++ {
			pauses = append(pauses, b.opens[i].Sub(b.opens[i-1]))
		}
		for i, p := range pauses {
			most := min(minBackoff<<min(i, 20), maxBackoff)
			if p > most || p < most/2 {
				t.Errorf("pause %d is %v, want %v to %v", i, p, most/2, most)
			}
		}
		if n := len(pauses); n < 30 || n > 70 {
			t.Errorf("%d tries in two hours", n)
		}
	})
}

func TestCallReconnectsAtOnce(t *testing.T) {
	supervise(t, errors.New("no"), func(t *testing.T, b *bench) {
		sleep(time.Hour) // the pauses are now minutes
		b.setFail(nil)
		start := time.Now()
		if _, err := b.Call(t.Context(), "s", Call{Tool: "t"}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

func TestDemandedTriesAreLimited(t *testing.T) {
	supervise(t, errors.New("no"), func(t *testing.T, b *bench) {
		sleep(time.Hour)
		before, start := b.tries(), time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range 10 {
					_, err := b.Call(t.Context(), "s", Call{Tool: "t"})
					wantCode(t, err, problem.ServerUnavailable)
				}
			})
		}
		wg.Wait()
		tries, took := b.tries()-before, time.Since(start)
		if limit := int(took/demandPause) + 1; tries > limit || took > 15*time.Second {
			t.Errorf("%d tries in %v", tries, took)
		}
	})
}

func TestCallWaitsAtMostTheConnectTimeout(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		b.link().Signal(errors.New("gone"))
		block := make(chan struct{})
		b.sv.open = func() (transport.Link, error) { <-block; return nil, errors.New("late") }
		start := time.Now()
		_, err := b.Call(t.Context(), "s", Call{Tool: "t"})
		p := wantCode(t, err, problem.ServerUnavailable)
		if took := time.Since(start); took != 20*time.Second || p.Detail("state") != string(Connecting) {
			t.Errorf("it took %v: %v", took, p)
		}
		close(block)
	})
}

func TestLostConnectionIsReplacedSoon(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		b.link().Signal(problem.TrustedTextErrorf("gone"))
		sleep(minBackoff)
		s, _ := b.State("s")
		if s.Phase != Ready || s.Restarts != 1 || s.LastError != "gone" {
			t.Errorf("state %+v", s)
		}
	})
}

func TestStableConnectionResetsTheBackoff(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		for range 12 {
			b.link().Signal(errors.New("gone"))
			synctest.Wait()
			for s, _ := b.State("s"); s.Phase != Ready; s, _ = b.State("s") {
				sleep(time.Second)
			}
		}
		if p := b.lastPause(); p < time.Minute {
			t.Errorf("a server whose connection is lost repeatedly is tried after %v", p)
		}
		sleep(stableTime)
		b.link().Signal(errors.New("gone"))
		sleep(minBackoff)
		if s, _ := b.State("s"); s.Phase != Ready {
			t.Errorf("state %+v", s)
		}
	})
}

func TestRelistIsCoalescedAndNeverLost(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		start := time.Now()
		l := b.link()
		changes := volume.FullOrQuick(10_000, 2_000) // 100 per second
		for i := range changes {
			l.set(func() { l.version = i })
			b.sv.ReportReceiver().ToolsChanged()
			time.Sleep(10 * time.Millisecond)
		}
		lists := l.count(mcp.ListTools) - 1
		if limit := int(time.Since(start)/relistPause) + 1; lists > limit || lists < limit-2 {
			t.Errorf("%d lists, want about %d", lists, limit)
		}
		sleep(relistPause)
		if got := b.lastTools("s"); got[0] != fmt.Sprint("t", changes-1) {
			t.Errorf("tools %q: the last change is lost", got)
		}
		before := l.count(mcp.ListTools)
		sleep(time.Minute)
		if got := l.count(mcp.ListTools); got != before {
			t.Errorf("%d lists without a change", got-before)
		}
	})
}

func TestChangeDuringAListIsSeen(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		l := b.link()
		l.set(func() { l.hang = true })
		b.sv.ReportReceiver().ToolsChanged()
		sleep(time.Second) // the list hangs
		b.sv.ReportReceiver().ToolsChanged()
		sleep(time.Second)
		l.set(func() { l.hang = false })
		sleep(2 * defaultConnectTime)
		if got := l.count(mcp.ListTools); got != 3 {
			t.Errorf("%d lists, want three: the first one, the one that hung, and another", got)
		}
		if s, _ := b.State("s"); s.Phase != Ready {
			t.Errorf("state %+v", s)
		}
	})
}

func TestPing(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		l := b.link()
		sleep(10*pingPause + time.Second)
		if n := l.count(mcp.Ping); n < 8 || n > 10 {
			t.Errorf("%d pings in a silence of ten pauses", n)
		}
		before := l.count(mcp.Ping)
		for range 100 { // the server sends something all the time
			l.heard.Add(1)
			sleep(pingPause / 10)
		}
		if n := l.count(mcp.Ping); n > before {
			t.Errorf("%d pings although the server sends something", n-before)
		}
		l.set(func() { l.hang = true })
		sleep(pingPause*2 + pingTime + minBackoff)
		s, _ := b.State("s")
		if s.Phase != Ready || s.Restarts != 1 || s.LastError == "" {
			t.Errorf("state %+v", s)
		}
	})
}

// TestBusyServerIsNotPinged: a server that works on one call for minutes and can do nothing else gets no pings.
func TestBusyServerIsNotPinged(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		l := b.link()
		l.set(func() { l.hang = true })
		ctx, cancel := context.WithTimeout(t.Context(), 20*pingPause-time.Second) // not at a multiple of pingPause
		defer cancel()
		_, err := b.Call(ctx, "s", Call{Tool: "t"})
		wantCode(t, err, problem.Timeout)
		if n := l.count(mcp.Ping); n > 0 || l.Cause() != nil {
			t.Errorf("%d pings, cause %v", n, l.Cause())
		}
	})
}

func TestDoubtIsSettledByPing(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		l := b.link()
		for range 1000 {
			b.sv.ReportReceiver().ConnectionDoubtful()
			sleep(10 * time.Millisecond)
		}
		if n := l.count(mcp.Ping); n < 5 || n > 11 {
			t.Errorf("%d pings in ten seconds of a suspect connection", n)
		}
	})
}

func TestRestartDoesNotWait(t *testing.T) {
	t.Run("ready", func(t *testing.T) {
		supervise(t, nil, func(t *testing.T, b *bench) {
			b.Restart("s")
			synctest.Wait()
			if s, _ := b.State("s"); s.Phase != Ready || s.Restarts != 1 || b.tries() != 2 {
				t.Errorf("state %+v after %d tries", s, b.tries())
			}
		})
	})
	t.Run("waiting", func(t *testing.T) {
		supervise(t, errors.New("no"), func(t *testing.T, b *bench) {
			sleep(time.Hour)
			b.setFail(nil)
			b.Restart("s")
			synctest.Wait()
			if s, _ := b.State("s"); s.Phase != Ready || s.Restarts != 0 {
				t.Errorf("state %+v", s)
			}
		})
	})
}

func TestPhasesInOrder(t *testing.T) {
	supervise(t, errors.New("no"), func(t *testing.T, b *bench) {
		b.setFail(nil)
		sleep(time.Second)
		b.link().Signal(errors.New("gone"))
		sleep(2 * minBackoff) // longer than the pause after the second failure
		b.sv.cancel()
		synctest.Wait()
		var got []Phase
		for _, s := range b.states["s"] {
			got = append(got, s.Phase)
		}
		want := []Phase{Connecting, Failed, Connecting, Ready, Failed, Connecting, Ready, Stopped}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("phases %v, want %v", got, want)
		}
		_, err := b.Call(t.Context(), "s", Call{Tool: "t"})
		if p := wantCode(t, err, problem.ServerUnavailable); p.Detail("state") != string(Stopped) {
			t.Errorf("problem %+v", p)
		}
	})
}

// TestUnsentCallIsSentAgain: a call that was not sent on a lost connection is sent on the next one.
func TestUnsentCallIsSentAgain(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		first := b.link()
		first.Signal(errors.New("gone"))
		if _, err := b.Call(t.Context(), "s", Call{Tool: "t"}); err != nil {
			t.Fatal(err)
		}
		if n := b.link().count(mcp.CallTool); n != 1 || b.link() == first {
			t.Errorf("%d calls", n)
		}
	})
}

func TestPendingCallsFailWithTheConnection(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		l := b.link()
		l.set(func() { l.hang = true })
		done := make(chan error)
		go func() {
			_, err := b.Call(t.Context(), "s", Call{Tool: "t"})
			done <- err
		}()
		synctest.Wait()
		l.Signal(errors.New("the process ended: signal: killed"))
		wantCode(t, <-done, problem.UpstreamError)
	})
}
