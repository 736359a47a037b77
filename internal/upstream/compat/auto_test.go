//go:build unix

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/upstream"
)

// quiz is a server that asks. Its tools:
//
//	ask text      asks the client, answers with its answer, or with the code of its refusal
//	meet text     like ask, after another meet has begun
//	zombie text   asks after it was cancelled
//	roots, url    asks for the roots, or for a visit of a page
//	plain, hang   answers at once, or never
//	open, pid     number of questions without an answer; number of the process
func quiz() *mcptest.Server {
	var s *mcptest.Server
	tool := func(name string, handle func(*mcptest.Call) (string, error)) mcptest.Tool {
		return mcptest.Tool{Definition: mcptest.ToolDefinition(name), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			text, err := handle(c)
			return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, encodeJSONString(text)), err
		}}
	}
	ask := func(c *mcptest.Call, method, params string) (string, error) {
		answer, err := c.SendRequest(method, json.RawMessage(params))
		switch {
		case err != nil:
			return "", err
		case answer.Error != nil:
			return fmt.Sprint("refused ", answer.Error.Code), nil
		}
		text, _ := wirejson.String(wirejson.Find(answer.Result, "said"))
		return text, nil
	}
	about := func(c *mcptest.Call) string { return `{"message":` + string(wirejson.Find(c.Arguments, "text")) + `}` }
	met := make(chan struct{})
	var meetings atomic.Int64
	pid := slices.DeleteFunc(mcptest.SampleTools(), func(t mcptest.Tool) bool { return t.Definition != mcptest.ToolDefinition("pid") })
	s = mcptest.New(mcptest.Options{
		Capabilities: `{"tools":{"listChanged":true},"resources":{"subscribe":true}}`,
		Other:        func(string, *mcptest.Call) (json.RawMessage, error) { return json.RawMessage("{}"), nil },
	}, append(pid,
		tool("ask", func(c *mcptest.Call) (string, error) { return ask(c, mcp.Elicit, about(c)) }),
		tool("meet", func(c *mcptest.Call) (string, error) {
			if meetings.Add(1) == 2 {
				close(met)
			}
			<-met
			return ask(c, mcp.Elicit, about(c))
		}),
		tool("zombie", func(c *mcptest.Call) (string, error) {
			<-c.Context().Done()
			return ask(c, mcp.Elicit, about(c))
		}),
		tool("roots", func(c *mcptest.Call) (string, error) { return ask(c, "roots/list", `{}`) }),
		tool("url", func(c *mcptest.Call) (string, error) {
			return ask(c, mcp.Elicit, `{"mode":"url","message":"?","elicitationId":"1","url":"https://example.com/"}`)
		}),
		tool("plain", func(*mcptest.Call) (string, error) { return "plain", nil }),
		tool("hang", func(c *mcptest.Call) (string, error) { <-c.Context().Done(); return "", mcptest.ErrNoAnswer }),
		tool("open", func(*mcptest.Call) (string, error) { return fmt.Sprint(s.OpenQuestions()), nil }),
	)...)
	return s
}

// picky is a server that lists another tool, ask, to a client that it can ask.
func picky() *mcptest.Server {
	all := slices.DeleteFunc(mcptest.SampleTools(), func(t mcptest.Tool) bool { return t.Definition != mcptest.ToolDefinition("pid") })
	return mcptest.New(mcptest.Options{OnInitialize: func(s *mcptest.Server, params json.RawMessage) {
		if wirejson.Find(wirejson.Find(params, "capabilities"), "elicitation") != nil {
			s.SetTools(append(slices.Clone(all), mcptest.Tool{Definition: mcptest.ToolDefinition("ask"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
				answer, err := c.SendRequest(mcp.Elicit, json.RawMessage(`{"message":"?"}`))
				return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, wirejson.Find(answer.Result, "said")), err
			}})...)
		}
	}}, all...)
}

