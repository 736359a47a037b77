package union

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/reply"
	"mcpproxy/internal/session"
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
	{mcp.ToolsChanged, "toolsListChanged", func(l *gateway.Listed) *[32]byte { return &l.Tools }},
	{mcp.PromptsChanged, "promptsListChanged", func(l *gateway.Listed) *[32]byte { return &l.Prompts }},
	{mcp.ResourcesChanged, "resourcesListChanged", func(l *gateway.Listed) *[32]byte { return &l.Resources }},
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
func (s *Surface) announce(ctx context.Context, c gateway.Caller, h *heard, say func(list int)) {
	for {
		now, again := s.gateway.ListedNow(c)
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

// Listen tells the client what has changed.
func (c *Session) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	opened()
	c.announce(ctx, c.caller, &c.heard, func(list int) { say(session.Event{Method: announced[list].method}) })
	return ctx.Err()
}

// listen holds a subscription open: it tells what changes of what is wanted.
func (s *Surface) listen(ctx context.Context, r *session.Request) session.Reply {
	wanted := rawjson.Find(r.Params, "notifications")
	if wanted != nil && rawjson.Kind(wanted) != '{' {
		return session.Reply{Error: reply.InvalidParams("params.notifications must be an object")}
	}
	if r.Say == nil {
		return session.Reply{Error: reply.InvalidParams("a subscription is a stream: send Accept: text/event-stream")}
	}
	var wants [len(announced)]bool
	agreed := json.RawMessage("{}")
	for i, a := range announced {
		if wants[i], _ = rawjson.Bool(rawjson.Find(wanted, a.wish)); wants[i] {
			agreed = rawjson.SetMember(agreed, a.wish, json.RawMessage("true"))
		}
	}
	meta := `{"_meta":{"` + mcp.MetaSubscription + `":` + string(r.ID) + `}`
	var h heard
	now, _ := s.gateway.ListedNow(*r.Caller)
	h.changed(now) // before the client can list
	r.Say(session.Event{Method: mcp.Acknowledged, Params: json.RawMessage(meta + `,"notifications":` + string(agreed) + `}`)})
	s.announce(ctx, *r.Caller, &h, func(list int) {
		if wants[list] {
			r.Say(session.Event{Method: announced[list].method, Params: json.RawMessage(meta + "}")})
		}
	})
	return session.Reply{Result: []byte(`{"resultType":"complete","_meta":{"` + mcp.MetaSubscription + `":` + string(r.ID) + `,` + s.reply.Introduction + `}}`)}
}
