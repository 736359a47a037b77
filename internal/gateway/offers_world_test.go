package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/offers"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// How long lists are good for, and when one is asked for again that could not be
// had: see package offers.
const staleAfter, lostAfter = 10 * time.Second, 30 * time.Second

// offerWorld is a world whose server s lists offers, to MCPProxy and to clients
// alike.
type offerWorld struct {
	*world
	r *relays
	// to clients is what clients are listed; nil: the same.
	toClients map[string][]json.RawMessage
	version   uint64
}

var listMethods = map[tool.Kind]Offer{tool.KindPrompt: Prompts, tool.KindResource: Resources, tool.KindTemplate: Templates}

func newOfferWorld(t *testing.T, kind config.Trust) *offerWorld {
	t.Helper()
	w := &offerWorld{world: newWorld(t, trust(kind)), toClients: map[string][]json.RawMessage{}}
	w.r = &relays{w: w.world, offered: map[string][]json.RawMessage{}}
	w.relays, w.gateway.Editor = w, w.world
	w.changed()
	return w
}

// changed is what the server says when its offers have changed.
func (w *offerWorld) changed() {
	w.version++
	w.catalog.StateChanged(upstream.State{Name: "s", Phase: upstream.Ready, Offers: w.version, Instructions: w.instructions(),
		Capabilities: json.RawMessage(`{"tools":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}`)})
	w.catalog.Refresh()
}

func (w *offerWorld) instructions() string {
	var text string
	if said := w.r.offered["s instructions"]; len(said) > 0 {
		_ = json.Unmarshal(said[0], &text)
	}
	return text
}

func (w *offerWorld) method(kind tool.Kind) string {
	if kind == tool.KindInstructions {
		return "instructions"
	}
	return methodOf(listMethods[kind])
}

// offers has the server offer these of a kind, and say so.
func (w *offerWorld) offers(kind tool.Kind, raws ...string) {
	var all []json.RawMessage
	for _, raw := range raws {
		all = append(all, json.RawMessage(raw))
	}
	w.r.offered["s "+w.method(kind)] = all
	w.changed()
}

// shows has it show these to clients, whatever it lists to MCPProxy.
func (w *offerWorld) shows(kind tool.Kind, raws ...string) {
	all := []json.RawMessage{}
	for _, raw := range raws {
		all = append(all, json.RawMessage(raw))
	}
	w.toClients["s "+w.method(kind)] = all
}

func (w *offerWorld) Offered(ctx context.Context, server, method, list string) ([]json.RawMessage, error) {
	return w.r.Offered(ctx, server, method, list)
}
func (w *offerWorld) Learn(string, []json.RawMessage) bool       { return false }
func (w *offerWorld) Refresh(context.Context, string, time.Time) {}
func (w *offerWorld) clientList(method string) []json.RawMessage {
	if all, there := w.toClients["s "+method]; there {
		return all
	}
	return w.r.offered["s "+method]
}

func (w *offerWorld) greeting() json.RawMessage {
	out := `{"protocolVersion":"2025-11-25", "serverInfo":{"name":"x"}`
	if said := w.clientList("instructions"); len(said) > 0 {
		out += `, "instructions":` + string(said[0])
	}
	return json.RawMessage(out + `}`)
}

func (w *offerWorld) Open() (session.Session, session.Reply, error) {
	return nil, session.Reply{Result: w.greeting()}, nil
}

func (w *offerWorld) Relay(ctx context.Context, server string, q *session.Request) (session.Reply, error) {
	if q.Method == mcp.Discover || q.Method == mcp.Initialize {
		return session.Reply{Result: w.greeting()}, nil
	}
	o, list, lists := OfferOf(q.Method)
	if !lists || o == Tools {
		return w.r.Relay(ctx, server, q)
	}
	parts := make([]string, 0)
	for _, raw := range w.clientList(q.Method) {
		parts = append(parts, string(raw))
	}
	return session.Reply{Result: json.RawMessage(`{"_meta":{"n":9007199254740993}, "` + list + `":[` + strings.Join(parts, " , ") + `],"nextCursor":"c"}`)}, nil
}

// seen is what a client sees of a kind on the server's own address.
func (w *offerWorld) seen(kind tool.Kind) []string {
	w.t.Helper()
	if kind == tool.KindInstructions {
		_, a, err := w.gateway.Converse(w.t.Context(), passed("initialize", `{}`))
		b, err2 := w.gateway.Relay(w.t.Context(), passed("server/discover", `{}`))
		one, two := rawjson.Find(a.Result, "instructions"), rawjson.Find(b.Result, "instructions")
		if err != nil || err2 != nil || string(one) != string(two) {
			w.t.Fatalf("%s and %s: %v, %v", a.Result, b.Result, err, err2)
		}
		if one == nil {
			return nil
		}
		return []string{string(one)}
	}
	o := listMethods[kind]
	a, err := w.gateway.Relay(w.t.Context(), passed(methodOf(o), `{}`))
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	_ = rawjson.Elements(rawjson.Find(a.Result, o.Member()), func(raw []byte) error {
		all = append(all, string(raw))
		return nil
	})
	return all
}

// amongAll is what clients of all servers see.
func (w *offerWorld) amongAll(kind tool.Kind) int {
	w.t.Helper()
	if kind == tool.KindInstructions {
		return len(w.seen(kind))
	}
	p, err := w.gateway.ListAll(w.t.Context(), listMethods[kind], "", anAgent)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(p.Items)
}

// used is what comes of a client's use of an offer, on the server's own address
// and among all.
func (w *offerWorld) used(kind tool.Kind) map[string]error {
	w.t.Helper()
	var requests [][2]string
	switch kind {
	case tool.KindPrompt:
		requests = [][2]string{{"prompts/get", `{"name":"full"}`}, {"completion/complete", `{"ref":{"type":"ref/prompt","name":"full"},"argument":{"name":"a","value":""}}`}}
	case tool.KindResource:
		requests = [][2]string{{"resources/read", `{"uri":"notes://full"}`}, {"resources/subscribe", `{"uri":"notes://full"}`}, {"resources/read", `{"uri":"NOTES://f%75ll#x"}`}}
	case tool.KindTemplate:
		requests = [][2]string{{"completion/complete", `{"ref":{"type":"ref/resource","uri":"notes://{id}"},"argument":{"name":"id","value":""}}`}, {"resources/read", `{"uri":"notes://7"}`}}
	}
	out := map[string]error{}
	for _, q := range requests {
		_, err := w.gateway.Relay(w.t.Context(), passed(q[0], q[1]))
		out[q[0]+" "+q[1]] = err
		if q[0] == "prompts/get" {
			_, out["all "+q[0]] = w.gateway.RelayAll(w.t.Context(), allCall(q[0], `{"name":"s__full"}`))
		}
		if q[0] == "resources/read" {
			uri, _ := rawjson.String(rawjson.Find(json.RawMessage(q[1]), "uri"))
			_, out["all "+q[0]+uri] = w.gateway.RelayAll(w.t.Context(), allCall(q[0], fmt.Sprintf(`{"uri":%q}`, "mcpproxy://s/"+uri)))
		}
	}
	return out
}

func locked(err error) bool {
	p := problem.From(err)
	return p != nil && p.Code == problem.OfferLocked && p.Detail("status") == "pending_approval" && strings.Contains(p.Hint, "mcpproxy approvals")
}

func methodOf(l Offer) string {
	for _, method := range []string{mcp.ListPrompts, mcp.ListResources, mcp.ListTemplates} {
		if o, _ := offers.ListOf(method); o == l {
			return method
		}
	}
	return ""
}
