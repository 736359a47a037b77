package gate

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/oauth"
)

// fakeLogins are the logins of all servers, with one status.
type fakeLogins struct {
	mu         sync.Mutex
	status     oauth.LoginStatus
	inProgress bool
	requests   int
	changed    chan struct{}
}

func (f *fakeLogins) set(s oauth.LoginStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = s
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeLogins) Status(string) oauth.LoginStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

func (f *fakeLogins) NeedsLogin(server string) bool {
	return f.Status(server).State == oauth.LoginNeeded
}
func (f *fakeLogins) InProgress(string) bool { return f.inProgress }
func (f *fakeLogins) RequestLogin(string)    { f.requests++ }

func (f *fakeLogins) AwaitLogin(ctx context.Context, server string) error {
	for {
		f.mu.Lock()
		works, changed := f.status.State == oauth.LoginWorks, f.changed
		f.mu.Unlock()
		if works {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var (
	loginNeeded   = oauth.LoginStatus{State: oauth.LoginNeeded, Reason: "the authorization server has ended the login"}
	loginRetrying = oauth.LoginStatus{State: oauth.LoginRetrying, Reason: "it is down"}
)

// loginCall is a call of a tool of a server whose login does not work at first.
type loginCall struct {
	*world
	logins *fakeLogins
	sends  int
	told   []string
	lock   func() // called during the wait
}

func newLoginCall(t *testing.T, status oauth.LoginStatus) *loginCall {
	w := &loginCall{world: newWorld(t, func(c *config.Config) { c.Ask.Wait = 30 * time.Second }, readsTool),
		logins: &fakeLogins{status: status, changed: make(chan struct{})}}
	deps := depsOf(w.Harness)
	deps.Logins = w.logins
	w.gate = New(deps)
	answer := w.AnswerCall
	w.AnswerCall = func(ctx context.Context, r *session.Request) (session.Reply, error) {
		w.sends++
		switch w.logins.Status("s").State {
		case oauth.LoginNeeded:
			return session.Reply{}, problem.New(problem.LoginNeeded, "Server 's' is not available", "Ask the user.")
		case oauth.LoginRetrying:
			return session.Reply{}, problem.New(problem.ServerUnavailable, "Server 's' is not available", "").With("login", "retrying")
		}
		return answer(ctx, r)
	}
	return w
}

// run makes the call, and lets the login work after a time; 0 means never.
func (w *loginCall) run(progress bool, after time.Duration) *problem.Problem {
	r := LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent}
	if progress {
		r.Client = &session.Request{Params: json.RawMessage(`{"_meta":{"progressToken":"p"}}`)}
		r.Meta = json.RawMessage(`{"progressToken":"p"}`)
		r.Say = func(e session.Event) { w.told = append(w.told, string(e.Params)) }
	}
	if after > 0 {
		time.AfterFunc(after, func() {
			if w.lock != nil {
				w.lock()
			}
			w.logins.set(oauth.LoginStatus{})
		})
	}
	_, err := w.gate.Call(w.T.Context(), r)
	return problem.From(err)
}

// A call waits for the login if its client can wait, and is sent again after it, with one record.
func TestCallWaitsForLogin(t *testing.T) {
	for _, tt := range []struct {
		name       string
		status     oauth.LoginStatus
		progress   bool
		inProgress bool
		after      time.Duration
		sends      int
		took       time.Duration
		code       problem.Code // "" means success
	}{
		{"the client cannot wait", loginNeeded, false, false, 20 * time.Second, 1, 0, problem.LoginNeeded},
		{"the client has requested progress", loginNeeded, true, false, 20 * time.Second, 2, 20 * time.Second, ""},
		{"the user is logging in", loginNeeded, false, true, 20 * time.Second, 2, 20 * time.Second, ""},
		{"the authorization server is down", loginRetrying, false, false, 20 * time.Second, 2, 20 * time.Second, ""},
		{"no one logs in", loginNeeded, true, false, 0, 1, 30 * time.Second, problem.LoginNeeded},
		{"it stays down", loginRetrying, false, false, 0, 1, 30 * time.Second, problem.ServerUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLoginCall(t, tt.status)
				w.logins.inProgress = tt.inProgress
				began := time.Now()
				p := w.run(tt.progress, tt.after)
				if got := time.Since(began).Round(time.Second); got != tt.took {
					t.Errorf("it took %v, want %v", got, tt.took)
				}
				if w.sends != tt.sends || p == nil != (tt.code == "") || p != nil && p.Code != tt.code {
					t.Errorf("%d sends, %v", w.sends, p)
				}
				if tt.code == problem.LoginNeeded && (!strings.Contains(p.Message, loginNeeded.Reason) || p.Hint == "") {
					t.Errorf("the refusal says %q, %q", p.Message, p.Hint)
				}
				if begins := strings.Count(strings.Join(w.Events, " "), "begin"); begins != 1 || len(w.Ended) != 1 {
					t.Errorf("%d begins, %d ends", begins, len(w.Ended))
				}
				if w.logins.requests == 0 {
					t.Error("the user is not asked")
				}
				wanted := 0
				if tt.progress {
					wanted = 1 + int(tt.took/(10*time.Second)) - 1
				}
				if len(w.told) < wanted || wanted > 0 && !strings.Contains(w.told[0], "mcpproxy login s") {
					t.Errorf("the client is told %q", w.told)
				}
			})
		})
	}
}

