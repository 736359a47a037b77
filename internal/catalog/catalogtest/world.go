// Package catalogtest is a catalog with everything around it in memory: servers
// that answer what a test says, a log, results and decisions that are kept. Tests
// of what stands on a catalog put their own subject on top.
//
// It guarantees that what happens is noted in the order in which it happens, and
// that a tools/call without the proof of its decision fails the test. It is for
// tests only, and knows none of the packages above catalog.
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
	"mcpproxy/internal/gate/approval/approvaltest"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// Logger discards what it is told.
var Logger = slog.New(slog.DiscardHandler)

// AnAgent and APerson are callers.
var (
	AnAgent = auth.Caller{Actor: auth.Actor{Kind: auth.Agent}, Source: activity.SourceMCP, SessionID: "session"}
	APerson = auth.Caller{Actor: auth.Actor{Kind: auth.Admin}, Source: activity.SourceCLI}
)

// World is a catalog with its surroundings. It is the log, the results, and what
// is behind the gate.
type World struct {
	T       testing.TB
	Config  func() *config.Config // that is live
	Catalog *catalog.Catalog
	// Approvals are what is decided, as the store would keep it, and Book is on
	// top of them.
	Approvals approvaltest.Memory
	Book      *approval.Book

	mu       sync.Mutex // guards what follows
	Events   []string   // in which order the log and the servers were asked
	Begun    []activity.Record
	Appended []activity.Record // refusals, too
	Logged   []activity.Record // what the log is asked for
	Ended    []activity.Outcome
	Results  map[string]store.StoredResult

	BeginErr, EditErr error
	RestartErr        error  // for an agent
	Beginning         func() // happens while a record is written

	// Answer answers each tools/call, and Others everything else.
	Answer func(ctx context.Context, r *session.Request) (session.Reply, error)
	Others Others

	live func(*config.Config)
}

// Others is what servers do besides answering calls.
type Others interface {
	Relay(ctx context.Context, server string, r *session.Request) (session.Reply, error)
	Open(server string) (session.Session, session.Reply, error)
	Offered(ctx context.Context, server, method, list string) ([]json.RawMessage, error)
	Learn(server string, definitions []json.RawMessage) bool
	Refresh(ctx context.Context, server string, since time.Time)
}

// New makes a World with the server s, which has these tools.
func New(t testing.TB, change func(*config.Config), definitions ...string) *World {
	t.Helper()
	w := &World{T: t, Results: map[string]store.StoredResult{}, Beginning: func() {}}
	var current struct { // a struct of its own may not keep it
		sync.Mutex
		is func() *config.Config
	}
	w.live = func(next *config.Config) {
		current.Lock()
		defer current.Unlock()
		current.is = func() *config.Config { return next }
	}
	w.Config = func() *config.Config {
		current.Lock()
		defer current.Unlock()
		return current.is()
	}
	w.live(config.Default())
	w.Config().Servers = []config.Server{{Name: "s", Protocol: "stdio", Enabled: true, Trust: config.TrustAuto}}
	if change != nil {
		change(w.Config())
	}
	w.Answer = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(`{"content":[{"type":"text","text":"done"}],"x":9007199254740993}`)}, nil
	}
	w.Others = &Relays{W: w}
	w.Book = w.Approvals.Book()
	w.Catalog = catalog.New(catalog.Options{Servers: w.Config().Servers, Infer: w.Config().Intent.InferHints, Judge: w.Config().Intent.JudgeArguments, Book: w.Book, Logger: Logger})
	w.List(definitions...)
	return w
}

// List makes the definitions the tools of server s.
func (w *World) List(definitions ...string) {
	w.T.Helper()
	w.ListOn("s", definitions...)
	w.Reload(func(*config.Config) {})
}

// ListOn makes the definitions the tools of a server.
func (w *World) ListOn(server string, definitions ...string) {
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
	w.Catalog.Refresh()
}

// Reload makes another configuration the one that is live.
func (w *World) Reload(change func(*config.Config)) {
	w.T.Helper()
	if err := w.Edit(func(c *config.Config) error { change(c); return nil }); err != nil {
		w.T.Fatal(err)
	}
}

