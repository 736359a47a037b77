package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/testutil/volume"
)

// TestMain makes the random walks the same each time, so that a change does not fail because of an older defect.
// -rapid.seed=0 selects other walks.
func TestMain(m *testing.M) {
	volume.ConfigureRapid()
	os.Exit(m.Run())
}

// TestNothingRunsUnapproved makes a random walk of calls, answers of users and client forms, leases, changes of
// definitions, arguments and configurations, restarts, crashes and pauses. It checks that no call reaches its server
// unapproved, twice, or with other arguments, and that approved calls do. rapid prints a minimized failure.
func TestNothingRunsUnapproved(t *testing.T) {
	walks := 0
	walkAtRandom(t, volume.FullOrQuick(50, 10), func() func() database { // in each of rapid's walks
		walks++
		file := filepath.Join(t.TempDir(), fmt.Sprint(walks, ".db"))
		return func() database { return store.OpenSQLite(file, nil) }
	})
}

// database is an open database.
type database interface {
	ApprovalQuestions() *store.ApprovalQuestionStore
	Close() error
}

// walkAtRandom makes random walks. another returns a function that opens a new database for each walk.
func walkAtRandom(t *testing.T, steps int, another func() (open func() database)) {
	a := newAsking(t, textWith(`"tools_limit": 1`), destroysTool, silentTool)
	start := time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC)
	rapid.Check(t, func(r *rapid.T) {
		start = start.AddDate(0, 0, 3) // everything of an earlier walk has expired
		open := another()
		var opened []database
		m := newModel(a, start, func() *store.ApprovalQuestionStore {
			opened = append(opened, open())
			return opened[len(opened)-1].ApprovalQuestions()
		}, func() { _ = opened[len(opened)-1].Close() })
		for range steps {
			m.step(r)
		}
		for _, db := range opened {
			_ = db.Close()
		}
	})
}

const silentTool = `{"name":"update_thing","description":"Update a thing."}`

// model predicts the behaviour of a real gate.
type model struct {
	*asking
	openDB  func() *store.ApprovalQuestionStore
	closeDB func()
	clock   time.Time
	limit   int // version of the configuration
	version int // version of the definitions

	questions map[string]string // id → call
	approved  map[string]time.Time
	over      map[string]bool // approvals that expired at some time; setting the clock back may make them valid again
	denied    map[string]bool
	setBack   bool // the clock was set back: an expired or future denial may exist in addition to an approval, and takes precedence
	leases    map[string]*ask.Lease
	states    []stateOfCall // states that clients were given to return

	mu  sync.Mutex // guards ran
	ran []string   // the arguments with which the server was asked
}