// overSSE serves a server with one client at a time over the transport of 2024-11-05.
func overSSE(s *mcptest.Server) http.Handler {
	var current atomic.Pointer[io.PipeWriter]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
			w.(http.Flusher).Flush()
			_, _ = current.Load().Write(append(body, '\n'))
			return
		}
		if r.Header.Get("Mcp-Session-Id") != "" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		toServer, lines := io.Pipe()
		current.Store(lines)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: endpoint\ndata: /mcp\n\n")
		w.(http.Flusher).Flush()
		go func() { <-r.Context().Done(); _ = lines.Close() }()
		_ = s.ServeStdio(r.Context(), toServer, writerFunc(func(line []byte) {
			_, _ = w.Write(wirejson.AppendSSEEvent(nil, "message", bytes.TrimSpace(line)))
			w.(http.Flusher).Flush()
		}))
	})
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// quizzes are specs of the quiz over every transport with sessions.
func quizzes(t testing.TB) []Spec {
	all := []Spec{stdioSpec(t, "stdio", "quiz"), httpSpec(t, "http", quiz()), {Name: "sse", Transport: upstream.SSE, URL: mcptest.Serve(t, overSSE(quiz())).URL}}
	for i := range all {
		all[i].Auto = true
	}
	return all
}

// player is a client that answers each question with its name and the question.
type player struct {
	f            *fixture
	t            testing.TB
	server, name string
	c            *Session
	wrong        atomic.Int64 // questions that are not about a call of this client
}

func (f *fixture) player(t testing.TB, server, name, capabilities string) *player {
	t.Helper()
	p := &player{f: f, t: t, server: server, name: name}
	p.open(capabilities)
	return p
}

