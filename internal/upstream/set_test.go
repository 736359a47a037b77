//go:build unix

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

// transports runs a test against the zoo over stdio, over HTTP with JSON answers, and over HTTP with event streams.
func transports(t *testing.T, test func(t *testing.T, f *fixture)) {
	specs := map[string]func(t *testing.T) Spec{
		"stdio": func(t *testing.T) Spec { return stdioSpec(t, "zoo", "zoo") },
		"json": func(t *testing.T) Spec {
			return httpSpec(t, "zoo", mcptest.New(mcptest.Options{}, mcptest.SampleTools()...))
		},
		"events": func(t *testing.T) Spec {
			return httpSpec(t, "zoo", mcptest.New(mcptest.Options{Events: true}, mcptest.SampleTools()...))
		},
		"stateless": func(t *testing.T) Spec {
			return httpSpec(t, "zoo", mcptest.New(mcptest.Options{Stateless: true, NoStream: true}, mcptest.SampleTools()...))
		},
	}
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.ApplySpecs([]Spec{spec(t)})
			test(t, f)
		})
	}
}

func TestCallKeepsTheBytes(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, f *fixture) {
		args := `{"big":9007199254740993,"float":1.10,"esc":"\u00e9\/","nested":{"b":1,"a":[]},"line":
			"two"}`
		got := wirejson.Find([]byte(f.must("zoo", "echo", args)), "structuredContent")
		want := args
		if s, _ := f.State("zoo"); s.PID != 0 { // newlines must not split a line
			want = strings.ReplaceAll(args, "\n", " ")
		}
		if string(got) != want {
			t.Errorf("the server returned the arguments\n%s\nwant\n%s", got, want)
		}
	})
}

func TestStateAfterConnect(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, f *fixture) {
		f.untilReady(t, "zoo", 0)
		s, ok := f.State("zoo")
		if !ok || s.ProtocolVersion != mcp.Legacy || s.LastError != "" || s.Restarts != 0 ||
			string(wirejson.Find(s.ServerInfo, "name")) != `"fake"` || s.Capabilities == nil {
			t.Errorf("state is %+v", s)
		}
		if want := len(mcptest.SampleTools()); len(f.listedTools("zoo")) != want {
			t.Errorf("%d tools, want %d", len(f.listedTools("zoo")), want)
		}
	})
}

func TestErrorAnswerIsNoFailure(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, f *fixture) {
		r, err := f.call("zoo", "rpc_error", "{}")
		if err != nil || r.Error == nil || r.Error.Code != -32050 || r.Error.Message != "no luck" || string(r.Error.Data) != `{"why":1}` {
			t.Errorf("reply %+v, error %v", r.Error, err)
		}
		if got := f.must("zoo", "fail", "{}"); !strings.Contains(got, `"isError":true`) {
			t.Errorf("result %s", got)
		}
	})
}

func TestServersRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, f *fixture) {
		if got := f.must("zoo", "ask", "{}"); !strings.Contains(got, `{"ping":{},"sampling":-32601}`) {
			t.Errorf("result %s", got)
		}
	})
}

