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
	"mcpproxy/internal/strictjson"
)

// held is a request under way at a server of an older revision.
type held struct {
	request      Request // as the client made it first
	key          string  // of the conversations that may be used for it
	conversation *Conversation
	greeting     *greeting
	logs         bool            // the client wants log messages
	token        json.RawMessage // of its progress; nil: it wants none
	quiet        bool            // the server may not ask
	cancel       context.CancelFunc
	expire       *time.Timer
	done         chan struct{} // closed when reply and err are there
	reply        Reply
	err          error

	mu      sync.Mutex // guards what follows, and orders what is said
	say     func(Event)
	kept    []Event          // while nobody is there
	size    int              // of them
	asked   map[string]Event // by the key that the client gets
	asks    int
	arrived chan struct{} // cap 1: something was asked
}

// startNewer starts a request in a conversation that it has for itself.
func (s *Set) startNewer(ctx context.Context, sv *server, live *liveLink, r *Request) (*held, error) {
	a := aboutOf(r.Params)
	quiet := ""
	switch {
	case mayAsk(r.Method):
	case strings.HasSuffix(r.Method, "/list") && string(a.capabilities) != "{}":
		quiet = "\x00quiet" // what is refused in this session no call is to go without
	default:
		a.capabilities = json.RawMessage("{}")
	}
	h := &held{request: *r, key: r.Principal + "\x00" + string(a.info) + "\x00" + string(a.capabilities) + quiet, quiet: quiet != "", greeting: live.greeting,
		logs: a.level != "", token: bytes.Clone(progressToken(r.Params)), done: make(chan struct{}), asked: map[string]Event{}, arrived: make(chan struct{}, 1)}
	h.request.ID, h.request.Params = bytes.Clone(r.ID), bytes.Clone(r.Params)
	c, err := s.checkout(ctx, sv, h.key, a, !h.quiet)
	if err != nil {
		return nil, err
	}
	h.conversation = c
	if a.level != "" && c.level != a.level && bytes.Contains(live.greeting.capabilities, []byte(`"logging"`)) {
		level := append(appendString([]byte(`{"level":`), a.level), '}')
		if _, err := s.pass(ctx, c.link, c, &Request{ID: s.nextID(), Method: methodSetLevel, Params: level}, nil); err != nil {
			c.End()
			return nil, err
		}
		c.level = a.level
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.cancel = cancel
	q := &Request{ID: s.nextID(), Method: r.Method, Params: bytes.Clone(a.params), Events: h.event}
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
	return method == methodCallTool || method == "prompts/get" || method == "resources/read"
}

// passHeld runs a request that may outlive the exchange it came by. What the
// server has asked before it, at the start of a process, is asked now.
func (s *Set) passHeld(ctx context.Context, live *liveLink, c *Conversation, q *Request) (Reply, error) {
	if sharer := c.sharer(); sharer != nil { // on the connection on which a call was judged
		return sharer.passShared(ctx, live, q)
	}
	var mail *mailbox
	switch l := c.link.(type) {
	case *stdioLink:
		mail = l.mail
	case *sseLink:
		mail = l.mail
	case *httpLink:
		mail = l.mail
	}
	if mail != nil {
		detach, err := mail.attach(q.Events)
		if err != nil {
			return Reply{}, err
		}
		defer detach()
	}
	return s.pass(ctx, c.link, c, q, nil)
}

// event takes what the server says while the request runs.
func (h *held) event(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.isAbout(&e):
		switch {
		case h.say != nil:
			h.say(e)
		case len(h.kept) < maxKept && h.size+len(e.Params) <= maxKeptBytes:
			h.kept = append(h.kept, Event{Method: e.Method, Params: bytes.Clone(e.Params)})
			h.size += len(e.Params)
		}
	case e.ID == nil && e.Method == methodCancelled: // the server no longer wants to know
		id := strictjson.Find(e.Params, "requestId")
		maps.DeleteFunc(h.asked, func(_ string, asked Event) bool { return sameID(id, asked.ID) })
	case e.ID == nil:
	case e.Method == methodPing || h.quiet || len(h.asked) >= maxAsked:
		m := jsonrpc.Message{ID: e.ID, Method: e.Method}
		_ = h.conversation.link.respond(context.Background(), cannotAsk(&m)) // a lost link ends the request itself
	default:
		h.asks++
		h.asked["input-"+strconv.Itoa(h.asks)] = Event{e.Method, bytes.Clone(e.ID), bytes.Clone(e.Params)}
		signal(h.arrived)
	}
}

