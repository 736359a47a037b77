package gate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/catalogtest"
)

// TestLocksHoldDuringEveryWait checks that a tool that is locked while a call waits is not called, whatever the call
// waits for, and that the refusal is the recorded outcome.
func TestLocksHoldDuringEveryWait(t *testing.T) {
	locks := map[string]struct {
		set  func(*config.Config)
		code problem.Code
	}{
		"denied":      {func(c *config.Config) { c.Servers[0].DisabledTools = []string{"*"} }, problem.ToolLocked},
		"quarantined": {func(c *config.Config) { c.Servers[0].Quarantined = true }, problem.ToolLocked},
		"disabled":    {func(c *config.Config) { c.Servers[0].Enabled = false }, problem.ToolLocked},
		"called destructive": {func(c *config.Config) {
			c.Servers[0].HintOverrides = []config.HintOverride{{Pattern: "*", Hints: tool.Hints{Destructive: tool.True}}}
		}, problem.ServerMismatch},
	}
	builtIn := func(w *world) error {
		_, err := w.gate.Call(w.T.Context(), LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent})
		return err
	}
	own := func(w *world) error {
		_, err := w.relay(w.T.Context(), passed("tools/call", `{"name":"reads","arguments":{"n":1}}`))
		return err
	}
	// Each function makes a call that waits, and sets the lock during the wait.
	waits := map[string]func(w *world, call func(*world) error, lock func()) error{
		"for a place": func(w *world, call func(*world) error, lock func()) error {
			free := make(chan struct{})
			answer := w.AnswerCall
			w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
				<-free
				return session.Reply{Result: json.RawMessage(`{}`)}, nil
			}
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- call(w) }()
			synctest.Wait()
			w.Events, w.Ended, w.AnswerCall = nil, nil, answer
			go func() { second <- call(w) }()
			synctest.Wait()
			lock()
			close(free)
			if err := <-first; err != nil {
				w.T.Errorf("the first call: %v", err)
			}
			err := <-second
			// The two calls end in either order: the slot is free before the outcome of the first call is recorded.
			if i := slices.IndexFunc(w.Ended, func(o activity.Outcome) bool { return string(o.Response) == "{}" }); i >= 0 {
				w.Ended = slices.Delete(w.Ended, i, i+1)
				w.Events = slices.Delete(w.Events, len(w.Events)-1, len(w.Events)) // one of the two ends
			}
			return err
		},
		"for its record, on a slow disk": func(w *world, call func(*world) error, lock func()) error {
			w.OnBegin = func() {
				time.Sleep(recheckAfter)
				lock()
			}
			return call(w)
		},
		"for the connection": func(w *world, call func(*world) error, lock func()) error {
			answer := w.AnswerCall
			w.AnswerCall = func(ctx context.Context, r *session.Request) (session.Reply, error) {
				w.Events = w.Events[:len(w.Events)-1] // the call has not reached the server
				lock()
				if err := r.Permit.Recheck(); err != nil {
					return session.Reply{}, err
				}
				w.AddEvent("call", nil)
				return answer(ctx, r)
			}
			return call(w)
		},
		"for its session": func(w *world, _ func(*world) error, lock func()) error {
			_, err := w.gate.CallFromAggregate(w.T.Context(), ToolCallTarget{ID: tool.ID{Server: "s", Tool: "reads"}, Open: func(ctx context.Context, server string) (session.Session, error) {
				lock()
				s, _, err := w.gate.GatedEndpoint(server).OpenSession(ctx, passed("initialize", `{}`))
				if err != nil { // not reachable any more is also a valid outcome
					return nil, problem.New(problem.ToolLocked, "it cannot be opened", "")
				}
				return s, nil
			}}, passed("tools/call", `{"name":"reads","arguments":{"n":1}}`))
			return err
		},
	}
	for waiting, wait := range waits {
		for entry, call := range map[string]func(*world) error{"built-in": builtIn, "transparent": own} {
			for lock, l := range locks {
				t.Run(waiting+", "+entry+", "+lock, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, func(c *config.Config) {
							c.Servers[0].MaxConcurrent, c.QueueSize, c.QueueTimeout = 1, 1, time.Minute
						}, readsTool)
						err := wait(w, call, func() { w.Reload(l.set) })
						if p := problem.From(err); p == nil || p.Code != l.code {
							t.Errorf("%v, want %s", err, l.code)
						}
						if !slices.Equal(w.Events, []string{"begin", "end"}) || len(w.Ended) != 1 || w.Ended[0].ErrorCode != string(l.code) {
							t.Errorf("%q, %+v", w.Events, w.Ended)
						}
					})
				})
			}
		}
	}
}