// A call that a lock catches while it waits for the login is not sent.
func TestLockDuringLoginWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoginCall(t, loginNeeded)
		w.lock = func() { w.Reload(func(c *config.Config) { c.Servers[0].DisabledTools = []string{"*"} }) }
		if p := w.run(true, 5*time.Second); p == nil || p.Code != problem.ToolLocked || w.sends != 1 {
			t.Errorf("%d sends, %v", w.sends, p)
		}
	})
}

// A server that rejects every token is not called in a loop.
func TestRejectedLoginEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoginCall(t, oauth.LoginStatus{})
		w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
			w.sends++
			return session.Reply{}, problem.New(problem.LoginNeeded, "no", "")
		}
		if p := w.run(true, 0); p == nil || p.Code != problem.LoginNeeded || w.sends != 1+maxLoginRounds {
			t.Errorf("%d sends, %v", w.sends, p)
		}
	})
}

// A call of a server that has not listed its tools, because no one has logged in, waits for the login and the tools.
func TestCallWaitsForToolsAfterLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoginCall(t, loginNeeded)
		w.Reload(func(c *config.Config) {
			c.Servers = append(c.Servers, config.Server{Name: "new", Enabled: true, Trust: config.TrustAuto, Protocol: "http", Launch: config.Launch{URL: "http://127.0.0.1/"}})
		})
		w.Catalog.StateChanged(upstream.State{Name: "new", Phase: upstream.Failed})
		w.Catalog.Publish()
		call := func(say func(session.Event)) *problem.Problem {
			_, err := w.gate.Call(t.Context(), LaneCall{CallTool: policy.CallToolRead, Name: "new:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent,
				Client: &session.Request{Params: json.RawMessage(`{"_meta":{"progressToken":"p"}}`)}, Meta: json.RawMessage(`{"progressToken":"p"}`), Say: say})
			return problem.From(err)
		}
		if p := call(nil); p == nil || p.Code != problem.LoginNeeded || !strings.Contains(p.Message, loginNeeded.Reason) {
			t.Errorf("without progress: %v", p)
		}
		time.AfterFunc(time.Second, func() {
			w.Catalog.StateChanged(upstream.State{Name: "new", Phase: upstream.Connecting})
			w.Catalog.Publish()
			w.logins.set(oauth.LoginStatus{})
			time.Sleep(time.Second)
			w.SetToolsOn("new", readsTool)
		})
		if p := call(func(session.Event) {}); p != nil || w.sends != 1 {
			t.Errorf("%d sends, %v", w.sends, p)
		}
	})
}