// Edit does the same with what may fail.
func (w *World) Edit(change func(*config.Config) error) error {
	if w.EditErr != nil {
		return w.EditErr
	}
	next := *w.Config()
	next.Servers = slices.Clone(next.Servers)
	if err := change(&next); err != nil {
		return err
	}
	commit, err := w.Catalog.Prepare(&next)
	if err != nil {
		return err
	}
	w.live(&next)
	commit()
	return nil
}

// Note adds an event, and keeps what belongs to it.
func (w *World) Note(event string, keep func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Events = append(w.Events, event)
	if keep != nil {
		keep()
	}
}

// Begin, End, Append and Refuse write the log: see Log.
func (w *World) Begin(r *activity.Record) error {
	if w.BeginErr != nil {
		return w.BeginErr
	}
	w.Beginning()
	r.ID = "record"
	w.Note("begin", func() { w.Begun = append(w.Begun, *r) })
	return nil
}

func (w *World) End(_ string, o activity.Outcome) error {
	w.Note("end", func() { w.Ended = append(w.Ended, o) })
	return nil
}

func (w *World) Append(r *activity.Record) error {
	r.ID = "refusal"
	w.Note("append", func() { w.Appended = append(w.Appended, *r) })
	return nil
}

func (w *World) Refuse(r *activity.Record) error {
	r.ID, r.Type, r.Status = "refusal", activity.PolicyDecision, activity.Blocked
	w.Note("refuse", func() { w.Appended = append(w.Appended, *r) })
	return nil
}

// PutResult and GetResult keep results.
func (w *World) PutResult(_ context.Context, r store.StoredResult) error {
	w.Results[r.Handle] = r
	return nil
}

func (w *World) GetResult(_ context.Context, handle string) (store.StoredResult, error) {
	r, ok := w.Results[handle]
	if !ok {
		return r, problem.New(problem.NotFound, "no such handle", "")
	}
	return r, nil
}

// Offered, Learn and Refresh are those of Others.
func (w *World) Offered(ctx context.Context, server, method, list string) ([]json.RawMessage, error) {
	return w.Others.Offered(ctx, server, method, list)
}

func (w *World) Learn(server string, definitions []json.RawMessage) bool {
	return w.Others.Learn(server, definitions)
}

func (w *World) Refresh(ctx context.Context, server string, since time.Time) {
	w.Others.Refresh(ctx, server, since)
}

// Surface is a server as it is behind the gate.
func (w *World) Surface(server string) session.Surface { return surface{w, server} }

type surface struct {
	w      *World
	server string
}

func (f surface) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Method != "tools/call" {
		return f.w.Others.Relay(ctx, f.server, r)
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
	f.w.Note("call "+string(asked.Arguments), nil)
	return f.w.Answer(ctx, r)
}

func (f surface) Open(context.Context, *session.Request) (session.Session, session.Reply, error) {
	return f.w.Others.Open(f.server)
}

// Session is a client's session with a server. It notes what it is told.
type Session struct {
	session.Doer
	Server string
	Say    func(session.Event) // of who listens

	w   *World
	end *session.End
}

func (s *Session) Notify(_ context.Context, method string, _ json.RawMessage) error {
	s.w.Note("notify "+method, nil)
	return s.over()
}

func (s *Session) Respond(_ context.Context, id json.RawMessage, _ session.Reply) error {
	s.w.Note("respond "+string(id), nil)
	return s.over()
}

func (s *Session) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	s.Say = say
	opened()
	<-ctx.Done()
	return nil
}

func (s *Session) over() error { return s.end.Cause() }

func (s *Session) Close()                { s.end.Fail(session.ErrEnded) }
func (s *Session) Done() <-chan struct{} { return s.end.Done() }

// Relays are servers that pass on what is no call; their list of tools is what a
// test says.
type Relays struct {
	W        *World
	Tools    string // the list now
	Learns   bool
	Renew    func()   // by Refresh
	Asked    []string // methods
	Sent     []string // server and params
	Sessions []*Session
	Hangs    string                       // server that does not answer when it is asked what it offers
	Offers   map[string][]json.RawMessage // by server and method
	Replies  func(context.Context, *session.Request) (session.Reply, error)
}

