package gate

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// announceListChanges calls say for each list that has changed, until ctx ends.
func (s *AggregateEndpoint) announceListChanges(ctx context.Context, r *session.Request, h *clientKnownLists, say func(list int)) {
	for {
		now, again := s.currentListDigests(r)
		for _, list := range h.takeChangedLists(now) {
			say(list)
		}
		if session.WaitDebounced(ctx, again) != nil {
			return
		}
	}
}

// serveSubscription keeps a subscription open and sends the notifications that it requests.
func (s *AggregateEndpoint) serveSubscription(ctx context.Context, r *session.Request) session.Reply {
	wanted, bad := session.ParseRequestedEvents(r)
	if bad != nil {
		return session.Reply{Error: bad}
	}
	if r.Say == nil {
		return session.Reply{Error: session.InvalidParamsError("a subscription is a stream: send Accept: text/event-stream")}
	}
	var wants [len(listNotifications)]bool
	agreed := json.RawMessage("{}")
	for i, a := range listNotifications {
		if wants[i], _ = wirejson.Bool(wirejson.Find(wanted, a.wish)); wants[i] {
			agreed = wirejson.SetMember(agreed, a.wish, json.RawMessage("true"))
		}
	}
	var h clientKnownLists
	now, _ := s.currentListDigests(r)
	h.takeChangedLists(now) // before the client can request a list
	session.AcknowledgeSubscription(r, string(agreed))
	s.announceListChanges(ctx, r, &h, func(list int) {
		if wants[list] {
			r.Say(session.Event{Method: listNotifications[list].method, Params: json.RawMessage("{" + session.SubscriptionMeta(r) + "}}")})
		}
	})
	return s.Reply.SubscriptionEndReply(r)
}