func (p *player) open(capabilities string) {
	p.t.Helper()
	c, a, err := p.f.Converse(p.t.Context(), p.server, session.Request{ID: json.RawMessage(`"i"`), Method: mcp.Initialize,
		Params: json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"c","version":"1"}}`)})
	if err != nil || c == nil {
		p.t.Fatalf("%s: no session: %v %+v", p.server, err, a)
	}
	p.c = c
	if err := c.NotifyServer(p.t.Context(), mcp.Initialized, nil); err != nil {
		p.t.Fatal(err)
	}
}

// use calls a tool about a text that begins with the name of the client, and returns the text of the result.
func (p *player) use(ctx context.Context, tool, text string) (string, error) {
	text = p.name + " " + text
	reply, err := p.f.Call(ctx, p.server, Call{Tool: tool, Passed: &Passed{Session: p.c, Request: session.Request{
		ID: json.RawMessage("1"), Method: mcp.CallTool, Params: fmt.Appendf(nil, `{"name":%q,"arguments":{"text":%q}}`, tool, text),
		Say: func(e session.Event) {
			if e.ID == nil {
				return
			}
			message, _ := wirejson.String(wirejson.Find(e.Params, "message"))
			if message != "?" && !strings.HasPrefix(message, p.name+" ") {
				p.wrong.Add(1)
			}
			if err := p.c.AnswerServerQuestion(ctx, bytes.Clone(e.ID), session.Reply{Result: fmt.Appendf(nil, `{"said":%q}`, p.name+" says "+message)}); err != nil && ctx.Err() == nil {
				p.t.Error(err)
			}
		}}}})
	if err == nil && reply.Error != nil {
		err = reply.Error
	}
	var result struct{ Content []struct{ Text string } }
	_ = json.Unmarshal(reply.Result, &result)
	if len(result.Content) != 1 {
		return "", err
	}
	return result.Content[0].Text, err
}

func (p *player) must(tool, text string) string {
	p.t.Helper()
	got, err := p.use(p.t.Context(), tool, text)
	if err != nil {
		p.t.Fatalf("%s, %s: %s: %v", p.server, p.name, tool, err)
	}
	return got
}

// answer is what the server gets if the question about a text reaches the client of the call.
func (p *player) answer(text string) string { return p.name + " says " + p.name + " " + text }

const (
	canElicit = `{"elicitation":{}}`
	refused   = "refused -32601"
)

// moved waits until the session of the client has ended, so that the client gets one of its own.
func (p *player) moved() {
	p.t.Helper()
	select {
	case <-p.c.Done():
	case <-time.After(patience):
		p.t.Fatalf("%s, %s: the session goes on", p.server, p.name)
	}
	if !session.IsMoved(p.c) {
		p.t.Errorf("%s, %s: the session ended: %v", p.server, p.name, p.c.Cause())
	}
}

// TestTwoCallsThatAsk: two clients share a server, and each has a call in flight that asks. No question reaches the
// wrong client. From then on, each client has its own session, in which both questions are answered.
func TestTwoCallsThatAsk(t *testing.T) {
	t.Parallel()
	for _, spec := range quizzes(t) {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.ApplySpecs([]Spec{spec})
			f.untilReady(t, spec.Name, 0)
			a, b := f.player(t, spec.Name, "a", canElicit), f.player(t, spec.Name, "b", canElicit)
			var wg sync.WaitGroup
			for _, p := range []*player{a, b} {
				wg.Go(func() {
					got, err := p.use(t.Context(), "meet", "x")
					if err != nil || got != p.answer("x") && (got != refused || spec.Name == "http") || p.wrong.Load() != 0 {
						t.Errorf("%s: %q, %v", p.name, got, err)
					}
				})
			}
			wg.Wait()
			if spec.Name == "sse" {
				return // this server has one session
			}
			for _, p := range []*player{a, b} {
				p.moved()
				if _, err := p.use(t.Context(), "plain", ""); !session.IsNotSent(err) || !errors.Is(err, session.ErrMoved) {
					t.Errorf("a call in the session that has ended: %v", err)
				}
				p.open(canElicit)
			}
			for _, p := range []*player{a, b} {
				wg.Go(func() {
					for i := range 20 {
						text := fmt.Sprint(i)
						if got := p.must("ask", text); got != p.answer(text) {
							t.Errorf("%s: %q", p.name, got)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestNeedIsLearned: clients share one process. After the first question, only clients that can answer such questions
// get their own session. A new server with the known need gives it to them at once.
func TestNeedIsLearned(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var learned []string
	f := newFixture(t, func(o *Options) {
		o.NeedLearned = func(server string, k upstream.KnownNeed) {
			mu.Lock()
			defer mu.Unlock()
			learned = append(learned, server+" "+string(k.Need))
		}
	})
	spec := stdioSpec(t, "stdio", "quiz")
	spec.Auto = true
	f.ApplySpecs([]Spec{spec})
	f.untilReady(t, "stdio", 0)
	a, b, mute := f.player(t, "stdio", "a", canElicit), f.player(t, "stdio", "b", canElicit), f.player(t, "stdio", "mute", `{"sampling":{}}`)
	if state, _ := f.State("stdio"); state.Restarts != 0 {
		t.Errorf("%d reconnects before the first question", state.Restarts)
	}
	one := a.must("pid", "")
	if b.must("pid", "") != one || mute.must("pid", "") != one {
		t.Error("the clients have several processes")
	}
	if got := mute.must("ask", "x"); got != refused || mute.wrong.Load() != 0 {
		t.Errorf("a client without the capability: %q", got)
	}
	a.moved()
	b.moved()
	a.open(canElicit)
	b.open(canElicit)
	if got := a.must("ask", "y"); got != a.answer("y") {
		t.Errorf("in a session of its own: %q", got)
	}
	f.untilReady(t, "stdio", 1) // the client that could not be asked continues on a connection without the capability
	again := mute.must("pid", "")
	pids := []string{one, again, a.must("pid", ""), b.must("pid", "")}
	if slices.Sort(pids); len(slices.Compact(pids)) != 4 {
		t.Errorf("the processes are %q", pids)
	}
	if got := mute.must("ask", "z"); got != refused {
		t.Errorf("a client without the capability: %q", got)
	}
	if mute.must("pid", "") != again {
		t.Error("the server was restarted again")
	}
	mu.Lock()
	if len(learned) != 2 || !strings.HasPrefix(learned[0], "stdio same:") || learned[1] != "stdio elicitation" {
		t.Errorf("learned %q", learned)
	}
	mu.Unlock()
	if known := f.SessionNeeds("stdio"); len(known) != 1 || known[0].Need != upstream.NeedElicitation {
		t.Errorf("the needs are %v", known)
	}

	spec.Env = map[string]string{"OTHER": "launch"}
	for k, v := range stdioSpec(t, "stdio", "quiz").Env {
		spec.Env[k] = v
	}
	spec.Needs = []upstream.KnownNeed{{Need: upstream.NeedElicitation}}
	f.ApplySpecs([]Spec{spec})
	f.until(t, "the new server is ready", func() bool { s := f.last("stdio"); return s.Phase == Ready && fmt.Sprint(s.PID) != again })
	shared := f.pidOf("stdio")
	if c := f.player(t, "stdio", "c", canElicit); c.must("pid", "") == fmt.Sprint(shared) {
		t.Error("the known need has no effect")
	}
	if c := f.player(t, "stdio", "d", `{"roots":{}}`); c.must("pid", "") != fmt.Sprint(shared) {
		t.Error("a client without the need has a process")
	}
}

// TestListsByCapabilities: a server lists another tool to clients that it can ask. The clients that it cannot ask share a
// process and see what they see on their own. Each of the others has its own process, with the tool. This is stored, so the
// server starts once from then on.
func TestListsByCapabilities(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	learned := map[string][]upstream.KnownNeed{}
	f := newFixture(t, func(o *Options) {
		o.NeedLearned = func(server string, k upstream.KnownNeed) {
			mu.Lock()
			defer mu.Unlock()
			learned[server] = append(learned[server], k)
		}
	})
	dir, specs := t.TempDir(), []Spec{stdioSpec(t, "picky", "picky"), stdioSpec(t, "quiz", "quiz")}
	for i := range specs {
		specs[i].Auto = true
		specs[i].Args, specs[i].Command = []string{"-c", `echo started >> "$0"; exec "$1"`, filepath.Join(dir, specs[i].Name), specs[i].Command}, "sh"
	}
	starts := func(server string) int {
		text, _ := os.ReadFile(filepath.Join(dir, server)) // none before the first start
		return bytes.Count(text, []byte("started"))
	}
	process := func(server string) int { state, _ := f.State(server); return state.PID }
	list := func(p *player) string {
		reply, err := p.f.Relay(t.Context(), p.server, p.c, session.Request{ID: json.RawMessage("2"), Method: mcp.ListTools})
		if err != nil || reply.Error != nil {
			t.Fatal(err, reply.Error)
		}
		return string(reply.Result)
	}
	own := newFixture(t)
	perClient := stdioSpec(t, "own", "picky")
	own.ApplySpecs([]Spec{perClient})
	own.untilReady(t, "own", 0)
	alone := list(own.player(t, "own", "alone", `{}`))
	for round, want := range []map[string]int{{"picky": 3, "quiz": 2}, {"picky": 1, "quiz": 1}} {
		before := map[string]int{"picky": starts("picky"), "quiz": starts("quiz")}
		was := map[string]int{"picky": process("picky"), "quiz": process("quiz")}
		f.ApplySpecs(specs)
		for _, s := range specs {
			f.until(t, s.Name+" is ready", func() bool { return f.last(s.Name).Phase == Ready && f.last(s.Name).PID != was[s.Name] })
			if n := starts(s.Name) - before[s.Name]; n != want[s.Name] {
				t.Errorf("%s, round %d: %d starts", s.Name, round, n)
			}
		}
		shared := fmt.Sprint(f.pidOf("picky"))
		for range 2 {
			if p := f.player(t, "picky", "mute", `{}`); p.must("pid", "") != shared || list(p) != alone {
				t.Errorf("round %d: a client without capabilities has its own process, or sees %s", round, list(p))
			}
			p := f.player(t, "picky", "able", canElicit)
			if got := p.must("ask", ""); got != "able says ?" || p.must("pid", "") == shared {
				t.Errorf("round %d: a client that can be asked: %q", round, got)
			}
			if f.player(t, "quiz", "able", canElicit).must("pid", "") != fmt.Sprint(f.pidOf("quiz")) {
				t.Errorf("round %d: a client has its own process without a need", round)
			}
		}
		mu.Lock()
		if p, q := learned["picky"], learned["quiz"]; len(p) != 1 || p[0].Need != upstream.NeedCapabilities || len(q) != 1 {
			t.Errorf("round %d: learned %v and %v", round, p, q)
		}
		for i := range specs {
			specs[i].Needs = learned[specs[i].Name]
			specs[i].ConnectTimeout = patience // another launch
		}
		mu.Unlock()
	}
}

// TestQuestionsAboutTheSession checks that questions that do not belong to a single request are refused on a shared
// connection, and that clients then get their own sessions.
func TestQuestionsAboutTheSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	specs := quizzes(t)[:2]
	f.ApplySpecs(specs)
	for _, spec := range specs {
		f.untilReady(t, spec.Name, 0)
		for tool, capabilities := range map[string]string{"url": `{"elicitation":{"form":{},"url":{}}}`, "roots": `{"roots":{}}`} {
			p := f.player(t, spec.Name, "p", capabilities)
			first := map[bool]int{true: 2, false: 1}[tool == "roots" && spec.Name == "stdio"] // the first may be the one of the start
			for n := range first {
				if got := p.must(tool, ""); got != refused {
					t.Errorf("%s, %s, question %d: %q", spec.Name, tool, n, got)
				}
			}
			p.moved()
			p.open(capabilities)
			if got := p.must(tool, ""); !strings.HasPrefix(got, "p says ") {
				t.Errorf("%s, %s, own session: %q", spec.Name, tool, got)
			}
		}
	}
}

// TestStateNeedsOwnSessions checks that each client of a server with state per session gets its own session, even a
// client that cannot be asked.
func TestStateNeedsOwnSessions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := stdioSpec(t, "stdio", "quiz")
	spec.Auto, spec.Needs = true, []upstream.KnownNeed{{Need: upstream.NeedState}}
	f.ApplySpecs([]Spec{spec})
	f.untilReady(t, "stdio", 0)
	pids := []string{fmt.Sprint(f.pidOf("stdio"))}
	for range 3 {
		pids = append(pids, f.player(t, "stdio", "p", `{}`).must("pid", ""))
	}
	if slices.Sort(pids); len(slices.Compact(pids)) != 4 {
		t.Errorf("the processes are %q", pids)
	}
}

// TestQuestionOfModernClient: a modern client without a session answers a question on the shared connection, and has its own
// from then on.
func TestQuestionOfModernClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := stdioSpec(t, "pipe", "asker")
	spec.Auto = true
	f.ApplySpecs([]Spec{spec})
	f.untilReady(t, "pipe", 0)
	for n := range 3 {
		first, _, err := f.askModern(t.Context(), "pipe", "me", n, "")
		if err != nil || !isInputRequired(first.Result) {
			t.Fatalf("%d: %s %v", n, first.Result, err)
		}
		last, _, err := f.askModern(t.Context(), "pipe", "me", n, fmt.Sprintf(`,"requestState":%s,"inputResponses":{"input-1":{"action":"accept","content":{"n":%d}}}`,
			wirejson.Find(first.Result, "requestState"), n))
		if want := fmt.Sprintf(`"answer":{"action":"accept","content":{"n":%d}}`, n); err != nil || !strings.Contains(string(last.Result), want) {
			t.Fatalf("%d: %s %v", n, last.Result, err)
		}
		open := &f.clients("pipe").sessionSet
		open.mu.Lock()
		for s := range open.all {
			if s.kind != kindOwn && !s.isEnding() || n == 0 && s.kind == kindOwn {
				t.Errorf("%d: a session of kind %d", n, s.kind)
			}
		}
		open.mu.Unlock()
	}
}

// TestQuestionsUnderLoad: 8 clients share one session, which they keep, and ask 1,000 questions with hostile timing: several
// calls are in flight, calls are cancelled while their question is on its way, and a server asks after a cancellation. No
// question reaches another client, and each is answered or refused.
func TestQuestionsUnderLoad(t *testing.T) {
	t.Parallel()
	for _, spec := range quizzes(t) {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.ApplySpecs([]Spec{spec})
			f.untilReady(t, spec.Name, 0)
			var all []*player
			for i := range 8 {
				p := f.player(t, spec.Name, fmt.Sprint("client", i), canElicit)
				if a, err := f.Relay(t.Context(), spec.Name, p.c, session.Request{ID: json.RawMessage("1"), Method: mcp.Subscribe,
					Params: json.RawMessage(`{"uri":"file:///x"}`)}); err != nil || a.Error != nil { // a session with subscriptions stays
					t.Fatal(a.Error, err)
				}
				all = append(all, p)
			}
			for n := range 200 { // one at a time: each is answered
				p, text := all[n%len(all)], fmt.Sprint("alone ", n)
				if got := p.must("ask", text); got != p.answer(text) {
					t.Fatalf("question %d: %q", n, got)
				}
			}
			var answered, rejected, cancelled atomic.Int64
			var alone sync.RWMutex // held for writing by a call that is the only one
			for _, cancels := range []bool{false, true} {
				var wg sync.WaitGroup
				for i, p := range all {
					random := rand.New(rand.NewPCG(33, uint64(i)))
					wg.Go(func() {
						for n := range 50 {
							text := fmt.Sprint(n, cancels)
							ctx, cancel := context.WithCancel(t.Context())
							tool := "ask"
							switch k := random.IntN(10); {
							case !cancels || spec.Name == "http": // no question arrives on a stream that its client has closed
							case k == 0:
								tool = "zombie"
								fallthrough
							case k < 4:
								pause := time.Duration(random.IntN(2000)) * time.Microsecond
								defer time.AfterFunc(pause, cancel).Stop() // at any moment of the call
							}
							only := random.IntN(4) == 0
							begin, end := alone.RLock, alone.RUnlock
							if only {
								begin, end = alone.Lock, alone.Unlock
							}
							begin()
							got, err := p.use(ctx, tool, text)
							end()
							switch {
							case ctx.Err() != nil:
								cancelled.Add(1)
							case err != nil:
								t.Errorf("%s %s: %v", p.name, text, err)
							case got == p.answer(text):
								answered.Add(1)
							case got == refused && spec.Name != "http" && (cancels || !only):
								rejected.Add(1)
							default:
								t.Errorf("%s %s: %q", p.name, text, got)
							}
							cancel()
						}
					})
				}
				wg.Wait()
			}
			t.Logf("%d answered, %d refused, %d calls cancelled", answered.Load(), rejected.Load(), cancelled.Load())
			for _, p := range all {
				if p.wrong.Load() != 0 || p.c.Cause() != nil {
					t.Errorf("%s got %d questions of others; its session ended: %v", p.name, p.wrong.Load(), p.c.Cause())
				}
			}
			limit := time.Now().Add(patience)
			for open := ""; open != "0"; { // refusals follow the end of a request
				if open = all[0].must("open", ""); time.Now().After(limit) {
					t.Fatalf("%s questions are lost", open)
				}
			}
			if spec.Name == "http" && answered.Load() != 800 {
				t.Errorf("%d of 800 answered", answered.Load())
			}
		})
	}
}

// TestForeignAnswer checks that a client cannot answer a question to another client with any ID, and that a late answer
// is discarded.
func TestForeignAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := stdioSpec(t, "stdio", "quiz")
	spec.Auto = true
	f.ApplySpecs([]Spec{spec})
	f.untilReady(t, "stdio", 0)
	a, thief := f.player(t, "stdio", "a", canElicit), f.player(t, "stdio", "thief", canElicit)
	var late json.RawMessage
	call := func(text string, answer func(id json.RawMessage)) string {
		reply, err := f.Call(t.Context(), "stdio", Call{Tool: "ask", Passed: &Passed{Session: a.c, Request: session.Request{
			ID: json.RawMessage("1"), Method: mcp.CallTool, Params: fmt.Appendf(nil, `{"name":"ask","arguments":{"text":%q}}`, text),
			Say: func(e session.Event) { answer(bytes.Clone(e.ID)) }}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(reply.Result)
	}
	say := func(c *Session, id json.RawMessage, text string) {
		if err := c.AnswerServerQuestion(t.Context(), id, session.Reply{Result: fmt.Appendf(nil, `{"said":%q}`, text)}); err != nil {
			t.Error(err)
		}
	}
	if a, err := f.Relay(t.Context(), "stdio", a.c, session.Request{ID: json.RawMessage("1"), Method: mcp.Subscribe, Params: json.RawMessage(`{"uri":"file:///x"}`)}); err != nil || a.Error != nil {
		t.Fatal(a.Error, err)
	}
	got := call("one", func(id json.RawMessage) {
		late = id
		for _, guess := range []json.RawMessage{id, json.RawMessage("1"), json.RawMessage(`"1"`), json.RawMessage("0")} {
			_ = thief.c.AnswerServerQuestion(t.Context(), guess, session.Reply{Result: json.RawMessage(`{"said":"stolen"}`)})
			if !bytes.Equal(guess, id) {
				say(a.c, guess, "guessed")
			}
		}
		say(a.c, id, "first")
	})
	if !strings.Contains(got, `"first"`) {
		t.Errorf("the answer is %s", got)
	}
	got = call("two", func(id json.RawMessage) {
		say(a.c, late, "late")
		say(a.c, id, "second")
		say(a.c, id, "twice")
	})
	if !strings.Contains(got, `"second"`) {
		t.Errorf("the answer is %s", got)
	}
}
