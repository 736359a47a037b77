package gate

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// announce says which lists have changed until ctx ends.
func (s *Aggregate) announce(ctx context.Context, r *session.Request, h *knownLists, say func(list int)) {
	for {
		now, again := s.listed(r)
		for _, list := range h.changed(now) {
			say(list)
		}
		if session.WaitDebounced(ctx, again) != nil {
			return
		}
	}
}

// listen holds a subscription open: it tells what changes of what is wanted.
func (s *Aggregate) listen(ctx context.Context, r *session.Request) session.Reply {
	wanted, bad := session.ParseRequestedEvents(r)
	if bad != nil {
		return session.Reply{Error: bad}
	}
	if r.Say == nil {
		return session.Reply{Error: session.InvalidParamsError("a subscription is a stream: send Accept: text/event-stream")}
	}
	var wants [len(announced)]bool
	agreed := json.RawMessage("{}")
	for i, a := range announced {
		if wants[i], _ = wirejson.Bool(wirejson.Find(wanted, a.wish)); wants[i] {
			agreed = wirejson.SetMember(agreed, a.wish, json.RawMessage("true"))
		}
	}
	var h knownLists
	now, _ := s.listed(r)
	h.changed(now) // before the client can list
	session.AcknowledgeSubscription(r, string(agreed))
	s.announce(ctx, r, &h, func(list int) {
		if wants[list] {
			r.Say(session.Event{Method: announced[list].method, Params: json.RawMessage("{" + session.SubscriptionMeta(r) + "}}")})
		}
	})
	return s.Reply.SubscriptionEndReply(r)
}
