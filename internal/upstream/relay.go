package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
)

// Event is what a server says without being asked: a notification, or a
// request of its own, which has an id. It is valid while it is handed on.
type Event struct {
	Method string
	ID     json.RawMessage // nil in a notification
	Params json.RawMessage
}

// Append appends the message to dst.
func (e *Event) Append(dst []byte) []byte {
	if e.ID == nil {
		return jsonrpc.AppendNotification(dst, e.Method, e.Params)
	}
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), e.ID...)
	dst = appendString(append(dst, `,"method":`...), e.Method)
	if e.Params != nil {
		dst = append(append(dst, `,"params":`...), e.Params...)
	}
	return append(dst, '}')
}

// Request is a client's request that is passed on as it is.
type Request struct {
	ID     json.RawMessage // the client's
	Method string
	Params json.RawMessage
	Fields []Field // headers that go with it over HTTP
	// Principal is who makes it: what was begun for one is gone on with for
	// nobody else.
	Principal string
	Events    func(Event) // gets what the server says before its answer, in order; nil: the client cannot be told
	// Head gets the header lines of the server's HTTP answer that are for the
	// client, before anything of its body; the last ones count. nil: nobody wants them.
	Head func([]Field)
}

// Answer is a server's answer to a Request that is no call of a tool.
type Answer struct {
	Result json.RawMessage
	Error  *jsonrpc.Error
	Status int // of HTTP; 0 over stdio
}

// Passed is the request that a Call is made by, when it is passed on as it is.
type Passed struct {
	Request
	// Conversation is the client's own; nil for requests that stand for themselves.
	Conversation *Conversation
}

// relayed is a Request on its way.
type relayed struct {
	*Request
	id     uint64          // ours, on a connection that several use
	listed json.RawMessage // the definition of the tool that is called
}

// Relay passes on a request of a client that is anything but a call of a tool:
// that it refuses, since it has one way. c is the client's own conversation;
// nil is for clients whose requests stand for themselves. Its errors are
// problems, ErrOver, or ctx.Err().
func (s *Set) Relay(ctx context.Context, server string, c *Conversation, r Request) (Answer, error) {
	if r.Method == methodCallTool {
		return Answer{}, pastTheDoor()
	}
	sv := s.await(ctx, server)
	if sv == nil {
		return Answer{}, notStarted(server)
	}
	if r.Method != methodPing || c.sharer() == nil { // that one does not go to the server
		sv.enter()
		defer sv.leave()
	}
	var l link
	if c != nil {
		l = c.link
	} else {
		live, err := sv.ready(ctx)
		if err != nil {
			return Answer{}, sv.explain(ctx, &Call{Tool: r.Method}, err, false)
		}
		if !live.modern() {
			return s.answerNewer(ctx, sv, live, &r)
		}
		l = live.link
	}
	q, done := c.noting(&r)
	defer done()
	reply, err := s.pass(ctx, l, c, q, nil)
	if err != nil {
		return Answer{}, sv.explainPassed(ctx, c, &Call{Tool: r.Method}, err)
	}
	return Answer(reply), nil
}

// pastTheDoor refuses a call of a tool that does not come by Call, of which the
// gateway is the one caller. A notification is one, too: some servers act on it.
func pastTheDoor() *problem.Problem {
	return problem.New(problem.InvalidRequest, "tools/call must be a request of its own", "Send it with an id.")
}

// pass sends a request of a client on l.
func (s *Set) pass(ctx context.Context, l link, c *Conversation, r *Request, listed json.RawMessage) (Reply, error) {
	if err := sound(r.Fields); err != nil {
		return Reply{}, problem.New(problem.InvalidRequest, "The request cannot be passed on: "+err.Error(), "")
	}
	c.enter()
	defer c.leave()
	return l.relay(ctx, &relayed{Request: r, id: s.ids.Add(1), listed: listed})
}

// passCall is pass for a call of a tool, whose definition is still the one
// that was judged.
func (s *Set) passCall(ctx context.Context, sv *server, live *liveLink, call *Call) (Reply, error) {
	l, c := live.link, call.Passed.Conversation
	switch {
	case c != nil:
		l = c.link
	case !live.modern():
		reply, err := s.relayNewer(ctx, sv, live, &call.Passed.Request)
		if err != nil {
			err = sv.explainPassed(ctx, nil, call, err)
		}
		return reply, err
	}
	q, done := c.noting(&call.Passed.Request)
	defer done()
	reply, err := s.pass(ctx, l, c, q, call.Listed)
	if err != nil {
		return Reply{}, sv.explainPassed(ctx, c, call, err)
	}
	return reply, nil
}

// explainPassed makes the error of a request that was passed on.
func (s *server) explainPassed(ctx context.Context, c *Conversation, call *Call, err error) error {
	if p, ok := err.(*problem.Problem); ok {
		return p
	}
	if c != nil && c.link.cause() != nil && ctx.Err() == nil {
		return s.over(c)
	}
	return s.explain(ctx, call, err, false)
}

// answerNewer is relayNewer for what is no call of a tool.
func (s *Set) answerNewer(ctx context.Context, sv *server, live *liveLink, r *Request) (Answer, error) {
	reply, err := s.relayNewer(ctx, sv, live, r)
	if err != nil {
		return Answer{}, sv.explainPassed(ctx, nil, &Call{Tool: r.Method}, err)
	}
	return Answer(reply), nil
}

// appendPassed appends the request with the given id and params.
func appendPassed(dst []byte, id json.RawMessage, method string, params json.RawMessage) []byte {
	e := Event{method, id, params}
	return e.Append(dst)
}

// progressToken is the token in the _meta of params, nil when there is none.
func progressToken(params json.RawMessage) json.RawMessage {
	if !jsonrpc.MayName(params, "progressToken") {
		return nil
	}
	return strictjson.Find(strictjson.Find(params, "_meta"), "progressToken")
}

// withToken puts our token in the place of the client's.
func withToken(params json.RawMessage, id uint64) json.RawMessage {
	meta := jsonrpc.SetMember(strictjson.Find(params, "_meta"), "progressToken", strconv.AppendUint(nil, id, 10))
	return jsonrpc.SetMember(params, "_meta", meta)
}

const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

// subscriptionID is our id in what a server says to a subscription.
func subscriptionID(params json.RawMessage) (uint64, bool) {
	if !jsonrpc.MayName(params, subscriptionKey) {
		return 0, false
	}
	return numericID(strictjson.Find(strictjson.Find(params, "_meta"), subscriptionKey))
}

// setSubscription puts the client's id of a subscription in the place of ours.
func setSubscription(obj, id json.RawMessage) json.RawMessage {
	if _, ok := subscriptionID(obj); !ok {
		return obj
	}
	return jsonrpc.SetMember(obj, "_meta", jsonrpc.SetMember(strictjson.Find(obj, "_meta"), subscriptionKey, id))
}

// sameID says whether an answer has the id of the request.
func sameID(answer, request json.RawMessage) bool {
	if bytes.Equal(answer, request) {
		return true
	}
	a, ok := strictjson.String(answer)
	b, also := strictjson.String(request)
	return ok && also && a == b
}
