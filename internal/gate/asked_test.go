package gate

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// asking is a world in which calls need approval, with a real database. Its configuration is the text of a file.
type asking struct {
	*world
	asks   *store.ApprovalQuestionStore
	holder *ask.Waiter
	parse  func(text string) *config.Config
	dir    string
	now    func() time.Time
	close  func()
}

// textWith returns a configuration file with the server s and the additional text more.
func textWith(more string) string {
	return `{"mcpServers": {"s": {"command": "x", "trust": "auto"}}, ` + more + `}`
}

func newAsking(t testing.TB, text string, definitions ...string) *asking {
	t.Helper()
	a := &asking{dir: t.TempDir(), now: time.Now}
	file := filepath.Join(a.dir, "mcp_config.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := config.OpenLiveConfig(file, config.Options{DataDir: a.dir})
	if err != nil {
		t.Fatal(err)
	}
	a.parse = func(text string) *config.Config {
		c, found := live.CheckText([]byte(text))
		if c == nil {
			t.Fatalf("%s: %+v", text, found)
		}
		return c
	}
	a.world = newWorld(t, nil, definitions...)
	a.use(text)
	a.open()
	t.Cleanup(func() { a.close() })
	return a
}

// use applies a configuration text.
func (a *asking) use(text string) {
	a.T.Helper()
	next := a.parse(text)
	a.Reload(func(c *config.Config) { *c = *next })
}

// hurry makes calls wait for a user only for a moment, which no configuration file can express.
func (a *asking) hurry() { a.Reload(func(c *config.Config) { c.Ask.Wait = time.Nanosecond }) }

// open opens the database, and creates a gate that uses it.
func (a *asking) open() {
	db := store.OpenSQLite(filepath.Join(a.dir, "mcpproxy.db"), nil)
	a.close = func() { _ = db.Close() }
	a.asks = db.ApprovalQuestions()
	a.holder = ask.NewWaiter(a.asks, nil, func() time.Time { return a.now() }, func() {})
	a.gate.Ask, a.gate.Answer = a.holder, a.byForm
}

// byForm stores the answer of a client's form, as package ops does.
func (a *asking) byForm(ctx context.Context, by auth.Caller, id string, k ask.CallKey, given ask.Answer) error {
	q, err := a.asks.LoadQuestion(ctx, id)
	switch {
	case err != nil:
		return err
	case q.Key != k, given.Approve && !a.Config().ClientMayApprove(by.Actor.Name):
		return problem.New(problem.Forbidden, "not by this client", "")
	}
	given.By, given.Via, given.At = by.Actor.String(), ask.ByForm, a.now()
	if q, err = a.asks.AnswerQuestion(ctx, id, given); err == nil {
		a.holder.WakeCalls(q.Key)
	}
	return err
}

// answer answers the one waiting question.
func (a *asking) answer(approve bool) ask.Question {
	a.T.Helper()
	for {
		all, err := a.asks.WaitingQuestions(a.T.Context(), a.now())
		if err != nil {
			a.T.Fatal(err)
		}
		if len(all) == 0 { // no question yet
			runtime.Gosched()
			continue
		}
		q, err := a.asks.AnswerQuestion(a.T.Context(), all[0].ID, ask.Answer{Approve: approve, Why: "Not now.", By: "admin", Via: "cli", At: a.now()})
		if err != nil {
			a.T.Fatal(err)
		}
		a.holder.WakeCalls(q.Key)
		return q
	}
}

const atOnce = `"ask": {"write": "ask", "destructive": "ask", "wait": "1s"}`

// asked counts the calls that have reached a server.
func (a *asking) asked() (n int) {
	for _, e := range a.Events {
		if strings.HasPrefix(e, "call ") {
			n++
		}
	}
	return n
}

func wantCode(t *testing.T, what string, err error, code problem.Code) *problem.Problem {
	t.Helper()
	p, _ := errors.AsType[*problem.Problem](err)
	if p == nil || p.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
	return p
}

// destroy calls the destructive tool of s.
func (a *asking) destroy(ctx context.Context, args string) error {
	_, err := a.gate.Call(ctx, LaneCall{CallTool: policy.CallToolDestructive, Name: "s:destroys", Args: json.RawMessage(args), Caller: anAgent,
		Declared: reasoned("intent_reason", "to clean up")})
	return err
}

func reasoned(name, value string) (d policy.DeclaredIntent) {
	d.AddParameter(name, []byte(`"`+value+`"`))
	return d
}

// TestCallIsHeldUntilApproved checks that a held call has one record and does not reach the server. The repeated call
// continues with the same question, and its approval can be used once.
func TestCallIsHeldUntilApproved(t *testing.T) {
	t.Parallel()
	a := newAsking(t, textWith(atOnce), destroysTool)
	began := time.Now()
	p := wantCode(t, "no one answers", a.destroy(t.Context(), `{"x": 1, "password": "correct horse"}`), problem.ApprovalPending)
	if took := time.Since(began); took < time.Second {
		t.Errorf("the call waited for %v", took)
	}
	id, _ := p.Detail("approval_id").(string)
	if id == "" || p.Hint != "Ask the user; then call again with the same arguments." || a.asked() != 0 {
		t.Errorf("%+v, asked: %q", p, a.Events)
	}
	if len(a.Begun) != 1 || len(a.Ended) != 1 || len(a.Appended) != 0 {
		t.Fatalf("events: %q", a.Events)
	}
	if r, o := a.Begun[0], a.Ended[0]; r.Type != activity.ToolCall || o.Status != activity.Held || o.Check != "" || r.Metadata.Decision.Outcome != activity.Asked || r.Metadata.Decision.Check != "ask" {
		t.Errorf("%+v, %+v", r.Metadata.Decision, o)
	}
	all, err := a.asks.WaitingQuestions(t.Context(), time.Now())
	if err != nil || len(all) != 1 {
		t.Fatalf("%d questions wait, %v", len(all), err)
	}
	if q := all[0]; q.ID != id || q.Lane != "destructive" || q.Rule != "ask.destructive" || q.Because != "the tool's hints declare it" || q.Reason != "to clean up" || q.Record != "record" ||
		strings.Contains(string(q.Shown), "correct horse") || !strings.Contains(string(q.Shown), `"x"`) || q.Actor != "agent" || q.Source != "mcp" {
		t.Errorf("the question is %+v, %s", q, q.Shown)
	}
	done := make(chan error, 1)
	go func() { done <- a.destroy(t.Context(), `{"password":"correct horse","x":1.0}`) }() // the same arguments in another spelling
	a.waits(1)
	a.answer(true)
	if err := <-done; err != nil || a.asked() != 1 {
		t.Errorf("approved: %v, %q", err, a.Events)
	}
	if r := a.Begun[1]; r.Metadata.Decision.Approval != id || r.ParentID != "record" || r.Metadata.Decision.Outcome != activity.Allowed || r.Metadata.Decision.Check != "" {
		t.Errorf("record: %+v, %+v", r, r.Metadata.Decision)
	}
	p = wantCode(t, "once more", a.destroy(t.Context(), `{"password":"correct horse","x":1.0}`), problem.ApprovalPending)
	if p.Detail("approval_id") == id || a.asked() != 1 {
		t.Errorf("the approval was accepted twice: %+v, %q", p, a.Events)
	}
	a.answer(false)
	p = wantCode(t, "denied", a.destroy(t.Context(), `{"password":"correct horse","x":1.0}`), problem.ApprovalDenied)
	if !strings.Contains(p.Message, "Not now.") || a.asked() != 1 {
		t.Errorf("%+v", p)
	}
	if n := len(a.Appended); n != 1 || a.Appended[0].Metadata.Decision.Outcome != activity.Refused || a.Appended[0].Metadata.Decision.Check != "ask" || a.Appended[0].ParentID == "" {
		t.Errorf("records: %+v", a.Appended)
	}
}

// waits returns when n calls wait and a user can see a question.
func (a *asking) waits(n int) {
	a.T.Helper()
	end := time.Now().Add(time.Minute)
	for questions := 0; a.holder.CountWaitingCalls() < n || questions == 0; {
		if time.Now().After(end) { // for example, the call has already returned
			a.T.Fatalf("%d calls wait, want %d", a.holder.CountWaitingCalls(), n)
		}
		runtime.Gosched()
		var err error
		if questions, err = a.asks.CountWaitingQuestions(a.T.Context(), a.now()); err != nil {
			a.T.Fatal(err)
		}
	}
}

// TestHeldCalls checks that the most harmful of the call tool, the hints, the inferred hints and the arguments
// decides, in every combination, at each endpoint.
func TestHeldCalls(t *testing.T) {
	const silent = `{"name":"delete_everything","description":"Delete everything."}`
	const writes = `{"name":"writes","annotations":{"readOnlyHint":false,"destructiveHint":false}}`
	tools := []string{readsTool, destroysTool, queryTool, wipesTool, viewsTool, silent, writes}
	n1 := `{"n":1}`
	type is map[string]string // variant ("": by its own name) → lane of the call ("": not asked about)
	for _, modes := range []string{`"intent_declaration": {"judge_arguments": "off", "infer_hints": "off", "strict_server_validation": false}`,
		`"intent_declaration": {"judge_arguments": "advise", "infer_hints": "advise", "strict_server_validation": false}`,
		`"intent_declaration": {"judge_arguments": "off", "infer_hints": "enforce", "strict_server_validation": false}`} {
		a := newAsking(t, textWith(modes), tools...)
		for _, c := range []struct {
			name, args string
			want       is
		}{
			{"reads", n1, is{"": "", "read": "", "write": "write", "destructive": "destructive"}},
			{"writes", "{}", is{"": "write", "read": "write", "write": "write", "destructive": "destructive"}},
			{"destroys", "{}", is{"": "destructive", "read": "destructive", "write": "destructive", "destructive": "destructive"}},
			{"delete_everything", "{}", is{"": "destructive", "read": "destructive", "write": "destructive", "destructive": "destructive"}},
			{"query", selectArgs, is{"": "write", "read": "write", "write": "write", "destructive": "destructive"}},
			{"query", dropArgs, is{"": "destructive", "read": "destructive", "write": "destructive", "destructive": "destructive"}},
			{"views", selectArgs, is{"": "", "read": "", "write": "write", "destructive": "destructive"}},
			{"views", dropArgs, is{"": "destructive", "read": "destructive", "write": "destructive", "destructive": "destructive"}},
			{"wipes", selectArgs, is{"": "destructive", "read": "destructive", "write": "destructive", "destructive": "destructive"}},
		} {
			a.use(textWith(modes + `, "ask": {"write": "ask", "destructive": "ask", "wait": "1s"}`))
			for variant, want := range c.want {
				got := a.catches(variant, c.name, c.args)
				if got != want {
					t.Errorf("%s: %s %s as %q: asked as %q, want %q", modes, c.name, c.args, variant, got, want)
				}
			}
		}
		// A lane that the user declares for the arguments replaces the hints if the arguments can be read.
		a.use(`{` + modes + `, "ask": {"write": "ask", "destructive": "ask", "wait": "1s"}, "mcpServers": {"s": {"command": "x", "trust": "auto", "lanes": {"wipes": {"by": "sql", "argument": "$.sql"}}}}}`)
		for variant, want := range (is{"": "", "read": "", "write": "write", "destructive": "destructive"}) {
			if got := a.catches(variant, "wipes", selectArgs); got != want {
				t.Errorf("declared, as %q: asked as %q, want %q", variant, got, want)
			}
			if got := a.catches(variant, "wipes", dropArgs); got != "destructive" {
				t.Errorf("declared, as %q: a drop is asked as %q", variant, got)
			}
		}
	}
}

// catches returns the lane in which a user would be asked about the call; "" if the user would not be asked.
func (a *asking) catches(variant, name, args string) string {
	a.T.Helper()
	c, s, now := call{caller: anAgent}, resolvedCall{cfg: a.Config(), request: policy.CallRequest{OwnNames: true}}, a.Catalog.Current()
	if variant == "" {
		s.findTool(now, "s:"+name, c.caller.Scope())
		s.request.CallTool = s.tool.CallWith
		s.args.sent, s.request.ArgsErr = parseArgumentsObject("arguments", json.RawMessage(args))
	} else {
		v, ok := policy.ParseCallToolName("call_tool_" + variant)
		if !ok {
			a.T.Fatal(variant)
		}
		c, s, now = a.gate.resolveLaneCall(&LaneCall{CallTool: v, Name: "s:" + name, Args: json.RawMessage(args), Caller: anAgent})
	}
	v := a.gate.decide(&c, s, now)
	if v.Problem != nil {
		a.T.Fatalf("%s %s as %q: %v", name, args, variant, v.Problem)
	}
	caught, lane := v.approvalRule(&c, v.argumentEffect)
	if !caught.IsSet() {
		return ""
	}
	return lane.String()
}

// TestEveryEndpointHoldsCalls checks that calls are held by call tool and by the tool's own name, on the endpoint of
// a server and on /mcp/all, with and without a session.
func TestEveryEndpointHoldsCalls(t *testing.T) {
	a := newAsking(t, textWith(atOnce), destroysTool)
	a.hurry()
	for name, call := range map[string]func() error{
		"calling tool": func() error { return a.destroy(t.Context(), "{}") },
		"one server": func() error {
			_, err := a.relay(t.Context(), passed("tools/call", `{"name":"destroys","arguments":{}}`))
			return err
		},
		"one server, in a session": func() error {
			s, _, err := a.gate.GatedEndpoint("s").OpenSession(t.Context(), passed("initialize", `{}`))
			if err != nil {
				return err
			}
			_, err = s.Do(t.Context(), passed("tools/call", `{"name":"destroys"}`))
			return err
		},
		"as a task": func() error {
			_, err := a.relay(t.Context(), passed("tools/call", `{"name":"destroys","arguments":{},"task":{"ttl":1000}}`))
			return err
		},
		"all servers": func() error {
			_, err := a.gate.CallFromAggregate(t.Context(), ToolCallTarget{ID: a.Catalog.Current().Server("s").Tools[0].ID}, passed("tools/call", `{"name":"destroys","arguments":{}}`))
			return err
		},
	} {
		wantCode(t, name, call(), problem.ApprovalPending)
		if a.asked() != 0 {
			t.Errorf("%s: the server received the call: %q", name, a.Events)
		}
	}
	if n, _ := a.asks.CountWaitingQuestions(t.Context(), time.Now()); n != 1 { // all calls are from one client
		t.Errorf("%d questions", n)
	}
}

// TestChangedCallIsAskedAgain checks that an approval does not cover a changed call.
func TestChangedCallIsAskedAgain(t *testing.T) {
	other := anAgent
	other.SessionID = "another"
	token := anAgent
	token.Actor = auth.Actor{Kind: auth.Agent, Name: "cursor", ID: "1"}
	token.Bounds = bounded(policy.Scope{})
	as := func(a *asking, c auth.Caller, v policy.CallToolVariant, args string) error {
		_, err := a.gate.Call(t.Context(), LaneCall{CallTool: v, Name: "s:destroys", Args: json.RawMessage(args), Caller: c})
		return err
	}
	for name, call := range map[string]func(a *asking) error{
		"arguments":    func(a *asking) error { return a.destroy(t.Context(), `{"x":2}`) },
		"more of them": func(a *asking) error { return a.destroy(t.Context(), `{"x":1,"y":null}`) },
		"session":      func(a *asking) error { return as(a, other, policy.CallToolDestructive, `{"x":1}`) },
		"actor":        func(a *asking) error { return as(a, token, policy.CallToolDestructive, `{"x":1}`) },
		"variant":      func(a *asking) error { return as(a, anAgent, policy.CallToolWrite, `{"x":1}`) },
		"configuration": func(a *asking) error {
			a.use(textWith(atOnce + `, "intent_declaration": {"strict_server_validation": false}, "tools_limit": 7`))
			a.hurry()
			return a.destroy(t.Context(), `{"x":1}`)
		},
		"definition": func(a *asking) error {
			a.SetToolsOn("s", strings.Replace(destroysTool, "Destroy a", "Destroy every", 1))
			return a.destroy(t.Context(), `{"x":1}`)
		},
		"time": func(a *asking) error {
			a.now = func() time.Time { return time.Now().Add(ask.Life) }
			return a.destroy(t.Context(), `{"x":1}`)
		},
	} {
		a := newAsking(t, textWith(atOnce+`, "intent_declaration": {"strict_server_validation": false}`), destroysTool)
		a.hurry()
		wantCode(t, "at first", a.destroy(t.Context(), `{"x":1}`), problem.ApprovalPending)
		a.answer(true)
		wantCode(t, name, call(a), problem.ApprovalPending)
		if a.asked() != 0 {
			t.Errorf("%s: the server received the call: %q", name, a.Events)
		}
	}
}

// TestChangesWhileACallWaits covers a call that waits for the user, and then for the server. If anything that the
// question showed changes, MCPProxy asks again. A lock takes effect.
func TestChangesWhileACallWaits(t *testing.T) {
	const strict = `, "intent_declaration": {"strict_server_validation": true}`
	for name, change := range map[string]struct {
		do   func(a *asking)
		code problem.Code
		anew bool
	}{
		"configuration": {func(a *asking) {
			a.use(textWith(`"ask": {"write": "ask", "destructive": "ask", "wait": "1m"}, "tools_limit": 7`))
		}, problem.ApprovalPending, true},
		"definition": {func(a *asking) {
			a.SetToolsOn("s", strings.Replace(destroysTool, "Destroy a", "Destroy every", 1))
		}, problem.ApprovalPending, true},
		"locked": {func(a *asking) {
			a.use(`{"mcpServers": {"s": {"command": "x", "trust": "auto", "enabled": false}}, ` + atOnce + `}`)
		}, problem.ToolLocked, false},
		"gone": {func(a *asking) { a.SetToolsOn("s", readsTool) }, problem.ToolNotFound, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAsking(t, textWith(`"ask": {"destructive": "ask", "wait": "1m"}`+strict), destroysTool)
			done := make(chan error, 1)
			go func() { done <- a.destroy(t.Context(), `{}`) }()
			a.waits(1)
			change.do(a)
			a.answer(true) // for the state before the change
			if change.anew {
				a.waits(1)
				a.holder.EndAllWaits()
			}
			wantCode(t, name, <-done, change.code)
			if n, _ := a.asks.CountWaitingQuestions(t.Context(), time.Now()); a.asked() != 0 || (n == 1) != change.anew {
				t.Errorf("%s: %d questions, %q", name, n, a.Events)
			}

			// The same applies between the answer and the call to the server.
			a = newAsking(t, textWith(`"ask": {"destructive": "ask", "wait": "1m"}`+strict), destroysTool)
			a.AnswerCall = func(_ context.Context, r *session.Request) (session.Reply, error) {
				a.Events = a.Events[:len(a.Events)-1] // the call has not reached the server
				change.do(a)
				return session.Reply{}, r.Permit.Recheck()
			}
			go func() { done <- a.destroy(t.Context(), `{}`) }()
			a.waits(1)
			a.answer(true)
			wantCode(t, name+", later", <-done, change.code)
		})
	}
}