func TestNotificationsComeInOrderBeforeTheResult(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, f *fixture) {
		for range 20 {
			var got []string
			_, err := f.Call(t.Context(), "zoo", Call{Tool: "notify", Arguments: json.RawMessage(`{"n":5}`),
				Meta:   json.RawMessage(`{"progressToken":"mine","other":[1]}`),
				Notify: func(method string, params json.RawMessage) { got = append(got, method+" "+string(params)) }})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for i := range 5 {
				n := strconv.Itoa(i)
				want = append(want, `notifications/progress {"progressToken":"mine","progress":`+n+`}`,
					`notifications/message {"level":"info","data":"step `+n+`"}`)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("notifications\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

func TestProgressTokensOfCallersMayCollide(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, f *fixture) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				want, got := i%5+1, 0
				_, err := f.Call(t.Context(), "zoo", Call{Tool: "notify", Arguments: json.RawMessage(`{"n":` + strconv.Itoa(want) + `}`),
					Meta: json.RawMessage(`{"progressToken":1}`),
					Notify: func(method string, params json.RawMessage) {
						if method != mcp.Progress {
							return
						}
						got++
						if string(wirejson.Find(params, "progressToken")) != "1" {
							t.Errorf("params %s", params)
						}
					}})
				if err != nil || got != want {
					t.Errorf("%d progress notifications, want %d; error %v", got, want, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestMetaIsPassedOn(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, f *fixture) {
		r, err := f.Call(t.Context(), "zoo", Call{Tool: "params", Meta: json.RawMessage(`{"trace": "x", "n": 9007199254740993}`)})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(wirejson.Find(r.Result, "structuredContent")); got != `{"name":"params","_meta":{"trace": "x", "n": 9007199254740993}}` {
			t.Errorf("params %s", got)
		}
	})
}

func TestLargeResults(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, f *fixture) {
		for _, n := range []int{10_000, 100_000, 10_000_000} {
			if got := len(f.must("zoo", "huge", `{"bytes":`+strconv.Itoa(n)+`}`)); got < n || got > n+100 {
				t.Errorf("a result of %d bytes arrived with %d bytes", n, got)
			}
		}
	})
}

// TestResultsAreUTF8: results are valid UTF-8 for any bytes that the server sends.
func TestResultsAreUTF8(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{
		stdioSpec(t, "stdio", "latin"),
		httpSpec(t, "json", mcptest.New(mcptest.Options{}, latinTool())),
		httpSpec(t, "events", mcptest.New(mcptest.Options{Events: true}, latinTool())),
	})
	for _, server := range []string{"stdio", "json", "events"} {
		for _, pad := range []int{0, (32 << 10)} {
			want := "{\"text\":\"caf\ufffd é\",\"pad\":\"" + strings.Repeat("x", pad) + `"}`
			if got := f.must(server, "latin", `{"pad":`+strconv.Itoa(pad)+`}`); got != want {
				t.Errorf("%s: result %.60q", server, got)
			}
		}
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, f *fixture) {
		f.untilReady(t, "zoo", 0)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := f.Call(ctx, "zoo", Call{Tool: "hang"})
		p := wantCode(t, err, problem.Timeout)
		if p.Detail("server") != "zoo" || p.Hint == "" || time.Since(start) > patience {
			t.Errorf("problem %+v after %v", p, time.Since(start))
		}
		f.must("zoo", "echo", "{}")
	})
}

func TestCancelReachesTheServer(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]mcptest.Options{"json": {}, "events": {Events: true}} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			started := make(chan struct{})
			s := mcptest.New(opt, mcptest.Tool{Definition: mcptest.ToolDefinition("wait"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
				close(started)
				<-c.Context().Done()
				close(ended)
				return nil, mcptest.ErrNoAnswer
			}})
			f := newFixture(t)
			f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-started; cancel() }()
			if _, err := f.Call(ctx, "s", Call{Tool: "wait"}); err != context.Canceled {
				t.Errorf("error %v", err)
			}
			<-ended
		})
	}
	t.Run("stdio", func(t *testing.T) {
		f := newFixture(t)
		f.ApplySpecs([]Spec{{Name: "s", Transport: Stdio, Command: os.Args[0], Env: map[string]string{mcptest.SDKVar: "1"}}})
		f.untilReady(t, "s", 0)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := f.Call(ctx, "s", Call{Tool: "wait", Arguments: json.RawMessage("{}")})
		wantCode(t, err, problem.Timeout)
		f.must("s", "echo", `{"text":"still here"}`)
	})
}

// TestCancelAtRandom cancels calls at random moments. No request stays in flight, and no response reaches another call.
func TestCancelAtRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of calls")
	}
	t.Parallel()
	transports(t, func(t *testing.T, f *fixture) {
		f.untilReady(t, "zoo", 0)
		var wg sync.WaitGroup
		for w := range 10 {
			wg.Go(func() {
				for i := range 100 {
					id := strconv.Itoa(w*1000 + i)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*37%100)*20*time.Microsecond)
					r, err := f.Call(ctx, "zoo", Call{Tool: "slow", Arguments: json.RawMessage(`{"ms":1,"id":` + id + `}`)})
					cancel()
					if err == nil && !bytes.Contains(r.Result, []byte(`"id":`+id+`}`)) {
						t.Errorf("call %s got %s", id, r.Result)
					}
					if err != nil && code(err) != problem.Timeout {
						t.Errorf("call %s: %v", id, err)
					}
				}
			})
		}
		wg.Wait()
		f.must("zoo", "echo", "{}")
		l := f.find("zoo").availability.live.Load().link
		if n := l.Health().InFlight; n != 0 {
			t.Errorf("%d requests are still in flight", n)
		}
	})
}

func TestStartsWhenACallNeedsIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := stdioSpec(t, "zoo", "zoo")
	f.ApplySpecs([]Spec{spec})
	f.must("zoo", "echo", "{}") // immediately, while the server is still connecting
}

func TestUnknownServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs(nil)
	_, err := f.call("nobody", "echo", "{}")
	wantCode(t, err, problem.ServerUnavailable)
	wantCode(t, f.Restart("nobody"), problem.ServerUnavailable)
	if _, ok := f.State("nobody"); ok {
		t.Error("the unknown server has a state")
	}
}

func TestServerThatCannotStart(t *testing.T) {
	t.Parallel()
	bad := map[string]Spec{
		"no command":  {Transport: Stdio, Command: "/nonexistent/server"},
		"not in path": {Transport: Stdio, Command: "no-such-command-here"},
		"exits":       {Transport: Stdio, Command: "sh", Args: []string{"-c", "exit 7"}},
		"refused":     {Transport: HTTP, URL: "http://127.0.0.1:1/mcp"},
		"bad url":     {Transport: HTTP, URL: "://"},
		"bad header":  {Transport: HTTP, URL: "http://127.0.0.1:1/", Headers: map[string]string{"a": "b\r\nc: d"}},
		"transport":   {Transport: "pigeon"},
		"alien":       stdioSpec(t, "", "alien"),
		"endless":     stdioSpec(t, "", "endless"),
	}
	for name, spec := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			spec.Name = "bad"
			f.ApplySpecs([]Spec{spec})
			// An endless list is given up by its size, not after a time. A call waits half a minute for a server, which
			// may be too short on a busy machine for such a list.
			f.until(t, "it has failed", func() bool { return f.last("bad").Phase == Failed })
			_, err := f.Call(t.Context(), "bad", Call{Tool: "echo", Arguments: json.RawMessage("{}")})
			p := wantCode(t, err, problem.ServerUnavailable)
			if p.Detail("state") != string(Failed) || p.Detail("last_error") == nil || p.Detail("retry_at") == nil || p.Hint == "" {
				t.Errorf("problem %+v", p)
			}
			s, _ := f.State("bad")
			t.Log(s.LastError)
			if s.LastError == "" || s.PID != 0 {
				t.Errorf("state %+v", s)
			}
		})
	}
}

func TestMuteServerRunsIntoTheConnectTimeout(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]Spec{
		"stdio": stdioSpec(t, "mute", "mute"),
		"http":  httpSpec(t, "mute", mcptest.New(mcptest.Options{Mute: true})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			spec.ConnectTimeout = 200 * time.Millisecond
			f.ApplySpecs([]Spec{spec})
			_, err := f.call("mute", "echo", "{}")
			p := wantCode(t, err, problem.ServerUnavailable)
			t.Log(p)
			f.until(t, "the timeout is named", func() bool { return strings.Contains(f.last("mute").LastError, "200ms") })
		})
	}
}

// logTail returns the end of a server's log as users see it.
func (f *fixture) logTail(server string, lines int) (shown []string, err error) {
	tail, err := f.LogTail(server, lines)
	for _, l := range tail {
		shown = append(shown, l.String())
	}
	return shown, err
}

func TestNoiseOnStdout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "noisy", "noisy")})
	f.must("noisy", "echo", "{}")
	f.must("noisy", "garbage", "{}")
	lines, err := f.logTail("noisy", 100)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{"[stdout] Server v1.2 is starting", "[stdout] {not json}", "[stdout] Listening on port 3000", "[mcpproxy] connected"} {
		if !strings.Contains(all, want) {
			t.Errorf("the log lacks %q:\n%s", want, all)
		}
	}
}

func TestStderrIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "zoo", "zoo")})
	f.must("zoo", "stderr", `{"bytes":200}`)
	f.ApplySpecs(nil)
	f.until(t, "it has stopped", func() bool { return f.last("zoo").Phase == Stopped })
	lines, err := f.logTail("zoo", 3)
	if err != nil || !strings.Contains(strings.Join(lines, "\n"), "this server has a lot to say") {
		t.Errorf("log %q, error %v", lines, err)
	}
}

func TestPagesAndBadDefinitions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := mcptest.New(mcptest.Options{PageSize: 2}, []mcptest.Tool{
		{Definition: mcptest.ToolDefinition("a")}, {Definition: `{"name":""}`}, {Definition: `17`}, {Definition: mcptest.ToolDefinition("b")},
		{Definition: `{"name":"a","description":"another one"}`}, {Definition: `{"name":"c","inputSchema":"wrong","x":1}`},
	}...)
	f.ApplySpecs([]Spec{httpSpec(t, "s", s), stdioSpec(t, "pages", "pages")})
	f.untilReady(t, "s", 0)
	f.untilReady(t, "pages", 0)
	f.until(t, "tools", func() bool { return true })
	if got := f.listedTools("s"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("tools %q", got)
	}
	if got, want := len(f.listedTools("pages")), len(mcptest.SampleTools()); got != want {
		t.Errorf("%d tools, want %d", got, want)
	}
	if string(f.toolLists("s")[0][2].Raw) != `{"name":"c","inputSchema":"wrong","x":1}` {
		t.Errorf("raw %s", f.toolLists("s")[0][2].Raw)
	}
}

