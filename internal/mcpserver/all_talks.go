package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/upstream"
)

// talks are what a session with all servers has of its own: a conversation with
// each server that it has used, and what it was told of the lists.
type talks struct {
	initialize json.RawMessage // what the client said of itself
	heard      heard

	mu    sync.Mutex // guards what follows, and talk.c
	with  map[string]*talk
	level json.RawMessage // params of logging/setLevel; nil: none was set
	over  bool
}

// talk is the conversation with one server, opened by the first who needs it.
type talk struct {
	opening sync.Mutex
	c       *upstream.Conversation
}

// maxIntroduction bounds what a client says of itself, in bytes: it is kept.
const maxIntroduction = 64 << 10

// live gives the conversation unless it has ended.
func (t *talk) live() *upstream.Conversation {
	if t.c != nil {
		select {
		case <-t.c.Over():
		default:
			return t.c
		}
	}
	return nil
}

// talkWith gives the session's conversation with a server; one that has ended
// is replaced.
func (x *exchange) talkWith(ctx context.Context, server string) (*upstream.Conversation, error) {
	all := x.session.all
	all.mu.Lock()
	t := all.with[server]
	if t == nil {
		t = &talk{}
		all.with[server] = t
	}
	all.mu.Unlock()
	t.opening.Lock()
	defer t.opening.Unlock()
	all.mu.Lock()
	c, level := t.live(), all.level
	all.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := x.openTalk(ctx, server, level)
	if err != nil {
		return nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if t.c = c; all.over { // the session has ended meanwhile
		c.End()
	}
	return c, nil
}

// openTalk introduces the client to a server.
func (x *exchange) openTalk(ctx context.Context, server string, level json.RawMessage) (*upstream.Conversation, error) {
	r := gateway.RelayRequest{Server: server, Caller: x.caller(), Request: upstream.Request{
		ID: json.RawMessage("0"), Method: "initialize", Params: x.session.all.initialize, Principal: x.actor.String()}}
	c, a, err := x.s.Relay.Converse(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, problem.Newf(problem.UpstreamError, "Server '%s' opens no session: %s", server, bounded(a.Error.Message, 4*maxIdentity)).
			WithHint("See its log with `mcpproxy upstream logs "+server+"`.").With("server", server)
	}
	if err := c.Notify(ctx, "notifications/initialized", nil); gateway.Over(err) {
		return nil, problem.Newf(problem.ServerUnavailable, "Server '%s' has ended the session that was just opened.", server).
			WithHint("Try again; see its log with `mcpproxy upstream logs "+server+"`.").With("server", server)
	}
	if level != nil {
		x.setLevel(ctx, server, c, level)
	}
	return c, nil
}

// setLevel tells one server which log messages the client wants. One that has
// none says so, which is no news to anybody.
func (x *exchange) setLevel(ctx context.Context, server string, c *upstream.Conversation, params json.RawMessage) {
	_, _ = x.s.Relay.Relay(ctx, gateway.RelayRequest{Server: server, Conversation: c, Caller: x.caller(),
		Request: upstream.Request{ID: json.RawMessage(`"level"`), Method: "logging/setLevel", Params: params, Principal: x.actor.String()}})
}

var levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// setLevelAll tells every server that the session talks with, and each that it
// will.
func (x *exchange) setLevelAll(ctx context.Context) outcome {
	level := strictjson.Find(x.msg.Params, "level")
	text, _ := strictjson.String(level)
	if !slices.Contains(levels[:], text) {
		return outcome{err: invalidParams("params.level must be a log level: debug, info, notice, warning, error, critical, alert or emergency")}
	}
	params := append(append([]byte(`{"level":`), level...), '}')
	open := map[string]*upstream.Conversation{}
	x.session.all.mu.Lock()
	x.session.all.level = params
	for server, t := range x.session.all.with {
		if c := t.live(); c != nil {
			open[server] = c
		}
	}
	x.session.all.mu.Unlock()
	for server, c := range open {
		x.setLevel(ctx, server, c, params)
	}
	return outcome{result: pieces([]byte("{}"))}
}

// noticeAll takes what wants no answer: a notification, or the answer to what a
// server has asked.
func (x *exchange) noticeAll() error {
	all := x.session.all
	switch {
	case x.msg.IsResponse():
		server, id, ok := gateway.AskedBy(x.msg.ID)
		if c := all.find(server); ok && c != nil {
			if err := c.Respond(x.r.Context(), id, x.msg.Result, x.msg.Error); !gateway.Over(err) {
				return err
			} // else who asked has gone, and the client's session goes on
		}
	case x.msg.Method == "notifications/cancelled":
		x.session.cancel(x.params.requestID, &upstream.Cancelled{Params: bytes.Clone(x.msg.Params)})
	case x.msg.Method == "notifications/roots/list_changed":
		all.mu.Lock()
		var open []*upstream.Conversation
		for _, t := range all.with {
			if c := t.live(); c != nil {
				open = append(open, c)
			}
		}
		all.mu.Unlock()
		for _, c := range open {
			_ = c.Notify(x.r.Context(), x.msg.Method, x.msg.Params) // one that is lost is replaced when it is needed
		}
	}
	return nil
}

// find gives the conversation with a server, if there is one.
func (a *talks) find(server string) *upstream.Conversation {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.with[server]; t != nil {
		return t.live()
	}
	return nil
}

// end ends the conversations.
func (a *talks) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for _, t := range a.with {
		if t.c != nil {
			t.c.End()
		}
	}
}

// introduction is what a client said of itself, as each server gets to hear it.
func introduction(params json.RawMessage, version string) json.RawMessage {
	return jsonrpc.SetMember(params, "protocolVersion", []byte(`"`+version+`"`))
}