// TestNewRuleDuringTheWait checks that a call that waits for its server is not sent if a new rule requires approval.
func TestNewRuleDuringTheWait(t *testing.T) {
	a := newAsking(t, textWith(`"tools_limit": 7`), destroysTool)
	a.AnswerCall = func(_ context.Context, r *session.Request) (session.Reply, error) {
		a.use(textWith(atOnce))
		return session.Reply{}, r.Permit.Recheck()
	}
	wantCode(t, "a rule that came meanwhile", a.destroy(t.Context(), `{}`), problem.ApprovalPending)
	if o := a.Ended[0]; o.Check != "ask" || o.Status != activity.Failed {
		t.Errorf("outcome: %+v", o)
	}
}

// TestLeasesCoverCalls checks that a lease covers its number of calls and that further calls need approval.
func TestLeasesCoverCalls(t *testing.T) {
	t.Parallel()
	a := newAsking(t, textWith(atOnce), destroysTool)
	l := ask.Lease{ID: "l1", Server: "s", Lane: 3, Revision: a.Config().RevisionWithoutRestartKeys(), Calls: 2, Left: 2, Given: time.Now(), Until: time.Now().Add(time.Minute), By: "admin"}
	if err := a.asks.AddLease(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.destroy(t.Context(), `{}`); err != nil {
			t.Error(err)
		}
	}
	if a.asked() != 2 || a.Begun[1].Metadata.Decision.Approval != "l1" || a.Begun[1].ParentID != "" {
		t.Errorf("%q, %+v", a.Events, a.Begun[1].Metadata.Decision)
	}
	wantCode(t, "one more", a.destroy(t.Context(), `{}`), problem.ApprovalPending)
}

