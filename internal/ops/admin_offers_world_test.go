package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/upstream"
)

// offerWorld is a test environment whose server s lists prompts, resources and instructions to MCPProxy and to clients.
type offerWorld struct {
	*adminWorld
	r *catalogtest.ScriptedServers
	// toClients contains lists that clients get instead of the lists for MCPProxy.
	toClients map[string][]json.RawMessage
	version   uint64
}

var listMethods = map[tool.DefinitionKind]catalog.ListKind{tool.KindPrompt: catalog.ListPrompts, tool.KindResource: catalog.ListResources, tool.KindTemplate: catalog.ListTemplates}

func newOfferWorld(t *testing.T, kind config.Trust) *offerWorld {
	t.Helper()
	w := &offerWorld{adminWorld: newAdminWorld(t, trust(kind)), toClients: map[string][]json.RawMessage{}}
	w.r = w.relays
	w.r.Primitives = map[string][]json.RawMessage{}
	w.Upstreams = w
	w.changed()
	return w
}

// changed reports to the catalog that the server's primitives have changed.
func (w *offerWorld) changed() {
	w.version++
	w.Catalog.StateChanged(upstream.State{Name: "s", Phase: upstream.Ready, PrimitivesVersion: w.version, Instructions: w.instructions(),
		Capabilities: json.RawMessage(`{"tools":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}`)})
	w.Catalog.Publish()
}

func (w *offerWorld) instructions() string {
	var text string
	if said := w.r.Primitives["s instructions"]; len(said) > 0 {
		_ = json.Unmarshal(said[0], &text)
	}
	return text
}

func (w *offerWorld) method(kind tool.DefinitionKind) string {
	if kind == tool.KindInstructions {
		return "instructions"
	}
	return methodOf(listMethods[kind])
}

// offers sets the server's primitives of a kind and reports the change.
func (w *offerWorld) offers(kind tool.DefinitionKind, raws ...string) {
	var all []json.RawMessage
	for _, raw := range raws {
		all = append(all, json.RawMessage(raw))
	}
	w.r.Primitives["s "+w.method(kind)] = all
	w.changed()
}

// shows makes the server list these primitives to clients, regardless of its lists for MCPProxy.
func (w *offerWorld) shows(kind tool.DefinitionKind, raws ...string) {
	all := []json.RawMessage{}
	for _, raw := range raws {
		all = append(all, json.RawMessage(raw))
	}
	w.toClients["s "+w.method(kind)] = all
}

func (w *offerWorld) ListPrimitives(ctx context.Context, server, method, list string) ([]json.RawMessage, error) {
	return w.r.ListPrimitives(ctx, server, method, list)
}
func (w *offerWorld) AddDefinitions(string, []json.RawMessage) bool   { return false }
func (w *offerWorld) RefreshTools(context.Context, string, time.Time) {}
func (w *offerWorld) clientList(method string) []json.RawMessage {
	if all, there := w.toClients["s "+method]; there {
		return all
	}
	return w.r.Primitives["s "+method]
}

func (w *offerWorld) greeting() json.RawMessage {
	out := `{"protocolVersion":"2025-11-25", "serverInfo":{"name":"x"}`
	if said := w.clientList("instructions"); len(said) > 0 {
		out += `, "instructions":` + string(said[0])
	}
	return json.RawMessage(out + `}`)
}

func (w *offerWorld) Open(string) (session.Session, session.Reply, error) {
	return nil, session.Reply{Result: w.greeting()}, nil
}

func (w *offerWorld) Relay(ctx context.Context, server string, q *session.Request) (session.Reply, error) {
	if q.Method == mcp.Discover || q.Method == mcp.Initialize {
		return session.Reply{Result: w.greeting()}, nil
	}
	o, lists := catalog.ListKindOfMethod(q.Method)
	if !lists || o == catalog.ListTools {
		return w.r.Relay(ctx, server, q)
	}
	parts := make([]string, 0)
	for _, raw := range w.clientList(q.Method) {
		parts = append(parts, string(raw))
	}
	return session.Reply{Result: json.RawMessage(`{"_meta":{"n":9007199254740993}, "` + o.ResultMember() + `":[` + strings.Join(parts, " , ") + `],"nextCursor":"c"}`)}, nil
}

