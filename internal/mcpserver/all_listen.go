package mcpserver

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/upstream"
)

// heard is what a client knows of the lists.
type heard struct {
	mu   sync.Mutex // guards what follows
	last [len(announced)]*[32]byte
}

// announced are the lists whose changes are announced.
var announced = [...]struct {
	method, wish string // what says that it has changed; how a subscription asks for it
	of           func(*gateway.Listed) *[32]byte
}{
	{"notifications/tools/list_changed", "toolsListChanged", func(l *gateway.Listed) *[32]byte { return &l.Tools }},
	{"notifications/prompts/list_changed", "promptsListChanged", func(l *gateway.Listed) *[32]byte { return &l.Prompts }},
	{"notifications/resources/list_changed", "resourcesListChanged", func(l *gateway.Listed) *[32]byte { return &l.Resources }},
}

// listed notes that the client gets a list.
func (h *heard) listed(o gateway.Offer, now gateway.Listed) {
	i := min(int(o), len(announced)-1) // templates are resources
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last[i] = announced[i].of(&now)
}

// changed gives what is another than the client knows. What it has never been
// told of it gets to know now.
func (h *heard) changed(now gateway.Listed) (methods []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, a := range announced {
		sum := a.of(&now)
		if h.last[i] != nil && *h.last[i] != *sum {
			methods = append(methods, i)
		}
		h.last[i] = sum
	}
	return methods
}

// settleTime is how long changes are collected before they are announced: when
// a server comes or goes there are many at once.
const settleTime = 100 * time.Millisecond

// announce says which lists have changed until ctx ends.
func (x *exchange) announce(ctx context.Context, h *heard, say func(list int)) {
	for {
		now, again := x.s.All.ListedNow(x.caller())
		for _, list := range h.changed(now) {
			say(list)
		}
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
		settle := time.NewTimer(settleTime)
		select {
		case <-settle.C:
		case <-ctx.Done():
			settle.Stop()
			return
		}
	}
}

// overhearAll holds the stream of a session open, on which it is told what has
// changed.
func (x *exchange) overhearAll() {
	x.held(func(ctx context.Context, cancel context.CancelCauseFunc) {
		st := newStream(x.w, cancel)
		defer func() { x.answered = st.finish(nil) || x.answered }()
		st.open()
		x.announce(ctx, &x.session.all.heard, func(list int) {
			st.offer(&upstream.Event{Method: announced[list].method})
		})
	})
}

// listenAll holds a subscription open.
func (x *exchange) listenAll() {
	wanted := x.params.notifications
	if wanted != nil && strictjson.Kind(wanted) != '{' {
		x.send(outcome{err: invalidParams("params.notifications must be an object")})
		return
	}
	if _, streamed := accepts(x.r.Header); !streamed {
		x.send(outcome{err: invalidParams("a subscription is a stream: send Accept: text/event-stream")})
		return
	}
	x.held(func(ctx context.Context, cancel context.CancelCauseFunc) { x.tellChanges(ctx, cancel, wanted) })
}

// tellChanges tells a subscription what changes of what it wants.
func (x *exchange) tellChanges(ctx context.Context, cancel context.CancelCauseFunc, wanted json.RawMessage) {
	var wants [len(announced)]bool
	agreed := json.RawMessage("{}")
	for i, a := range announced {
		if wants[i], _ = strictjson.Bool(strictjson.Find(wanted, a.wish)); wants[i] {
			agreed = jsonrpc.SetMember(agreed, a.wish, json.RawMessage("true"))
		}
	}
	meta := `{"_meta":{"` + metaSubscription + `":` + string(x.msg.ID) + `}`
	var h heard
	now, _ := x.s.All.ListedNow(x.caller())
	h.changed(now) // before the client can list
	st := newStream(x.w, cancel)
	defer func() { x.answered = st.finish(nil) || x.answered }()
	st.offer(&upstream.Event{Method: "notifications/subscriptions/acknowledged",
		Params: json.RawMessage(meta + `,"notifications":` + string(agreed) + `}`)})
	x.announce(ctx, &h, func(list int) {
		if wants[list] {
			st.offer(&upstream.Event{Method: announced[list].method, Params: json.RawMessage(meta + "}")})
		}
	})
	end := []byte(`{"resultType":"complete","_meta":{"` + metaSubscription + `":` + string(x.msg.ID) + `,` + x.s.texts.serverInfoMember + `}}`)
	st.finish(jsonrpc.AppendEvent(nil, "", jsonrpc.AppendResult(nil, x.msg.ID, end)))
}
