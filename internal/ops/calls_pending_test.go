package ops

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/catalogtest"
)

// log is an ActivityLog that passes records to the test harness. Its other methods are not used.
type log struct {
	ActivityLog
	w *catalogtest.Harness
}

func (l log) Begin(r *activity.Record) error          { return l.w.Begin(r) }
func (l log) End(id string, o activity.Outcome) error { return l.w.End(id, o) }
func (l log) Append(r *activity.Record) error         { return l.w.Append(r) }

// consentWorld is a test environment for CallApprovals with a real database and tokens.
type consentWorld struct {
	*catalogtest.Harness
	*CallApprovals
	asks    *store.ApprovalQuestionStore
	changes int
}

func newConsentWorld(t *testing.T) *consentWorld {
	t.Helper()
	w := &consentWorld{Harness: catalogtest.New(t, nil, `{"name":"a"}`)}
	dir := t.TempDir()
	db := store.OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	t.Cleanup(func() { _ = db.Close() })
	w.asks = db.ApprovalQuestions()
	tokens := auth.NewAgentTokens(db, dir, func(auth.Actor) {}, nil)
	var running sync.WaitGroup
	running.Go(func() { tokens.Run(t.Context()) })
	t.Cleanup(running.Wait) // runs before the database is closed
	if _, _, err := tokens.Create(t.Context(), auth.Token{Name: "cursor", By: "admin"}, nil); err != nil {
		t.Fatal(err)
	}
	g := NewGateway(GatewayDeps{Log: log{w: w.Harness}, Gate: &gate.Gate{Deps: gate.Deps{Config: w.Config, Catalog: w.Catalog, Logger: catalogtest.Logger}}})
	w.CallApprovals = NewCallApprovals(g, w.asks, ask.NewWaiter(w.asks, nil, time.Now, func() {}), tokens, func() { w.changes++ })
	return w
}

// asked stores a question about a pending call.
func (w *consentWorld) asked(id, arguments string) {
	w.T.Helper()
	c := ask.Call{Principal: "agent", ID: tool.ID{Server: "s", Tool: "a"}, Arguments: []byte(arguments)}
	q := ask.Question{ID: id, Key: c.Key(), State: ask.Waiting, Call: c, Shown: []byte(arguments), Record: "held", Asked: time.Now().Add(-time.Minute), Last: time.Now(), Until: time.Now().Add(ask.Life - time.Minute)}
	if _, fresh, err := w.asks.AddQuestion(w.T.Context(), q); err != nil || !fresh {
		w.T.Fatal(err)
	}
}

// TestOnlyUsersAnswer checks that an MCP client cannot answer, whatever its rights, and that its attempt is recorded.
func TestOnlyUsersAnswer(t *testing.T) {
	w := newConsentWorld(t)
	w.asked("q1", `{"n":1}`)
	withKey := catalogtest.AdminCaller
	withKey.Source = auth.MCP // an MCP client that presents the API key
	for _, c := range []Caller{catalogtest.AgentCaller, withKey, {}} {
		_, approve := w.ApproveCall(t.Context(), c, PendingCallRef{"q1"})
		_, deny := w.DenyCall(t.Context(), c, DenyCallRequest{PendingCallRef{"q1"}, "no"})
		_, grant := w.GrantLease(t.Context(), c, GrantLeaseRequest{Server: "s"})
		_, revoke := w.RevokeLease(t.Context(), c, LeaseRef{"x"})
		for what, err := range map[string]error{"approve": approve, "deny": deny, "grant": grant, "revoke": revoke} {
			if err == nil || problem.From(err).Code != problem.Forbidden {
				t.Errorf("%s by %+v: %v", what, c.Actor, err)
			}
		}
	}
	if q, err := w.PendingCall(t.Context(), catalogtest.AdminCaller, PendingCallRef{"q1"}); err != nil || q.State != ask.Waiting || w.changes != 0 || q.WaitsUntil == nil || q.WaitsUntil.Sub(q.LastAsked) != 45*time.Second {
		t.Errorf("%+v, %v", q, err)
	}
	refused := len(w.Appended)
	if refused != 12 || w.Appended[0].Status != activity.Blocked || w.Appended[0].Metadata.Action != "approve_call" {
		t.Errorf("%d recorded: %+v", refused, w.Appended[0])
	}
	done, err := w.ApproveCall(t.Context(), catalogtest.AdminCaller, PendingCallRef{"q1"})
	if err != nil || done.State != ask.Approved || done.AnsweredBy != "admin" || done.Answered != "cli" || w.changes != 1 || done.WaitsUntil != nil {
		t.Errorf("%+v, %v", done, err)
	}
	r := w.Begun[0]
	if r.Type != activity.Approval || r.ParentID != "held" || r.ServerName != "s" || r.ToolName != "a" || !strings.HasPrefix(r.Metadata.Detail, "q1, 1m") || !strings.HasSuffix(r.Metadata.Detail, "s after it was asked") || w.Ended[0].Status != activity.Success {
		t.Errorf("recorded: %+v, %+v", r, w.Ended[0])
	}
	if _, err := w.DenyCall(t.Context(), catalogtest.AdminCaller, DenyCallRequest{PendingCallRef{"q1"}, "no"}); problem.From(err).Code != problem.Conflict || w.Ended[1].Status != activity.Failed {
		t.Errorf("a second answer: %v, %+v", err, w.Ended[1])
	}
	if _, err := w.DenyCall(t.Context(), catalogtest.AdminCaller, DenyCallRequest{PendingCallRef{"q1"}, strings.Repeat("x", ask.MaxReason+1)}); problem.From(err).Code != problem.InvalidParameter {
		t.Errorf("a long reason: %v", err)
	}
}

