package upstream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
)

// listenNewer holds a subscription of the modern revision: the session that it
// stands on is its own.
func (s *Set) listenNewer(ctx context.Context, sv *server, live *liveLink, r *Request) (Reply, error) {
	wanted := strictjson.Find(r.Params, "notifications")
	if strictjson.Kind(wanted) != '{' {
		return refusedParams("params.notifications must be an object"), nil
	}
	if r.Events == nil {
		return refusedParams("a subscription needs a client that takes an event stream"), nil
	}
	a := aboutOf(r.Params)
	a.capabilities = json.RawMessage("{}") // there is no request that the server could ask about
	c, err := s.checkout(ctx, sv, "a subscription "+rand.Text(), a, false)
	if err != nil {
		return Reply{}, err
	}
	defer c.End()
	agreed, passes, err := s.subscribeAll(ctx, c, live.greeting, wanted)
	if err != nil {
		return Reply{}, err
	}
	meta := append(append([]byte(`{"`+subscriptionKey+`":`), r.ID...), '}')
	r.Events(Event{Method: methodAgreed, Params: append(append(append(append([]byte(`{"_meta":`), meta...), `,"notifications":`...), agreed...), '}')})
	err = c.link.overhear(ctx, func(e Event) {
		if e.ID == nil && slices.Contains(passes, e.Method) {
			own := jsonrpc.SetMember(orObject(strictjson.Find(e.Params, "_meta")), subscriptionKey, r.ID)
			r.Events(Event{Method: e.Method, Params: jsonrpc.SetMember(e.Params, "_meta", own)})
		}
	}, func() {})
	var refused *statusError
	if errors.As(err, &refused) { // it says nothing by itself
		<-ctx.Done()
		return Reply{}, ctx.Err()
	}
	if err != nil {
		return Reply{}, err
	}
	end := append(append([]byte(`{"resultType":"complete","_meta":`), meta...), '}')
	return Reply{Result: end}, nil
}

// subscribeAll subscribes to the resources that are wanted, and gives what can
// be told of all that is wanted, and by which notifications.
func (s *Set) subscribeAll(ctx context.Context, c *Conversation, g *greeting, wanted json.RawMessage) (agreed json.RawMessage, passes []string, err error) {
	agreed = json.RawMessage("{}")
	for _, kind := range []struct{ name, capability, method string }{
		{"toolsListChanged", "tools", methodToolsChange},
		{"promptsListChanged", "prompts", methodPrompts},
		{"resourcesListChanged", "resources", methodResources},
	} {
		on, _ := strictjson.Bool(strictjson.Find(wanted, kind.name))
		can, _ := strictjson.Bool(strictjson.Find(strictjson.Find(g.capabilities, kind.capability), "listChanged"))
		if on && can {
			agreed = jsonrpc.SetMember(agreed, kind.name, json.RawMessage("true"))
			passes = append(passes, kind.method)
		}
	}
	uris := strictjson.Find(wanted, "resourceSubscriptions")
	can, _ := strictjson.Bool(strictjson.Find(strictjson.Find(g.capabilities, "resources"), "subscribe"))
	if strictjson.Kind(uris) != '[' || !can {
		return agreed, passes, nil
	}
	list, n := []byte{'['}, 0
	err = strictjson.Elements(uris, func(uri []byte) error {
		if n++; n > maxSubscriptions {
			return nil
		}
		params := append(append([]byte(`{"uri":`), uri...), '}')
		reply, err := s.pass(ctx, c.link, c, &Request{ID: s.nextID(), Method: methodSubscribe, Params: params}, nil)
		if err == nil && reply.Error == nil {
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, uri...)
		}
		return err
	})
	passes = append(passes, methodUpdated)
	return jsonrpc.SetMember(agreed, "resourceSubscriptions", append(list, ']')), passes, err
}
