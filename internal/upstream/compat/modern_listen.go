package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// holdSubscription holds a modern subscription in an exclusive session.
func (m *modernClientBridge) holdSubscription(ctx context.Context, c *upstream.Connection, r *session.Request) (session.Reply, error) {
	wanted := wirejson.Find(r.Params, "notifications")
	if wirejson.Kind(wanted) != '{' {
		return invalidParamsReply("params.notifications must be an object"), nil
	}
	if r.Say == nil {
		return invalidParamsReply("a subscription needs a client that takes an event stream"), nil
	}
	a := parseRequestMeta(r.Params)
	a.capabilities = json.RawMessage("{}") // there is no request that the server could ask about
	s, err := m.takeOrOpenSession(ctx, c, "", a, false, true)
	if err != nil {
		return session.Reply{}, err
	}
	defer s.Close()
	agreed, passes, err := m.subscribeResources(ctx, s, c.HandshakeResult(), wanted)
	if err != nil {
		return session.Reply{}, err
	}
	meta := jsonField{"_meta", newJSONObject(jsonField{mcp.MetaSubscription, r.ID})}
	r.Say(session.Event{Method: mcp.Acknowledged, Params: newJSONObject(meta, jsonField{"notifications", agreed})})
	err = s.sessionPeer.Listen(ctx, func(e session.Event) {
		if e.ID == nil && slices.Contains(passes, e.Method) {
			own := wirejson.SetMember(cloneObjectOrEmpty(wirejson.Find(e.Params, "_meta")), mcp.MetaSubscription, r.ID)
			r.Say(session.Event{Method: e.Method, Params: wirejson.SetMember(e.Params, "_meta", own)})
		}
	}, func() {})
	var refused *transport.StatusError
	if errors.As(err, &refused) { // the server has no notification stream
		<-ctx.Done()
		return session.Reply{}, ctx.Err()
	}
	if err != nil {
		return session.Reply{}, err
	}
	return session.Reply{Result: newJSONObject(jsonField{"resultType", encodeJSONString("complete")}, meta)}, nil
}

// subscribeResources subscribes to the wanted resources, and returns the subset of wanted that the
// server supports, and its notifications.
func (m *modernClientBridge) subscribeResources(ctx context.Context, s *Session, g *upstream.HandshakeResult, wanted json.RawMessage) (agreed json.RawMessage, passes []string, err error) {
	agreed = json.RawMessage("{}")
	for _, list := range listNotifications {
		if on, _ := wirejson.Bool(wirejson.Find(wanted, list.wish)); on && g.AnnouncesChanges(list.kind) {
			agreed = wirejson.SetMember(agreed, list.wish, json.RawMessage("true"))
			passes = append(passes, list.method)
		}
	}
	uris := wirejson.Find(wanted, "resourceSubscriptions")
	can, _ := wirejson.Bool(wirejson.Find(wirejson.Find(g.Capabilities, "resources"), "subscribe"))
	if wirejson.Kind(uris) != '[' || !can {
		return agreed, passes, nil
	}
	var list [][]byte
	n := 0
	err = wirejson.EachElement(uris, func(uri []byte) error {
		if n++; n > maxSubscriptions {
			return nil
		}
		params := newJSONObject(jsonField{"uri", uri})
		reply, err := s.sendToPeer(ctx, &session.Request{ID: m.sv.NextID(), Method: mcp.Subscribe, Params: params})
		if err == nil && reply.Error == nil {
			list = append(list, uri)
		}
		return err
	})
	passes = append(passes, mcp.ResourceUpdated)
	return wirejson.SetMember(agreed, "resourceSubscriptions", slices.Concat([]byte{'['}, bytes.Join(list, []byte{','}), []byte{']'})), passes, err
}
