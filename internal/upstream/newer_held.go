package upstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/link"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// held is a request under way at a server of an older revision.
type held struct {
	method       string
	params       json.RawMessage // as the client made them first
	principal    string          // who made it
	key          string          // of the conversations that may be used for it
	conversation *Conversation
	greeting     *greeting
	logs         bool            // the client wants log messages
	token        json.RawMessage // of its progress; nil: it wants none
	quiet        bool            // the server may not ask
	cancel       context.CancelFunc
	expire       *time.Timer
	done         chan struct{} // closed when reply and err are there
	reply        session.Reply
	err          error

	mu      sync.Mutex // guards what follows, and orders what is said
	say     func(session.Event)
	kept    []session.Event          // while nobody is there
	size    int                      // of them
	asked   map[string]session.Event // by the key that the client gets
	asks    int
	arrived chan struct{} // cap 1: something was asked
}

// startNewer starts a request in a conversation that it has for itself.
func (s *Set) startNewer(ctx context.Context, sv *server, live *liveLink, r *session.Request) (*held, error) {
	a := aboutOf(r.Params)
	quiet := ""
	switch {
	case mayAsk(r.Method):
	case strings.HasSuffix(r.Method, "/list") && string(a.capabilities) != "{}":
		quiet = "\x00quiet" // what is refused in this session no call is to go without
	default:
		a.capabilities = json.RawMessage("{}")
	}
	h := &held{method: r.Method, params: bytes.Clone(r.Params), principal: principal(r), key: principal(r) + "\x00" + string(a.info) + "\x00" + string(a.capabilities) + quiet, quiet: quiet != "", greeting: live.greeting,
		logs: a.level != "", token: bytes.Clone(link.ProgressToken(r.Params)), done: make(chan struct{}), asked: map[string]session.Event{}, arrived: make(chan struct{}, 1)}
	c, err := s.checkout(ctx, sv, h.key, a, !h.quiet, false)
	if err != nil {
		return nil, err
	}
	h.conversation = c
	if a.level != "" && c.level != a.level && bytes.Contains(live.greeting.capabilities, []byte(`"logging"`)) {
		level := append(rawjson.AppendString([]byte(`{"level":`), a.level), '}')
		if _, err := c.pass(ctx, &session.Request{ID: s.nextID(), Method: mcp.SetLevel, Params: level}); err != nil {
			c.End()
			return nil, err
		}
		c.level = a.level
	}
	if r.Method == mcp.CallTool { // it may have waited for the session
		if err := s.recheck(ctx, sv, live, c, r); err != nil {
			sv.newer.giveBack(h.key, c)
			return nil, err
		}
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.cancel = cancel
	q := &session.Request{ID: s.nextID(), Method: r.Method, Params: bytes.Clone(a.params), Say: h.event}
	sv.newer.wg.Go(func() {
		defer close(h.done)
		h.reply, h.err = s.passHeld(run, live, c, q)
	})
	return h, nil
}

// mayAsk says whether the server may ask something before it answers: the
// others are made without capabilities, so that it does not. But what a server
// lists may depend on them, so lists are made with those of the client, and what
// is asked then is refused.
func mayAsk(method string) bool {
	return method == mcp.CallTool || method == mcp.GetPrompt || method == mcp.ReadResource
}

// passHeld runs a request that may outlive the exchange it came by. What the
// server has asked before it, at the start of a process, is asked now.
func (s *Set) passHeld(ctx context.Context, live *liveLink, c *Conversation, q *session.Request) (session.Reply, error) {
	if sharer := c.sharer(); sharer != nil { // on the connection on which a call was judged
		return sharer.passShared(ctx, live, q)
	}
	if c.said == nil {
		return c.pass(ctx, q)
	}
	ended := make(chan struct{})
	rctx, stop := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		_ = c.said.Read(rctx, c.link.Done(), q.Say, func() {}, c.link.Cause) // the request itself says why it ends
	}()
	reply, err := c.pass(ctx, q)
	stop()
	<-ended
	for _, e := range c.said.Take() { // said before the answer
		q.Say(e)
	}
	return reply, err
}