// TestDisconnectStopsTheWait checks that, after a disconnect, the question stays and the server is not called.
func TestDisconnectStopsTheWait(t *testing.T) {
	a := newAsking(t, textWith(`"ask": {"destructive": "ask", "wait": "10m"}`), destroysTool)
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- a.destroy(ctx, `{}`) }()
	for n := 0; n == 0; n, _ = a.asks.CountWaitingQuestions(t.Context(), time.Now()) {
		runtime.Gosched()
	}
	leave()
	wantCode(t, "the client has left", <-done, problem.Interrupted)
	if n, _ := a.asks.CountWaitingQuestions(t.Context(), time.Now()); n != 1 || a.asked() != 0 || a.holder.CountWaitingCalls() != 0 {
		t.Errorf("%d questions, %q", n, a.Events)
	}
	go func() { done <- a.destroy(t.Context(), `{}`) }()
	a.waits(1)
	a.holder.EndAllWaits()
	wantCode(t, "MCPProxy stops", <-done, problem.ApprovalPending)
	wantCode(t, "and has stopped", a.destroy(t.Context(), `{}`), problem.ApprovalPending)
}

// TestTwoIdenticalCalls checks that one approval allows only one of two identical calls.
func TestTwoIdenticalCalls(t *testing.T) {
	a := newAsking(t, textWith(`"ask": {"destructive": "ask", "wait": "1m"}`), destroysTool)
	a.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(`{}`)}, nil
	}
	var all sync.WaitGroup
	errs := make(chan error, 5)
	for range 5 {
		all.Go(func() { errs <- a.destroy(t.Context(), `{}`) })
	}
	a.waits(5)
	a.answer(true)
	a.waits(4)
	a.holder.EndAllWaits()
	all.Wait()
	close(errs)
	passed := 0
	for err := range errs {
		if err == nil {
			passed++
		} else {
			wantCode(t, "another one", err, problem.ApprovalPending)
		}
	}
	if passed != 1 || a.asked() != 1 {
		t.Errorf("%d calls succeeded, %d reached the server", passed, a.asked())
	}
}