func newModel(a *asking, start time.Time, open func() *store.ApprovalQuestionStore, shut func()) *model {
	m := &model{asking: a, openDB: open, closeDB: shut, clock: start, limit: 1, questions: map[string]string{}, approved: map[string]time.Time{}, over: map[string]bool{}, denied: map[string]bool{}, leases: map[string]*ask.Lease{}}
	a.now = func() time.Time { return m.clock }
	a.AnswerCall = func(_ context.Context, r *session.Request) (session.Reply, error) {
		if err := r.Permit.Recheck(); err != nil {
			return session.Reply{}, err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ran = append(m.ran, string(r.Call.Arguments))
		return session.Reply{Result: json.RawMessage(`{}`)}, nil
	}
	m.reopen()
	m.configure()
	m.define()
	return m
}

func (m *model) reopen() {
	m.asks = m.openDB()
	if _, err := m.asks.CountWaitingQuestions(m.T.Context(), m.clock); err != nil { // waits until the database is open
		m.T.Fatal(err)
	}
	m.holder = ask.NewWaiter(m.asks, nil, func() time.Time { return m.clock }, func() {})
	m.gate.Ask = m.holder
}

func (m *model) configure() {
	next := m.parse(textWith(fmt.Sprintf(`"ask": {"write": "ask", "destructive": "ask", "answer_by_client": ["token"]}, "tools_limit": %d`, m.limit)))
	next.Ask.Wait = time.Nanosecond
	m.Reload(func(c *config.Config) { *c = *next })
}

func (m *model) define() {
	m.SetToolsOn("s", fmt.Sprintf(`{"name":"destroys","description":"Destroy a thing, %d.","annotations":{"destructiveHint":true}}`, m.version), silentTool)
}

// stateOfCall is a state, and the call for which a client received it.
type stateOfCall struct {
	call  oneCall
	state string
}

// oneCall is a call that the walk may make.
type oneCall struct {
	who, args int
	tool      string
	variant   policy.CallToolVariant
}

// spellings are arguments. Equal meanings mark different spellings of the same arguments.
var spellings = []struct{ text, meaning string }{{`{"x":1}`, "x=1"}, {`{ "x" : 1.0 }`, "x=1"}, {`{"x":2}`, "x=2"}, {`{"x":1,"y":null}`, "x=1 y"}, {`{"x":"1"}`, "x=one"}}

func (c oneCall) caller() auth.Caller {
	who := auth.Caller{Actor: auth.Actor{Kind: auth.Agent}, Source: auth.MCP}
	switch c.who {
	case 1:
		who.SessionID = "one"
	case 2:
		who.SessionID = "two"
	case 3:
		who.Actor.Name, who.Actor.ID, who.Bounds = "token", "1", bounded(policy.Scope{})
	case 4:
		who.Actor.Kind, who.Source = auth.Admin, auth.REST
	case 5:
		who.Actor.Name, who.Actor.ID, who.Bounds, who.SessionID = "token", "1", bounded(policy.Scope{}), "three"
	}
	return who
}

// key identifies everything that an approval covers.
func (m *model) key(c oneCall) string {
	version := m.version
	if c.tool != "destroys" {
		version = 0
	}
	return fmt.Sprintf("%d %s %s %s v%d c%d", c.who, c.tool, c.variant, spellings[c.args].meaning, version, m.limit)
}

func lane(c oneCall) auth.OperationLane {
	if c.tool == "destroys" || c.variant == policy.CallToolDestructive {
		return auth.Destructive
	}
	return auth.Write
}

// may reports whether the call is allowed to run now, and whether it must run. lets consumes the approval or lease
// that allows it.
func (m *model) may(c oneCall) (lets func(), ok, must bool) {
	all := slices.SortedFunc(maps.Values(m.leases), func(a, b *ask.Lease) int { return cmp.Or(a.Until.Compare(b.Until), strings.Compare(a.ID, b.ID)) })
	for _, l := range all {
		if l.Left > 0 && m.clock.Before(l.Until) && !l.Until.After(m.clock.Add(ask.LongestLease+ask.Skew)) && l.Revision == m.Config().RevisionWithoutRestartKeys() && lane(c) <= l.Lane &&
			(l.Actor == "" || l.Actor == c.caller().Actor.Principal()) {
			return func() { l.Left-- }, true, true
		}
	}
	key := m.key(c)
	at, there := m.approved[key]
	if until := at.Add(ask.Life); there && m.clock.Before(until) && !until.After(m.clock.Add(ask.Life+ask.Skew)) {
		return func() { delete(m.approved, key); delete(m.over, key) }, true, !m.over[key] && !(m.setBack && m.denied[key])
	}
	return nil, false, false
}

// checked makes a call, and fails if it runs although it may not, or does not run although it must.
func (m *model) checked(r *rapid.T, c oneCall, client *session.Request) {
	lets, ok, must := m.may(c)
	ran := m.callBy(r, c, client)
	switch {
	case ran && !ok:
		r.Fatalf("%+v ran without an approval", c)
	case !ran && must && !refusedByPolicy(c):
		r.Fatalf("%+v did not run although it is approved", c)
	case ran:
		lets()
	}
}

// callBy makes a call with the client's request.
func (m *model) callBy(r *rapid.T, c oneCall, client *session.Request) (ran bool) {
	before := len(m.ran)
	result, err := m.gate.Call(m.T.Context(), LaneCall{CallTool: c.variant, Name: "s:" + c.tool, Args: json.RawMessage(spellings[c.args].text), Caller: c.caller(), Client: client})
	p, _ := errors.AsType[*problem.Problem](err)
	switch {
	case err == nil && wirejson.Find(result.Result, "inputRequests") != nil:
		state, _ := wirejson.String(wirejson.Find(result.Result, "requestState"))
		if m.states = append(m.states, stateOfCall{c, state}); len(m.ran) != before {
			r.Fatalf("%+v: the client is asked, but the server got %q", c, m.ran[before:])
		}
		m.questions[questionIn(state)] = m.key(c)
	case err == nil:
		if len(m.ran) != before+1 || m.ran[before] != spellings[c.args].text {
			r.Fatalf("%+v: the server got %q", c, m.ran[before:])
		}
		return true
	case len(m.ran) != before:
		r.Fatalf("%+v: %v, and the server got %q", c, err, m.ran[before:])
	case p.Code == problem.ApprovalPending:
		if id, _ := p.Detail("approval_id").(string); id != "" {
			m.questions[id] = m.key(c)
		}
	case p.Code != problem.ApprovalDenied && p.Code != problem.ServerMismatch:
		r.Fatalf("%+v: %v: %v", c, err, errors.Unwrap(err))
	}
	return false
}

// refusedByPolicy reports whether policy refuses a call regardless of approvals.
func refusedByPolicy(c oneCall) bool {
	return c.tool == "destroys" && c.variant != policy.CallToolDestructive
}

func (m *model) step(r *rapid.T) {
	switch rapid.SampledFrom([]string{"call", "call", "call", "call", "call twice", "form", "form", "return", "return", "answer", "answer", "answer", "define", "configure", "restart", "die", "lease", "revoke", "time"}).Draw(r, "step") {
	case "call":
		m.checked(r, drawCall(r), nil)
	case "call twice":
		m.callTwice(r, drawCall(r))
	case "form":
		m.formCall(r, drawCall(r))
	case "return":
		m.returnCall(r)
	case "answer":
		m.answerOne(r)
	case "define":
		m.version = rapid.IntRange(0, 1).Draw(r, "version")
		m.define()
	case "configure":
		m.limit = rapid.IntRange(1, 2).Draw(r, "limit")
		m.configure()
	case "restart":
		m.closeDB()
		m.reopen()
	case "die": // open questions stay open
		m.reopen()
	case "lease":
		l := ask.Lease{ID: fmt.Sprintf("%d-l%d", m.clock.Unix(), len(m.leases)), Server: "s", Lane: auth.OperationLane(rapid.IntRange(2, 3).Draw(r, "lane")), Revision: m.Config().RevisionWithoutRestartKeys(), Calls: 2, Left: 2,
			Given: m.clock, Until: m.clock.Add(rapid.SampledFrom([]time.Duration{time.Minute, 20 * time.Minute}).Draw(r, "for")), Actor: rapid.SampledFrom([]string{"", "agent:token#1"}).Draw(r, "of")}
		if l.Actor != "" {
			l.Client = "token"
		}
		if err := m.asks.AddLease(m.T.Context(), l); err != nil {
			r.Fatal(err)
		}
		m.leases[l.ID] = &l
	case "revoke":
		if all, err := m.asks.ActiveLeases(m.T.Context(), m.clock); err == nil && len(all) > 0 {
			l := all[rapid.IntRange(0, len(all)-1).Draw(r, "which")]
			if _, err := m.asks.RevokeLease(m.T.Context(), l.ID, m.clock); err != nil {
				r.Fatal(err)
			}
			m.leases[l.ID].Left = 0
		}
	case "time":
		passes := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 8 * time.Minute, ask.Life, -3 * time.Minute, -time.Hour}).Draw(r, "passes")
		m.clock = m.clock.Add(passes)
		m.setBack = m.setBack || passes < 0
		for key, at := range m.approved {
			m.over[key] = m.over[key] || !m.clock.Before(at.Add(ask.Life))
		}
	}
}