// isAbout says whether what the server says is a notification about the
// request: nothing else belongs into its stream. Changes are told to those who
// listen for them; the rest the modern revision does not have.
func (h *held) isAbout(e *Event) bool {
	if e.ID != nil {
		return false
	}
	switch e.Method {
	case methodMessage:
		return h.logs
	case methodProgress:
		return h.token != nil && sameID(strictjson.Find(e.Params, "progressToken"), h.token)
	case methodCancelled, methodToolsChange, methodPrompts, methodResources, "notifications/resources/updated",
		"notifications/elicitation/complete", methodAgreed:
		return false
	}
	return !strings.HasPrefix(e.Method, "notifications/tasks")
}

// attach says who gets the notifications of the request from now on.
func (h *held) attach(say func(Event)) {
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
func (s *server) await(ctx context.Context, h *held, r *Request) (Reply, error) {
	h.attach(r.Events)
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
			return Reply{}, ctx.Err()
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
func (s *server) answered(h *held) (Reply, error) {
	h.cancel()
	var status *statusError
	switch {
	case errors.As(h.err, &status) && status.status == http.StatusBadRequest && !defined(h.request.Method):
		// Older servers refuse what they do not know in words of HTTP.
		s.newer.giveBack(h.key, h.conversation)
		return Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + h.request.Method}}, nil
	case h.err != nil && !errors.Is(h.err, errNoMessage): // with that one the server has said what it had to say
		h.conversation.End()
		return Reply{}, h.err
	}
	s.newer.giveBack(h.key, h.conversation)
	if h.err != nil {
		return Reply{}, h.err
	}
	if h.reply.Error != nil {
		return Reply{Error: modernError(h.reply.Error)}, nil
	}
	return Reply{Result: s.modernResult(h.request.Method, h.reply.Result, h.greeting)}, nil
}

// defined says whether the older revisions have a method that requests of the
// modern one may use.
func defined(method string) bool {
	switch method {
	case methodCallTool, methodListTools, "prompts/list", "prompts/get", "resources/list", "resources/templates/list",
		"resources/read", "completion/complete":
		return true
	}
	return false
}

// hold keeps the request until the client comes again, and tells it what the
// server wants to know. The state that it has to bring cannot be guessed, and
// is good for one time.
func (n *newer) hold(h *held) (Reply, error) {
	state := rand.Text()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.held) >= maxHeld {
		h.cancel()
		h.conversation.End()
		return Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "too many requests wait for input"}}, nil
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
		out = appendString(append(appendString(out, key), `:{"method":`...), e.Method)
		out = append(append(append(out, `,"params":`...), params...), '}')
	}
	return Reply{Result: append(appendString(append(out, `},"requestState":`...), state), '}')}, nil
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
func (n *newer) take(state json.RawMessage, r *Request) *held {
	text, _ := strictjson.String(state)
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.held[text]
	if h == nil || h.request.Principal != r.Principal || h.request.Method != r.Method || !sameRequest(h.request.Params, r.Params) {
		return nil
	}
	delete(n.held, text)
	h.expire.Stop()
	return h
}

// sameRequest says whether two params ask for the same.
func sameRequest(a, b json.RawMessage) bool {
	for _, name := range []string{"name", "uri", "arguments"} {
		if !sameJSON(strictjson.Find(a, name), strictjson.Find(b, name)) {
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
func (s *server) resume(ctx context.Context, h *held, r *Request) (Reply, error) {
	responses := strictjson.Find(r.Params, "inputResponses")
	h.attach(r.Events)
	h.mu.Lock()
	answers := map[string]json.RawMessage{}
	for key, e := range h.asked {
		if answer := strictjson.Find(responses, key); strictjson.Kind(answer) == '{' {
			answers[string(e.ID)] = answer
			delete(h.asked, key)
		}
	}
	left := len(h.asked)
	h.mu.Unlock()
	for id, answer := range answers {
		if err := h.conversation.link.respond(ctx, jsonrpc.AppendResult(nil, json.RawMessage(id), answer)); err != nil {
			h.cancel()
			h.conversation.End()
			return Reply{}, err
		}
	}
	if left > 0 {
		h.attach(nil)
		return s.newer.hold(h)
	}
	return s.await(ctx, h, r)
}
