package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"mcpproxy/internal/session"
)

// relays passes on what is no call; its list is what the server lists now.
type relays struct {
	w       *world
	list    string
	refresh func()
	learns  bool
	asked   []string
	sent    []string
	hangs   string // server that does not answer when it is asked what it offers
	offered map[string][]json.RawMessage
	answer  func(context.Context) (session.Reply, error) // nil: it answers at once
}

func (r *relays) Open() (session.Session, session.Reply, error) {
	return nil, session.Reply{}, errors.New("not here")
}

func (r *relays) Relay(ctx context.Context, server string, q *session.Request) (session.Reply, error) {
	r.sent = append(r.sent, server+" "+string(q.Params))
	r.asked = append(r.asked, q.Method)
	if r.answer != nil {
		return r.answer(ctx)
	}
	return session.Reply{Result: json.RawMessage(`{"x":1,"tools":[` + r.list + `],"nextCursor":"c"}`)}, nil
}

func (r *relays) Learn(_ string, definitions []json.RawMessage) bool {
	if !r.learns {
		return false
	}
	var all []string
	for _, d := range append([]json.RawMessage{json.RawMessage(reads)}, definitions...) {
		all = append(all, string(d))
	}
	r.w.list(all...)
	return true
}

func (r *relays) Refresh(context.Context, string, time.Time) {
	if r.refresh != nil {
		r.refresh()
	}
}

func (r *relays) Offered(ctx context.Context, server, method, _ string) ([]json.RawMessage, error) {
	if r.hangs == server {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.offered[server+" "+method], nil
}

const (
	reads   = `{"name":"reads","inputSchema":{"type":"object","required":["a"]},"annotations":{"readOnlyHint":true}}`
	deletes = `{"name":"deletes","annotations":{"destructiveHint":true}}`
	denied  = `{"name":"denied"}`
)

func passed(method, params string) RelayRequest {
	return RelayRequest{Server: "s", Caller: anAgent, Request: session.Request{ID: json.RawMessage("1"), Method: method, Params: json.RawMessage(params)}}
}