// TestWithoutTheDatabase checks that without the database no held call continues, and that the error contains the
// reason.
func TestWithoutTheDatabase(t *testing.T) {
	a := newAsking(t, textWith(atOnce), destroysTool)
	a.close()
	wantCode(t, "the database is away", a.destroy(t.Context(), `{}`), problem.ServerUnavailable)
	if a.asked() != 0 {
		t.Errorf("%q", a.Events)
	}
}

// TestTimeoutStartsAfterTheAnswer checks that a user may take longer than the time limit of the call.
func TestTimeoutStartsAfterTheAnswer(t *testing.T) {
	t.Parallel()
	a := newAsking(t, textWith(`"ask": {"destructive": "ask", "wait": "1m"}, "call_timeout": "1s"`), destroysTool)
	done := make(chan error, 1)
	go func() { done <- a.destroy(t.Context(), `{}`) }()
	a.waits(1)
	<-time.After(1100 * time.Millisecond)
	a.answer(true)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if o := a.Ended[len(a.Ended)-1]; o.Duration-o.Own < 1100*time.Millisecond {
		t.Errorf("the call took %v, of which %v count as MCPProxy's own time", o.Duration, o.Own)
	}
}

// TestResultInTheArguments checks that a user sees the origin and the beginning of the result, never the handle, and
// that the approval covers its content.
func TestResultInTheArguments(t *testing.T) {
	a := newAsking(t, textWith(atOnce), destroysTool)
	a.hurry()
	call := func(handle string) error {
		_, err := a.gate.Call(t.Context(), LaneCall{CallTool: policy.CallToolDestructive, Name: "s:destroys", Args: json.RawMessage(`{"x":{"$result":"` + handle + `","path":"text"}}`), ResultRefs: true, Caller: anAgent})
		return err
	}
	for handle, body := range map[string]string{"HANDLEONE": `{"text":"begins like this"}`, "HANDLETWO": `{"text":"another one"}`, "HANDLESAME": `{"text":"begins like this"}`} {
		if err := a.PutResult(t.Context(), store.StoredResult{Handle: handle, Actor: anAgent.Actor.Principal(), Server: "s", Tool: "destroys", Body: json.RawMessage(body), Expires: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, "at first", call("HANDLEONE"), problem.ApprovalPending)
	all, err := a.asks.WaitingQuestions(t.Context(), time.Now())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if shown := string(all[0].Shown); strings.Contains(shown, "HANDLE") || !strings.Contains(shown, "begins like this") || !strings.Contains(shown, `"from":"s:destroys","bytes":18`) {
		t.Errorf("%s", shown)
	}
	a.answer(true)
	wantCode(t, "another value", call("HANDLETWO"), problem.ApprovalPending)
	if err := call("HANDLESAME"); err != nil || a.asked() != 1 {
		t.Errorf("the same value: %v, %q", err, a.Events)
	}
}
