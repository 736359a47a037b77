// Package catalogtest provides a catalog with in-memory dependencies for tests: servers with scripted answers, an
// activity log, stored results and approvals. Tests of packages above catalog add the code that they test.
//
// It records events in their order, and fails the test on a tools/call without a permit. It imports no package above
// catalog.
package catalogtest

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/approvaltest"
)

// Logger discards everything.
var Logger = slog.New(slog.DiscardHandler)

// AgentCaller and AdminCaller are callers for requests.
var (
	AgentCaller = auth.Caller{Actor: auth.Actor{Kind: auth.Agent}, Source: activity.SourceMCP, SessionID: "session"}
	AdminCaller = auth.Caller{Actor: auth.Actor{Kind: auth.Admin}, Source: activity.SourceCLI}
)

// Harness is a catalog with its surroundings. It implements the log, the result store, and
// the servers behind the gate.
type Harness struct {
	T       testing.TB
	Config  func() *config.Config // returns the current configuration
	Catalog *catalog.Catalog
	// Approvals is the in-memory store of the approvals.
	Approvals approvaltest.MemoryStore
	Book      *approval.Book

	mu       sync.Mutex // guards the fields below
	Events   []string   // accesses to the log and the servers, in order
	Begun    []activity.Record
	Appended []activity.Record // including refusals
	Logged   []activity.Record // returned by queries of the log
	Ended    []activity.Outcome
	Results  map[string]store.StoredResult

	BeginErr, EditErr error
	RestartErr        error  // returned by RestartWhenDrained
	OnBegin           func() // called while a record is written

	// AnswerCall answers each tools/call. Upstreams answers everything else.
	AnswerCall func(ctx context.Context, r *session.Request) (session.Reply, error)
	Upstreams  ServerBehavior

	setConfig func(*config.Config)
}

// ServerBehavior is the behavior of the servers apart from answering calls.
type ServerBehavior interface {
	Relay(ctx context.Context, server string, r *session.Request) (session.Reply, error)
	Open(server string) (session.Session, session.Reply, error)
	ListPrimitives(ctx context.Context, server, method, list string) ([]json.RawMessage, error)
	AddDefinitions(server string, definitions []json.RawMessage) bool
	RefreshTools(ctx context.Context, server string, since time.Time)
}

// New returns a Harness with the server s, which has these tools.
func New(t testing.TB, change func(*config.Config), definitions ...string) *Harness {
	t.Helper()
	w := &Harness{T: t, Results: map[string]store.StoredResult{}, OnBegin: func() {}}
	var current struct { // no struct type may store a configuration
		sync.Mutex
		is func() *config.Config
	}
	w.setConfig = func(next *config.Config) {
		current.Lock()
		defer current.Unlock()
		current.is = func() *config.Config { return next }
	}
	w.Config = func() *config.Config {
		current.Lock()
		defer current.Unlock()
		return current.is()
	}
	w.setConfig(config.DefaultConfig())
	w.Config().Servers = []config.Server{{Name: "s", Protocol: "stdio", Enabled: true, Trust: config.TrustAuto}}
	if change != nil {
		change(w.Config())
	}
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(`{"content":[{"type":"text","text":"done"}],"x":9007199254740993}`)}, nil
	}
	w.Upstreams = &ScriptedServers{W: w}
	w.Book = w.Approvals.NewBook()
	w.Catalog = catalog.New(catalog.Options{Servers: w.Config().Servers, Infer: w.Config().Intent.InferHints, Judge: w.Config().Intent.JudgeArguments, Approvals: w.Book, Logger: Logger})
	w.SetTools(definitions...)
	return w
}

// SetTools sets the tools of server s.
func (w *Harness) SetTools(definitions ...string) {
	w.T.Helper()
	w.SetToolsOn("s", definitions...)
	w.Reload(func(*config.Config) {})
}

// SetToolsOn sets the tools of a server.
func (w *Harness) SetToolsOn(server string, definitions ...string) {
	w.T.Helper()
	var tools []*tool.Definition
	for _, raw := range definitions {
		d, err := tool.ParseDefinition(server, json.RawMessage(raw))
		if err != nil {
			w.T.Fatal(err)
		}
		tools = append(tools, &d)
	}
	w.Catalog.ToolsListed(server, tools)
	w.Catalog.Publish()
}

// Reload applies a changed configuration.
func (w *Harness) Reload(change func(*config.Config)) {
	w.T.Helper()
	if err := w.Edit(func(c *config.Config) error { change(c); return nil }); err != nil {
		w.T.Fatal(err)
	}
}