func drawCall(r *rapid.T) oneCall {
	return oneCall{who: rapid.IntRange(0, 5).Draw(r, "who"), args: rapid.IntRange(0, len(spellings)-1).Draw(r, "args"), tool: rapid.SampledFrom([]string{"destroys", "update_thing"}).Draw(r, "tool"),
		variant: rapid.SampledFrom([]policy.CallToolVariant{policy.CallToolRead, policy.CallToolWrite, policy.CallToolDestructive}).Draw(r, "variant")}
}

// callTwice makes a call twice at the same time. It must not run more often than allowed.
func (m *model) callTwice(r *rapid.T, c oneCall) {
	before := len(m.ran)
	var both sync.WaitGroup
	ids := make(chan string, 2)
	for range 2 {
		both.Go(func() {
			_, err := m.gate.Call(m.T.Context(), LaneCall{CallTool: c.variant, Name: "s:" + c.tool, Args: json.RawMessage(spellings[c.args].text), Caller: c.caller()})
			if p, _ := errors.AsType[*problem.Problem](err); p != nil && p.Code == problem.ApprovalPending {
				id, _ := p.Detail("approval_id").(string)
				ids <- id
			}
		})
	}
	both.Wait()
	close(ids)
	for range m.ran[before:] {
		lets, ok, _ := m.may(c)
		if !ok {
			r.Fatalf("%+v ran %d times, which is more than allowed", c, len(m.ran)-before)
		}
		lets()
	}
	for id := range ids {
		m.questions[id] = m.key(c)
	}
}

// formAnswers are the possible answers of a client to a form.
var formAnswers = []string{approves, approves, `{"action":"accept","content":{"decision":"deny"}}`, `{"action":"decline"}`, `{"action":"cancel"}`, `{"action":"accept"}`, `null`}