// event takes what the server says while the request runs.
func (h *held) event(e session.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.isAbout(&e):
		switch {
		case h.say != nil:
			h.say(e)
		case len(h.kept) < maxKept && h.size+len(e.Params) <= maxKeptBytes:
			h.kept = append(h.kept, session.Event{Method: e.Method, Params: bytes.Clone(e.Params)})
			h.size += len(e.Params)
		}
	case e.ID == nil && e.Method == mcp.Cancelled: // the server no longer wants to know
		id := rawjson.Find(e.Params, "requestId")
		maps.DeleteFunc(h.asked, func(_ string, asked session.Event) bool { return link.SameID(id, asked.ID) })
	case e.ID == nil:
	case e.Method == mcp.Ping || h.quiet || len(h.asked) >= maxAsked:
		_ = h.conversation.link.Respond(context.Background(), e.ID, unasked(e.Method)) // a lost link ends the request itself
	default:
		h.asks++
		h.asked["input-"+strconv.Itoa(h.asks)] = e.Clone()
		signal(h.arrived)
	}
}

// unasked is the answer to a question that the client does not get.
func unasked(method string) session.Reply {
	if method == mcp.Ping {
		return session.Reply{Result: json.RawMessage("{}")}
	}
	return session.Reply{Error: link.CannotAsk}
}

// principal is who makes a request: what was begun for one is gone on with for
// nobody else.
func principal(r *session.Request) string {
	if r.Caller == nil {
		return ""
	}
	return r.Caller.Actor.String()
}

// isAbout says whether what the server says is a notification about the
// request: nothing else belongs into its stream. Changes are told to those who
// listen for them; the rest the modern revision does not have.
func (h *held) isAbout(e *session.Event) bool {
	if e.ID != nil {
		return false
	}
	switch e.Method {
	case mcp.LogMessage:
		return h.logs
	case mcp.Progress:
		return h.token != nil && link.SameID(rawjson.Find(e.Params, "progressToken"), h.token)
	case mcp.Cancelled, mcp.ToolsChanged, mcp.PromptsChanged, mcp.ResourcesChanged, mcp.ResourceUpdated,
		mcp.Elicited, mcp.Acknowledged:
		return false
	}
	return !strings.HasPrefix(e.Method, mcp.TaskNotices)
}

// attach says who gets the notifications of the request from now on.
func (h *held) attach(say func(session.Event)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.say = say
	if say == nil {
		return
	}
	for _, e := range h.kept {
		say(e)
	}
	h.kept, h.size = nil, 0
}

// await waits until the server has answered, or wants to know something.
func (s *server) await(ctx context.Context, h *held, r *session.Request) (session.Reply, error) {
	h.attach(r.Say)
	defer h.attach(nil)
	for {
		select {
		case <-h.done:
			return s.answered(h)
		case <-h.arrived:
			if h.wants() {
				return s.newer.hold(h)
			}
		case <-ctx.Done():
			h.cancel()
			<-h.done
			h.conversation.End()
			return session.Reply{}, ctx.Err()
		}
	}
}

// wants says whether the server waits for answers, and not for its end.
func (h *held) wants() bool {
	select {
	case <-h.done:
		return false
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asked) > 0
}

// answered gives the answer in the form of the modern revision.
func (s *server) answered(h *held) (session.Reply, error) {
	h.cancel()
	var status *link.StatusError
	switch {
	case errors.As(h.err, &status) && status.Status == http.StatusBadRequest && !defined(h.method):
		// Older servers refuse what they do not know in words of HTTP.
		s.newer.giveBack(h.key, h.conversation)
		return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + h.method}}, nil
	case h.err != nil && !errors.Is(h.err, link.ErrNoMessage): // with that one the server has said what it had to say
		h.conversation.End()
		return session.Reply{}, h.err
	}
	s.newer.giveBack(h.key, h.conversation)
	if h.err != nil {
		return session.Reply{}, h.err
	}
	if h.reply.Error != nil {
		return session.Reply{Error: modernError(h.reply.Error)}, nil
	}
	return session.Reply{Result: s.modernResult(h.method, h.reply.Result, h.greeting)}, nil
}