// seen returns the primitives of a kind that a client sees at the server's own address.
func (w *offerWorld) seen(kind tool.DefinitionKind) []string {
	w.T.Helper()
	if kind == tool.KindInstructions {
		_, a, err := w.gateway.GatedEndpoint("s").OpenSession(w.T.Context(), passed("initialize", `{}`))
		b, err2 := w.relay(passed("server/discover", `{}`))
		one, two := wirejson.Find(a.Result, "instructions"), wirejson.Find(b.Result, "instructions")
		if err != nil || err2 != nil || string(one) != string(two) {
			w.T.Fatalf("%s and %s: %v, %v", a.Result, b.Result, err, err2)
		}
		if one == nil {
			return nil
		}
		return []string{string(one)}
	}
	o := listMethods[kind]
	a, err := w.relay(passed(methodOf(o), `{}`))
	if err != nil {
		w.T.Fatal(err)
	}
	var all []string
	_ = wirejson.EachElement(wirejson.Find(a.Result, o.ResultMember()), func(raw []byte) error {
		all = append(all, string(raw))
		return nil
	})
	return all
}

// amongAll returns the number of primitives of a kind that a client sees at the address of all servers.
func (w *offerWorld) amongAll(kind tool.DefinitionKind) int {
	w.T.Helper()
	if kind == tool.KindInstructions {
		return len(w.seen(kind))
	}
	a, err := w.gateway.all.Do(w.T.Context(), passed(methodOf(listMethods[kind]), `{}`))
	if err != nil || a.Error != nil {
		w.T.Fatal(err, a.Error)
	}
	n := 0
	_ = wirejson.EachElement(wirejson.Find(a.Result, listMethods[kind].ResultMember()), func([]byte) error { n++; return nil })
	return n
}

// used makes a client use the primitive at the server's own address and at the address of all servers, and returns the
// errors.
func (w *offerWorld) used(kind tool.DefinitionKind) map[string]error {
	w.T.Helper()
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
		_, err := w.relay(passed(q[0], q[1]))
		out[q[0]+" "+q[1]] = err
		if q[0] == "prompts/get" {
			out["all "+q[0]] = w.amongAllUsed(passed(q[0], `{"name":"s__full"}`))
		}
		if q[0] == "resources/read" {
			uri, _ := wirejson.String(wirejson.Find(json.RawMessage(q[1]), "uri"))
			out["all "+q[0]+uri] = w.amongAllUsed(passed(q[0], fmt.Sprintf(`{"uri":%q}`, "mcpproxy://s/"+uri)))
		}
	}
	return out
}

// amongAllUsed sends a request to the address of all servers and returns its error.
func (w *offerWorld) amongAllUsed(r *session.Request) error {
	a, err := w.gateway.all.Do(w.T.Context(), r)
	if a.Error == nil {
		return err
	}
	var data struct{ Code, Status string }
	if err := json.Unmarshal(a.Error.Data, &data); err != nil {
		w.T.Fatal(err)
	}
	return problem.New(problem.Code(data.Code), a.Error.Message, a.Error.Message).With("status", data.Status)
}

func lockedOffer(err error) bool {
	p := problem.From(err)
	return p != nil && p.Code == problem.OfferLocked && p.Detail("status") == "pending_approval" && strings.Contains(p.Hint, "mcpproxy approvals")
}

func methodOf(l catalog.ListKind) string {
	for _, method := range []string{mcp.ListPrompts, mcp.ListResources, mcp.ListTemplates} {
		if o, _ := catalog.ListKindOfMethod(method); o == l {
			return method
		}
	}
	return ""
}