// TestTimeoutPausesInSessions checks that a user may take longer to answer than the server may work, in every form of
// the question.
func TestTimeoutPausesInSessions(t *testing.T) {
	question := session.Event{Method: "elicitation/create", ID: json.RawMessage(`7`)}
	for name, ask := range map[string]func(s *gatedSession, r *session.Request){
		"with the call":  func(_ *gatedSession, r *session.Request) { r.Say(question) },
		"on the stream":  func(s *gatedSession, _ *session.Request) { s.Session.(*catalogtest.FakeSession).Emit(question) },
		"no one answers": nil,
	} {
		for _, method := range []string{"tools/call", "prompts/get"} {
			t.Run(name+", "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, func(c *config.Config) { c.CallTimeout = time.Minute }, readsTool)
					opened, _, err := w.gate.GatedEndpoint("s").OpenSession(t.Context(), passed("initialize", `{}`))
					if err != nil {
						t.Fatal(err)
					}
					s := opened.(*gatedSession)
					listening, stop := context.WithCancel(t.Context())
					defer stop()
					go func() { _ = s.Listen(listening, func(session.Event) {}, func() {}) }()
					synctest.Wait()
					answered := make(chan struct{})
					w.AnswerCall = func(ctx context.Context, r *session.Request) (session.Reply, error) {
						if ask != nil {
							ask(s, r)
						}
						select {
						case <-answered:
							return session.Reply{Result: json.RawMessage(`{}`)}, nil
						case <-ctx.Done():
							return session.Reply{}, ctx.Err()
						}
					}
					w.relays.Reply = func(ctx context.Context, r *session.Request) (session.Reply, error) { return w.AnswerCall(ctx, r) }
					time.AfterFunc(5*time.Minute, func() {
						close(answered)
						_ = s.AnswerServerQuestion(t.Context(), json.RawMessage(`7`), session.Reply{Result: json.RawMessage(`{}`)})
					})
					r := passed(method, `{"name":"reads"}`)
					r.Say = func(session.Event) {}
					began := time.Now()
					_, err = s.Do(t.Context(), r)
					if want := map[bool]time.Duration{true: 5 * time.Minute, false: time.Minute}[ask != nil]; time.Since(began) != want || (err == nil) != (ask != nil) {
						t.Errorf("%v after %v", err, time.Since(began))
					}
					time.Sleep(5 * time.Minute)
				})
			})
		}
	}
}

// TestSessionCallsPassTheGate checks that a session's calls go through the gate like all others, and that no other
// message of a session bypasses it.
func TestSessionCallsPassTheGate(t *testing.T) {
	w := newWorld(t, nil, readsTool, destroysTool)
	surface := w.gate.GatedEndpoint("s")
	s, _, err := surface.OpenSession(t.Context(), passed("initialize", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	call := passed("tools/call", `{"name":"reads","arguments":{"n":1}}`)
	if _, err := s.Do(t.Context(), call); err != nil || !slices.Equal(w.Events, []string{"begin", `call {"n":1}`, "end"}) {
		t.Errorf("%v, %q", err, w.Events)
	}
	w.Events = nil
	if err := s.NotifyServer(t.Context(), "tools/call", json.RawMessage(`{"name":"reads"}`)); problem.From(err) == nil || problem.From(err).Code != problem.InvalidRequest || len(w.Events) != 0 {
		t.Errorf("a call without an id: %v, %q", err, w.Events)
	}
	if err := s.NotifyServer(t.Context(), "notifications/initialized", nil); err != nil || len(w.Events) != 1 {
		t.Errorf("%v, %q", err, w.Events)
	}
	foreign := func(context.Context, string) (session.Session, error) {
		s, _, err := w.Harness.Surface("s").OpenSession(t.Context(), call)
		return s, err
	}
	w.Events = nil
	_, err = w.gate.CallFromAggregate(t.Context(), ToolCallTarget{ID: tool.ID{Server: "s", Tool: "reads"}, Open: foreign}, call)
	if problem.From(err) == nil || problem.From(err).Code != problem.Internal || !slices.Equal(w.Events, []string{"begin", "end"}) {
		t.Errorf("a call in a session that the gate did not open: %v, %q", err, w.Events)
	}
	w.Reload(func(c *config.Config) { c.Servers[0].Quarantined = true })
	if err := s.Listen(t.Context(), func(session.Event) {}, func() { t.Error("Listen opened a stream") }); problem.From(err) == nil || problem.From(err).Code != problem.ServerUnavailable {
		t.Errorf("Listen to a quarantined server: %v", err)
	}
	if s, _, err := surface.OpenSession(t.Context(), passed("initialize", `{}`)); s != nil || err == nil {
		t.Errorf("OpenSession with a quarantined server: %v, %v", s, err)
	}
}

// TestProposedServerIsQuarantined checks that the refusal of a call to a proposed server states this and the action
// that the user must take. Any other unknown name is reported as unknown.
func TestProposedServerIsQuarantined(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	w.gate.Proposed = func(name string) bool { return name == "new" }
	_, p := w.call(policy.CallToolRead, "new:x", "{}")
	if p == nil || p.Code != problem.ToolLocked || !strings.Contains(p.Message, "server_quarantined") || !strings.Contains(p.Message, "mcpproxy upstream approve") {
		t.Errorf("%+v", p)
	}
	if _, p := w.call(policy.CallToolRead, "none:x", "{}"); p == nil || p.Code != problem.ServerNotFound {
		t.Errorf("%+v", p)
	}
}