// Edit applies a configuration change that may fail.
func (w *Harness) Edit(change func(*config.Config) error) error {
	if w.EditErr != nil {
		return w.EditErr
	}
	next := *w.Config()
	next.Servers = slices.Clone(next.Servers)
	if err := change(&next); err != nil {
		return err
	}
	commit, err := w.Catalog.PrepareConfig(&next)
	if err != nil {
		return err
	}
	w.setConfig(&next)
	commit()
	return nil
}

// AddEvent adds an event and calls keep while it holds the lock.
func (w *Harness) AddEvent(event string, keep func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Events = append(w.Events, event)
	if keep != nil {
		keep()
	}
}

// Begin, End, Append and Refuse implement the activity log.
func (w *Harness) Begin(r *activity.Record) error {
	if w.BeginErr != nil {
		return w.BeginErr
	}
	w.OnBegin()
	r.ID = "record"
	w.AddEvent("begin", func() { w.Begun = append(w.Begun, *r) })
	return nil
}

func (w *Harness) End(_ string, o activity.Outcome) error {
	w.AddEvent("end", func() { w.Ended = append(w.Ended, o) })
	return nil
}

func (w *Harness) Append(r *activity.Record) error {
	r.ID = "refusal"
	w.AddEvent("append", func() { w.Appended = append(w.Appended, *r) })
	return nil
}

func (w *Harness) AppendRefusal(r *activity.Record) error {
	r.ID, r.Type, r.Status = "refusal", activity.PolicyDecision, activity.Blocked
	w.AddEvent("refuse", func() { w.Appended = append(w.Appended, *r) })
	return nil
}

// PutResult and GetResult implement the result store.
func (w *Harness) PutResult(_ context.Context, r store.StoredResult) error {
	w.Results[r.Handle] = r
	return nil
}

func (w *Harness) GetResult(_ context.Context, handle string) (store.StoredResult, error) {
	r, ok := w.Results[handle]
	if !ok {
		return r, problem.New(problem.NotFound, "no such handle", "")
	}
	return r, nil
}

// ListPrimitives, AddDefinitions and RefreshTools delegate to Upstreams.
func (w *Harness) ListPrimitives(ctx context.Context, server, method, list string) ([]json.RawMessage, error) {
	return w.Upstreams.ListPrimitives(ctx, server, method, list)
}

func (w *Harness) AddDefinitions(server string, definitions []json.RawMessage) bool {
	return w.Upstreams.AddDefinitions(server, definitions)
}

func (w *Harness) RefreshTools(ctx context.Context, server string, since time.Time) {
	w.Upstreams.RefreshTools(ctx, server, since)
}

// Surface returns a server as seen by the gate.
func (w *Harness) Surface(server string) session.Endpoint { return serverSurface{w, server} }

type serverSurface struct {
	w      *Harness
	server string
}

func (f serverSurface) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Method != "tools/call" {
		return f.w.Upstreams.Relay(ctx, f.server, r)
	}
	var asked struct {
		Name      string
		Arguments json.RawMessage
	}
	if r.Call != nil {
		asked.Name, asked.Arguments = r.Call.Tool, r.Call.Arguments
	} else if err := json.Unmarshal(r.Params, &asked); err != nil {
		f.w.T.Error(err)
	}
	if !r.Permit.Allows(asked.Name) {
		f.w.T.Errorf("a call of %q without the proof that it was decided about", asked.Name)
	}
	f.w.AddEvent("call "+string(asked.Arguments), nil)
	return f.w.AnswerCall(ctx, r)
}

func (f serverSurface) OpenSession(context.Context, *session.Request) (session.Session, session.Reply, error) {
	return f.w.Upstreams.Open(f.server)
}

// FakeSession is a client's session with a server. It records what it receives.
type FakeSession struct {
	session.Doer
	Server string
	Emit   func(session.Event) // the listener's callback

	w   *Harness
	end *session.EndSignal
}

func (s *FakeSession) NotifyServer(_ context.Context, method string, _ json.RawMessage) error {
	s.w.AddEvent("notify "+method, nil)
	return s.endCause()
}

func (s *FakeSession) AnswerServerQuestion(_ context.Context, id json.RawMessage, _ session.Reply) error {
	s.w.AddEvent("respond "+string(id), nil)
	return s.endCause()
}

func (s *FakeSession) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	s.Emit = say
	opened()
	<-ctx.Done()
	return nil
}

func (s *FakeSession) endCause() error { return s.end.Cause() }

func (s *FakeSession) Close()                { s.end.Signal(session.ErrEnded) }
func (s *FakeSession) Done() <-chan struct{} { return s.end.Done() }