func TestServerWithoutTools(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "toolless", "toolless"), stdioSpec(t, "old", "old")})
	f.untilReady(t, "toolless", 0)
	f.untilReady(t, "old", 0)
	if got := f.toolLists("toolless"); len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("lists %v", got)
	}
	if s, _ := f.State("old"); s.ProtocolVersion != "2024-11-05" {
		t.Errorf("state %+v", s)
	}
}

func TestListChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("one")})
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	f.untilReady(t, "s", 0)
	s.SetTools(mcptest.Tool{Definition: mcptest.ToolDefinition("one")}, mcptest.Tool{Definition: mcptest.ToolDefinition("two")})
	f.until(t, "the new list", func() bool { return slices.Equal(f.lastTools("s"), []string{"one", "two"}) })
}

func TestApplyRestartsOnlyChangedServers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := stdioSpec(t, "a", "zoo"), stdioSpec(t, "b", "zoo")
	f.ApplySpecs([]Spec{a, b})
	pidA, pidB := f.pidOf("a"), f.pidOf("b")
	c := stdioSpec(t, "c", "zoo")
	b.Args = []string{"changed"}
	f.ApplySpecs([]Spec{c, b, a})
	if got := f.pidOf("a"); got != pidA {
		t.Errorf("a has been restarted")
	}
	if got := f.pidOf("b"); got == pidB {
		t.Errorf("b has not been restarted")
	}
	if alive(pidB) {
		t.Errorf("the old process of b is alive")
	}
	pidC := f.pidOf("c")
	f.ApplySpecs([]Spec{a})
	f.until(t, "c has stopped", func() bool { return f.last("c").Phase == Stopped })
	if alive(pidC) {
		t.Errorf("the process of c is alive")
	}
	_, err := f.call("c", "echo", "{}")
	wantCode(t, err, problem.ServerUnavailable)
}

func TestRestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "zoo", "zoo")})
	pid := f.pidOf("zoo")
	if err := f.Restart("zoo"); err != nil {
		t.Fatal(err)
	}
	f.untilReady(t, "zoo", 1)
	if got := f.pidOf("zoo"); got == pid || alive(pid) {
		t.Errorf("it has not been restarted")
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// A request waits until the servers are known.
func TestCallBeforeTheFirstApply(t *testing.T) {
	server := guarded(t, "", http.StatusUnauthorized)
	s := NewSet(Options{}, noClients)
	t.Cleanup(func() { s.Close(context.Background()) })
	called := make(chan error, 1)
	go func() { called <- tryCall(s) }()
	s.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: server.URL}})
	if err := <-called; err != nil {
		t.Error(err)
	}
	if _, err := s.Call(context.Background(), "other", Call{Tool: "t"}); problem.From(err).Code != problem.ServerUnavailable {
		t.Errorf("an unknown server: %v", err)
	}
}

// TestTwoSpecsWithOneName: the first one stays, even if the second one is running.
func TestTwoSpecsWithOneName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	running := stdioSpec(t, "s", "zoo")
	f.ApplySpecs([]Spec{running})
	f.untilReady(t, "s", 0)
	pid := f.pidOf("s")
	changed := running
	changed.Dir = t.TempDir()
	f.ApplySpecs([]Spec{changed, running})
	f.until(t, "the first one runs", func() bool { return f.last("s").PID != pid && f.last("s").Phase == Ready })
} // the fixture waits for the end of all servers

// A request that arrives before the configured servers are known waits for them. If that takes too long, the error says
// so, and does not say that the server is unknown.
func TestRequestsWaitUntilServersAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSet(Options{}, noClients)
		for _, of := range []struct {
			known bool
			want  string
		}{{false, "still being read"}, {true, "is not started"}} {
			if of.known {
				time.AfterFunc(firstApplyTimeout/2, func() { s.ApplySpecs(nil) })
			}
			_, err := s.ServerForRequest(t.Context(), "s")
			if p, ok := errors.AsType[*problem.Problem](err); !ok || p.Code != problem.ServerUnavailable || !strings.HasSuffix(p.Message, of.want) {
				t.Errorf("%+v: %v", of, err)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