// TestClientFormRights checks that every client may deny its own call, and that only clients named in the configuration
// may approve it. Each attempt is recorded with its method and delay.
func TestClientFormRights(t *testing.T) {
	w := newConsentWorld(t)
	w.Reload(func(c *config.Config) { c.AnswerByClient = []string{"cursor"} })
	key := func(arguments string) ask.CallKey {
		c := ask.Call{Principal: "agent", ID: tool.ID{Server: "s", Tool: "a"}, Arguments: []byte(arguments)}
		return c.Key()
	}
	named := func(name string) auth.Caller {
		c := catalogtest.AgentCaller
		c.Actor.Name = name
		return c
	}
	withKey := catalogtest.AdminCaller
	withKey.Source = auth.MCP
	w.asked("q1", `{"n":1}`)
	w.asked("q2", `{"n":2}`)
	for _, c := range []auth.Caller{named(""), named("another"), named("Cursor"), withKey, {}} {
		if err := w.AnswerByClient(t.Context(), c, "q1", key(`{"n":1}`), ask.Answer{Approve: true}); problem.From(err).Code != problem.Forbidden {
			t.Errorf("%+v approves: %v", c.Actor, err)
		}
	}
	if len(w.Appended) != 5 || w.Appended[1].Status != activity.Blocked || w.Appended[1].Actor != "agent:another" || w.Appended[1].Metadata.Action != "approve_call" || w.Appended[1].ParentID != "held" {
		t.Errorf("%d recorded: %+v", len(w.Appended), w.Appended)
	}
	if err := w.AnswerByClient(t.Context(), named("cursor"), "q1", key(`{"n":2}`), ask.Answer{Approve: true}); problem.From(err).Code != problem.Conflict {
		t.Errorf("with the key of another call: %v", err)
	}
	if err := w.AnswerByClient(t.Context(), named("cursor"), "none", key(`{"n":2}`), ask.Answer{Approve: true}); problem.From(err).Code != problem.NotFound {
		t.Errorf("for an unknown question: %v", err)
	}
	if w.changes != 0 || len(w.Begun) != 0 {
		t.Errorf("%d changes, %+v", w.changes, w.Begun)
	}
	if err := w.AnswerByClient(t.Context(), named("cursor"), "q1", key(`{"n":1}`), ask.Answer{Approve: true}); err != nil || w.changes != 1 {
		t.Fatal(err)
	}
	if r := w.Begun[0]; r.Actor != "agent:cursor" || r.Source != auth.MCP || r.Metadata.Action != "approve_call" || !strings.HasSuffix(r.Metadata.Detail, "s after it was asked, by the client's form") || r.ParentID != "held" {
		t.Errorf("recorded: %+v", r)
	}
	if q, _ := w.PendingCall(t.Context(), catalogtest.AdminCaller, PendingCallRef{"q1"}); q.State != ask.Approved || q.AnsweredBy != "agent:cursor" || q.Answered != "client form" {
		t.Errorf("%+v", q)
	}
	if err := w.AnswerByClient(t.Context(), named("cursor"), "q1", key(`{"n":1}`), ask.Answer{}); problem.From(err).Code != problem.Conflict {
		t.Errorf("a second time: %v", err)
	}
	if err := w.AnswerByClient(t.Context(), named(""), "q2", key(`{"n":2}`), ask.Answer{Why: "No."}); err != nil {
		t.Error(err)
	}
	if r := w.Begun[2]; r.Actor != "agent" || r.Metadata.Action != "deny_call" || !strings.HasSuffix(r.Metadata.Detail, "s after it was asked, by the client's form: No.") {
		t.Errorf("recorded: %+v", r)
	}
}