// ScriptedServers are servers that answer requests other than calls. A test sets their tools.
type ScriptedServers struct {
	W             *Harness
	Tools         string // the current list
	ToolsLearned  bool
	OnRefresh     func()   // called by RefreshTools
	Asked         []string // received methods
	Sent          []string // received requests: server and params
	Sessions      []*FakeSession
	HangingServer string                       // the server that does not answer ListPrimitives
	Primitives    map[string][]json.RawMessage // by server and method
	Reply         func(context.Context, *session.Request) (session.Reply, error)
}

func (r *ScriptedServers) Open(server string) (session.Session, session.Reply, error) {
	s := &FakeSession{Doer: r.W.Surface(server), Server: server, w: r.W, end: session.NewEndSignal()}
	r.Sessions = append(r.Sessions, s)
	return s, session.Reply{Result: json.RawMessage(`{}`)}, nil
}

func (r *ScriptedServers) Relay(ctx context.Context, server string, q *session.Request) (session.Reply, error) {
	r.Sent = append(r.Sent, server+" "+string(q.Params))
	r.Asked = append(r.Asked, q.Method)
	if r.Reply != nil {
		return r.Reply(ctx, q)
	}
	return session.Reply{Result: json.RawMessage(`{"x":1,"tools":[` + r.Tools + `],"nextCursor":"c"}`)}, nil
}

// Tools for a Harness with ScriptedServers.
const (
	Reads   = `{"name":"reads","inputSchema":{"type":"object","required":["a"]},"annotations":{"readOnlyHint":true}}`
	Deletes = `{"name":"deletes","annotations":{"destructiveHint":true}}`
	Denied  = `{"name":"denied"}`
)

func (r *ScriptedServers) AddDefinitions(_ string, definitions []json.RawMessage) bool {
	if !r.ToolsLearned {
		return false
	}
	all := []string{Reads}
	for _, d := range definitions {
		all = append(all, string(d))
	}
	r.W.SetTools(all...)
	return true
}

func (r *ScriptedServers) RefreshTools(context.Context, string, time.Time) {
	if r.OnRefresh != nil {
		r.OnRefresh()
	}
}

func (r *ScriptedServers) ListPrimitives(ctx context.Context, server, method, _ string) ([]json.RawMessage, error) {
	if r.HangingServer == server {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.Primitives[server+" "+method], nil
}

// NewRequest returns a client's request that belongs to no session.
func NewRequest(method, params string) *session.Request {
	caller := AgentCaller
	return &session.Request{ID: json.RawMessage("1"), Method: method, Params: json.RawMessage(params), Caller: &caller}
}

// QueryableLog adds queries to Harness's activity log.
type QueryableLog struct{ *Harness }

func (l QueryableLog) List(context.Context, activity.Filter) (activity.RecordPage, error) {
	return activity.RecordPage{Records: l.Logged}, nil
}
func (l QueryableLog) Get(context.Context, string) (activity.Record, error) {
	return activity.Record{}, nil
}
func (l QueryableLog) Health() activity.Health { return activity.Health{} }

// CallsByServer counts the recorded calls.
func (l QueryableLog) CallsByServer(context.Context, time.Time) (map[string]int64, error) {
	calls := map[string]int64{}
	for _, r := range l.Logged {
		calls[r.ServerName]++
	}
	return calls, nil
}

// Restart and RestartWhenDrained record a restart.
func (w *Harness) Restart(string) error { w.AddEvent("restart", nil); return nil }

func (w *Harness) RestartWhenDrained(_ context.Context, _ string, begin func() error) error {
	w.AddEvent("restart quietly", nil)
	if w.RestartErr != nil {
		return w.RestartErr
	}
	return begin()
}

// RetrieveResult is a result of retrieve_tools.
type RetrieveResult struct {
	Query       string
	Total       int
	Tools       []RetrievedTool
	Usage       string `json:"usage_instructions"`
	Notice      string
	Away        []struct{ Server, State string } `json:"not_connected"`
	Disabled    []struct{ Name, Server, Description, Status string }
	Remediation map[string]string
}

// RetrievedTool is a tool in a RetrieveResult.
type RetrievedTool struct {
	Name, Server, Description, Signature string
	InputSchema                          json.RawMessage
	Score                                float64
	Annotations                          json.RawMessage
	CallWith                             string `json:"call_with"`
	Inferred                             string `json:"inferred_operation"`
	Note                                 string
	Deprecated                           bool
}

// ParseRetrieveResult parses a result of retrieve_tools.
func (w *Harness) ParseRetrieveResult(raw json.RawMessage, err error) (answer RetrieveResult) {
	w.T.Helper()
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	if err != nil {
		w.T.Fatalf("%v in %s", err, raw)
	}
	return answer
}