// counts reports whether an answer of the call's client approves or denies the call.
func (c oneCall) counts(answer string) (approve, deny bool) {
	return answer == approves && c.caller().Actor.Name == "token", answer == formAnswers[2] || answer == formAnswers[3]
}

// formCall makes a call in a session whose client shows forms.
func (m *model) formCall(r *rapid.T, c oneCall) {
	s := &shows{says: rapid.SampledFrom(formAnswers).Draw(r, "says")}
	approve, deny := c.counts(s.says)
	if approve || deny { // a valid answer: wait for it
		m.waiting(time.Minute)
	}
	lets, ok, must := m.may(c)
	who := c.caller()
	ran := m.callBy(r, c, &session.Request{Method: mcp.CallTool, Caller: &who, Asker: s})
	switch shown := len(s.shown) > 0; {
	case shown && ran != approve:
		r.Fatalf("%+v: the form was answered with %s, ran: %t", c, s.says, ran)
	case shown && deny:
		m.denied[m.key(c)] = true
	case shown:
	case ran && !ok:
		r.Fatalf("%+v ran without an approval", c)
	case !ran && must && !refusedByPolicy(c):
		r.Fatalf("%+v did not run although it is approved", c)
	case ran:
		lets()
	}
	if len(s.shown) > 1 || s.taken != len(s.shown) {
		r.Fatalf("%d forms shown, %d withdrawn", len(s.shown), s.taken)
	}
	m.waiting(time.Nanosecond)
	m.checked(r, c, nil) // an approval is valid once
}

// returnCall makes a call of the modern protocol with the state that its client received, or with the state of
// another call, which is then made instead.
func (m *model) returnCall(r *rapid.T) {
	c := drawCall(r)
	who, params := c.caller(), "{}"
	var of stateOfCall
	if len(m.states) > 0 && rapid.IntRange(0, 2).Draw(r, "returns") > 0 {
		of = m.states[rapid.IntRange(max(0, len(m.states)-5), len(m.states)-1).Draw(r, "state")]
		switch rapid.IntRange(0, 3).Draw(r, "in") {
		case 0:
			c = of.call
		case 1:
			c, c.who = of.call, rapid.SampledFrom([]int{3, 5}).Draw(r, "by")
		case 2:
			args := c.args
			c, c.args, c.who = of.call, args, 3
		}
		who = c.caller()
		answer := rapid.SampledFrom(formAnswers).Draw(r, "says")
		params = "{" + strings.TrimPrefix(back(of.state, answer), ",") + "}"
		q, err := m.asks.LoadQuestion(m.T.Context(), questionIn(of.state))
		if key := m.key(c); err == nil && who.SessionID == "" && !refusedByPolicy(c) && q.StateAt(m.clock) == ask.Waiting && m.questions[q.ID] == key {
			if approve, deny := c.counts(answer); approve {
				m.approved[key] = m.clock
				delete(m.over, key)
			} else if deny {
				m.denied[key] = true
			}
		}
	}
	m.checked(r, c, &session.Request{Method: mcp.CallTool, Params: json.RawMessage(params), Caller: &who, Forms: true})
	if of.state != "" {
		m.checked(r, of.call, nil)
	}
}

// questionIn returns the ID of the question in a state.
func questionIn(state string) string {
	id, _ := wirejson.String(wirejson.Find([]byte(state), stateOf))
	return id
}

// answerOne answers one of the waiting questions.
func (m *model) answerOne(r *rapid.T) {
	all, err := m.asks.WaitingQuestions(m.T.Context(), m.clock)
	if err != nil {
		r.Fatal(err)
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b ask.Question) int { return strings.Compare(m.questions[a.ID], m.questions[b.ID]) }) // the ids are random
	q := all[rapid.IntRange(0, len(all)-1).Draw(r, "question")]
	key, known := m.questions[q.ID]
	if !known {
		r.Fatalf("no client received the question %+v", q)
	}
	approve := rapid.Bool().Draw(r, "approve")
	if _, err := m.asks.AnswerQuestion(m.T.Context(), q.ID, ask.Answer{Approve: approve, By: "admin", Via: "cli", At: m.clock}); err != nil {
		r.Fatal(err)
	}
	if _, err := m.asks.AnswerQuestion(m.T.Context(), q.ID, ask.Answer{Approve: !approve, By: "admin", Via: "cli", At: m.clock}); codeOf(err) != problem.Conflict {
		r.Fatalf("a second answer: %v", err)
	}
	if approve {
		m.approved[key] = m.clock
		delete(m.over, key)
	} else {
		m.denied[key] = true
	}
}

func codeOf(err error) problem.Code {
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		return p.Code
	}
	return ""
}
