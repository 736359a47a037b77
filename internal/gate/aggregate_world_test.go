package gate

import (
	"context"
	"encoding/json"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/upstream"
)

// aggregateWorld has the servers s and t, with their tools, prompts and resources, and the aggregate endpoint of
// both.
type aggregateWorld struct {
	*catalogtest.Harness
	all *AggregateEndpoint
}

func newAggregateWorld(t testing.TB, change func(*config.Config), definitions ...string) *aggregateWorld {
	t.Helper()
	w := &aggregateWorld{Harness: catalogtest.New(t, func(c *config.Config) {
		c.Servers = append(c.Servers, config.Server{Name: "t", Protocol: "stdio", Enabled: true, Trust: config.TrustAuto})
		if change != nil {
			change(c)
		}
	}, definitions...)}
	deps := depsOf(w.Harness)
	w.all = NewAggregateEndpoint(AggregateDeps{Catalog: w.Catalog, Offers: deps.Offers, Reply: session.NewReplyBuilder("test", catalogtest.Logger), Gate: New(deps)})
	return w
}

func allWorld(t *testing.T, change func(*config.Config), definitions ...string) (*aggregateWorld, *catalogtest.ScriptedServers) {
	w := newAggregateWorld(t, change, definitions...)
	r := w.Upstreams.(*catalogtest.ScriptedServers)
	r.Primitives = map[string][]json.RawMessage{}
	for i, name := range []string{"s", "t"} {
		w.Catalog.StateChanged(upstream.State{Name: name, Phase: upstream.Ready, PrimitivesVersion: uint64(i + 1),
			Capabilities: json.RawMessage(`{"tools":{},"prompts":{"listChanged":true},"resources":{}}`)})
	}
	w.Catalog.Publish()
	return w, r
}

// do sends a modern request.
func (w *aggregateWorld) do(ctx context.Context, r *session.Request) session.Reply {
	w.T.Helper()
	a, err := w.all.Do(ctx, r)
	if err != nil {
		w.T.Fatal(err)
	}
	return a
}

// refusal returns the code and the message of a problem, whether it is the result of a tool or a protocol error; ""
// if there is none.
func refusal(a session.Reply) (code problem.Code, message string) {
	var said struct {
		Code    problem.Code
		Message string
	}
	if a.Error != nil {
		_ = json.Unmarshal(a.Error.Data, &said)
		return said.Code, a.Error.Message
	}
	_ = json.Unmarshal(wirejson.Find(wirejson.Find(a.Result, "structuredContent"), "error"), &said)
	return said.Code, said.Message
}

// page is a page of a list.
type page struct {
	items []json.RawMessage
	next  string
}

func (w *aggregateWorld) page(method, cursor string) (p page, a session.Reply) {
	w.T.Helper()
	params, _ := json.Marshal(map[string]string{"cursor": cursor})
	a = w.do(w.T.Context(), catalogtest.NewRequest(method, string(params)))
	for _, member := range []string{"tools", "prompts", "resources", "resourceTemplates"} {
		_ = wirejson.EachElement(wirejson.Find(a.Result, member), func(raw []byte) error {
			p.items = append(p.items, raw)
			return nil
		})
	}
	p.next, _ = wirejson.String(wirejson.Find(a.Result, "nextCursor"))
	return p, a
}

func code(a session.Reply) problem.Code {
	c, _ := refusal(a)
	return c
}

const aggregateReads, aggregateDeletes, aggregateDenied = catalogtest.Reads, catalogtest.Deletes, catalogtest.Denied