func (r *Relays) Open(server string) (session.Session, session.Reply, error) {
	s := &Session{Doer: r.W.Surface(server), Server: server, w: r.W, end: session.NewEnd()}
	r.Sessions = append(r.Sessions, s)
	return s, session.Reply{Result: json.RawMessage(`{}`)}, nil
}

func (r *Relays) Relay(ctx context.Context, server string, q *session.Request) (session.Reply, error) {
	r.Sent = append(r.Sent, server+" "+string(q.Params))
	r.Asked = append(r.Asked, q.Method)
	if r.Replies != nil {
		return r.Replies(ctx, q)
	}
	return session.Reply{Result: json.RawMessage(`{"x":1,"tools":[` + r.Tools + `],"nextCursor":"c"}`)}, nil
}

// The tools of a World that relays.
const (
	Reads   = `{"name":"reads","inputSchema":{"type":"object","required":["a"]},"annotations":{"readOnlyHint":true}}`
	Deletes = `{"name":"deletes","annotations":{"destructiveHint":true}}`
	Denied  = `{"name":"denied"}`
)

func (r *Relays) Learn(_ string, definitions []json.RawMessage) bool {
	if !r.Learns {
		return false
	}
	all := []string{Reads}
	for _, d := range definitions {
		all = append(all, string(d))
	}
	r.W.List(all...)
	return true
}

func (r *Relays) Refresh(context.Context, string, time.Time) {
	if r.Renew != nil {
		r.Renew()
	}
}

func (r *Relays) Offered(ctx context.Context, server, method, _ string) ([]json.RawMessage, error) {
	if r.Hangs == server {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.Offers[server+" "+method], nil
}

// Asked is a client's request that stands for itself.
func Asked(method, params string) *session.Request {
	caller := AnAgent
	return &session.Request{ID: json.RawMessage("1"), Method: method, Params: json.RawMessage(params), Caller: &caller}
}

// Log is the log with what can be asked of it.
type Log struct{ *World }

func (l Log) List(context.Context, activity.Filter) (activity.Page, error) {
	return activity.Page{Records: l.Logged}, nil
}
func (l Log) Get(context.Context, string) (activity.Record, error) { return activity.Record{}, nil }
func (l Log) Health() activity.Health                              { return activity.Health{} }

// Calls counts the calls on record.
func (l Log) Calls(context.Context, time.Time) (map[string]int64, error) {
	calls := map[string]int64{}
	for _, r := range l.Logged {
		calls[r.ServerName]++
	}
	return calls, nil
}

// Restart and RestartQuietly are what is done with servers.
func (w *World) Restart(string) error { w.Note("restart", nil); return nil }

func (w *World) RestartQuietly(_ context.Context, _ string, begin func() error) error {
	w.Note("restart quietly", nil)
	if w.RestartErr != nil {
		return w.RestartErr
	}
	return begin()
}

// Retrieved is an answer of retrieve_tools.
type Retrieved struct {
	Query       string
	Total       int
	Tools       []Found
	Usage       string `json:"usage_instructions"`
	Notice      string
	Away        []struct{ Server, State string } `json:"not_connected"`
	Disabled    []struct{ Name, Server, Description, Status string }
	Remediation map[string]string
}

// Found is a tool in it.
type Found struct {
	Name, Server, Description, Signature string
	InputSchema                          json.RawMessage
	Score                                float64
	Annotations                          json.RawMessage
	CallWith                             string `json:"call_with"`
	Inferred                             string `json:"inferred_operation"`
	Note                                 string
	Deprecated                           bool
}

// Retrieved reads an answer of retrieve_tools.
func (w *World) Retrieved(raw json.RawMessage, err error) (answer Retrieved) {
	w.T.Helper()
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	if err != nil {
		w.T.Fatalf("%v in %s", err, raw)
	}
	return answer
}