// TestListsShortenArguments checks that a list contains only the beginning of long arguments and a single call contains
// all.
func TestListsShortenArguments(t *testing.T) {
	w := newConsentWorld(t)
	long := `{"text":"` + strings.Repeat("é", maxListedArguments) + `"}`
	w.asked("q1", long)
	all, err := w.PendingCalls(t.Context(), catalogtest.AdminCaller, Nothing{})
	if err != nil || len(all.Pending) != 1 || !all.Pending[0].Truncated || len(all.Pending[0].Arguments) > maxListedArguments+100 || all.Pending[0].Arguments[0] != '"' {
		t.Errorf("%+v, %v", all, err)
	}
	if one, err := w.PendingCall(t.Context(), catalogtest.AdminCaller, PendingCallRef{"q1"}); err != nil || one.Truncated || string(one.Arguments) != long {
		t.Errorf("%d bytes, %v", len(one.Arguments), err)
	}
	if n := w.CountPendingAndLeases(t.Context()); n.Pending != 1 || n.Leases != 0 {
		t.Errorf("%+v", n)
	}
}

// TestInvalidLeases checks that an invalid lease is rejected with the name of the parameter.
func TestInvalidLeases(t *testing.T) {
	w := newConsentWorld(t)
	for _, c := range []struct {
		in        GrantLeaseRequest
		code      problem.Code
		parameter string
	}{
		{GrantLeaseRequest{Server: "none"}, problem.ServerNotFound, ""},
		{GrantLeaseRequest{Server: "s", Lane: "all"}, problem.InvalidParameter, "lane"},
		{GrantLeaseRequest{Server: "s", For: "soon"}, problem.InvalidParameter, "for"},
		{GrantLeaseRequest{Server: "s", For: "1s"}, problem.InvalidParameter, "for"},
		{GrantLeaseRequest{Server: "s", For: "2d"}, problem.InvalidParameter, "for"},
		{GrantLeaseRequest{Server: "s", Calls: -1}, problem.InvalidParameter, "calls"},
		{GrantLeaseRequest{Server: "s", Calls: ask.MaxCalls + 1}, problem.InvalidParameter, "calls"},
		{GrantLeaseRequest{Server: "s", Client: "claude-code"}, problem.NotFound, "client"},
	} {
		_, err := w.GrantLease(t.Context(), catalogtest.AdminCaller, c.in)
		if p := problem.From(err); p == nil || p.Code != c.code || c.parameter != "" && p.Detail("parameter") != c.parameter {
			t.Errorf("%+v: %v", c.in, err)
		}
	}
	plain, err := w.GrantLease(t.Context(), catalogtest.AdminCaller, GrantLeaseRequest{Server: "s"})
	if err != nil || plain.Lane != "write" || plain.Calls != 20 || plain.CallsLeft != 20 || plain.Until.Sub(plain.GivenAt) != 15*time.Minute || plain.GivenBy != "admin" {
		t.Errorf("%+v, %v", plain, err)
	}
	bound, err := w.GrantLease(t.Context(), catalogtest.AdminCaller, GrantLeaseRequest{Server: "s", Lane: "destructive", For: "2h", Calls: 3, Client: "cursor", Tools: "create_*"})
	if err != nil || bound.Client != "cursor" || !strings.Contains(w.Begun[1].Metadata.Detail, "destructive, up to 3 calls for 2h0m0s, tools create_*, client cursor") {
		t.Errorf("%+v, %v, %+v", bound, err, w.Begun)
	}
	if all, err := w.Leases(t.Context(), catalogtest.AdminCaller, Nothing{}); err != nil || len(all.Leases) != 2 || w.CountPendingAndLeases(t.Context()).Leases != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	if ended, err := w.RevokeLease(t.Context(), catalogtest.AdminCaller, LeaseRef{plain.ID}); err != nil || ended.Ended != ask.WasRevoked {
		t.Errorf("%+v, %v", ended, err)
	}
	if _, err := w.RevokeLease(t.Context(), catalogtest.AdminCaller, LeaseRef{plain.ID}); problem.From(err).Code != problem.NotFound {
		t.Errorf("a second time: %v", err)
	}
}