// defined says whether the older revisions have a method that requests of the
// modern one may use.
func defined(method string) bool {
	switch method {
	case mcp.CallTool, mcp.ListTools, mcp.ListPrompts, mcp.GetPrompt, mcp.ListResources, mcp.ListTemplates,
		mcp.ReadResource, mcp.Complete:
		return true
	}
	return false
}

// hold keeps the request until the client comes again, and tells it what the
// server wants to know. The state that it has to bring cannot be guessed, and
// is good for one time.
func (n *newer) hold(h *held) (session.Reply, error) {
	state := rand.Text()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.held) >= maxHeld {
		h.cancel()
		h.conversation.End()
		return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "too many requests wait for input"}}, nil
	}
	if n.held == nil {
		n.held = map[string]*held{}
	}
	n.held[state] = h
	h.expire = time.AfterFunc(heldTime, func() { n.forget(state) })
	h.mu.Lock()
	defer h.mu.Unlock()
	out := append([]byte(nil), `{"resultType":"input_required","inputRequests":{`...)
	first := true
	for key, e := range h.asked {
		if !first {
			out = append(out, ',')
		}
		first = false
		params := e.Params
		if params == nil {
			params = json.RawMessage("{}") // clients of this revision trip over what has none
		}
		out = rawjson.AppendString(append(rawjson.AppendString(out, key), `:{"method":`...), e.Method)
		out = append(append(append(out, `,"params":`...), params...), '}')
	}
	return session.Reply{Result: append(rawjson.AppendString(append(out, `},"requestState":`...), state), '}')}, nil
}

// forget ends a request for which nobody came again.
func (n *newer) forget(state string) {
	n.mu.Lock()
	h := n.held[state]
	delete(n.held, state)
	n.mu.Unlock()
	if h != nil {
		h.cancel()
		h.conversation.End()
	}
}

// take gives the request that the state stands for, if it is this one and of
// this client; else nil.
func (n *newer) take(state json.RawMessage, r *session.Request) *held {
	text, _ := rawjson.String(state)
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.held[text]
	if h == nil || h.principal != principal(r) || h.method != r.Method || !sameRequest(h.params, r.Params) {
		return nil
	}
	delete(n.held, text)
	h.expire.Stop()
	return h
}

// sameRequest says whether two params ask for the same.
func sameRequest(a, b json.RawMessage) bool {
	for _, name := range []string{"name", "uri", "arguments"} {
		if !sameJSON(rawjson.Find(a, name), rawjson.Find(b, name)) {
			return false
		}
	}
	return true
}

func sameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	var x, y bytes.Buffer
	return bytes.Equal(a, b) || json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// resume hands the client's answers to the server, and waits again. What has
// not been answered is asked again.
func (s *server) resume(ctx context.Context, h *held, r *session.Request) (session.Reply, error) {
	responses := rawjson.Find(r.Params, "inputResponses")
	h.attach(r.Say)
	h.mu.Lock()
	answers := map[string]json.RawMessage{}
	for key, e := range h.asked {
		if answer := rawjson.Find(responses, key); rawjson.Kind(answer) == '{' {
			answers[string(e.ID)] = answer
			delete(h.asked, key)
		}
	}
	left := len(h.asked)
	h.mu.Unlock()
	for id, answer := range answers {
		if err := h.conversation.link.Respond(ctx, json.RawMessage(id), session.Reply{Result: answer}); err != nil {
			h.cancel()
			h.conversation.End()
			return session.Reply{}, err
		}
	}
	if left > 0 {
		h.attach(nil)
		return s.newer.hold(h)
	}
	return s.await(ctx, h, r)
}
