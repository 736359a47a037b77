package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"mcpproxy/internal/approval"
	"mcpproxy/internal/catalog/catalogtest"
	"mcpproxy/internal/config"
	"mcpproxy/internal/door"
	"mcpproxy/internal/door/doortest"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/offers"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/reply"
	"mcpproxy/internal/session"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/union"
	"mcpproxy/internal/upstream"
)

// What these tests take from packages below, by its own name.
type (
	CallRequest     = door.CallRequest
	CallResult      = door.CallResult
	RetrieveRequest = gateway.RetrieveRequest
	Nothing         = gateway.Nothing
	Waiting         = gateway.Waiting
	NewServer       = gateway.NewServer
	Seen            = gateway.Seen
	ServerRef       = gateway.ServerRef
	ServerView      = gateway.ServerView
	ServerChange    = gateway.ServerChange
	ServerDecision  = gateway.ServerDecision
	ServerReview    = gateway.ServerReview
	ToolRef         = gateway.ToolRef
	ToolView        = gateway.ToolView
	ToolDecision    = gateway.ToolDecision
	ToolApproval    = gateway.ToolApproval
	WaitingQuery    = gateway.WaitingQuery
	OfferRef        = gateway.OfferRef
	OfferDecision   = gateway.OfferDecision
)

var anAgent, aPerson = catalogtest.AnAgent, catalogtest.APerson

// operations is all that can be done.
type operations struct {
	*Admin
	all *union.Surface
}

// world is the operations with everything around them in memory. It is the Editor
// of its configuration.
type world struct {
	*catalogtest.World
	relays  *catalogtest.Relays
	gateway operations
	guard   *offers.Guard
}

func newWorld(t testing.TB, change func(*config.Config), definitions ...string) *world {
	t.Helper()
	w := &world{World: catalogtest.New(t, change, definitions...)}
	w.relays = w.Others.(*catalogtest.Relays)
	w.renew(w.Book)
	return w
}

// renew has everything made anew, on the catalog that there is now.
func (w *world) renew(book *approval.Book) {
	w.Book = book
	deps := doortest.Deps(w.World)
	w.guard = deps.Offers
	o := &w.gateway
	through := door.New(deps)
	o.Admin = New(gateway.New(gateway.Deps{Book: book, Door: through, Upstreams: w, Log: catalogtest.Log{World: w.World}}), w)
	o.all = union.New(union.Deps{Catalog: w.Catalog, Door: through, Offers: w.guard, Reply: reply.New("test", catalogtest.Logger)})
}

// servers are all servers, as they are shown.
func (w *world) servers() []ServerView {
	all, _ := w.gateway.Servers(context.Background(), aPerson, Nothing{})
	return all.Servers
}

func (w *world) call(v policy.Variant, name, args string) (CallResult, *problem.Problem) {
	w.T.Helper()
	r, err := w.gateway.Call(context.Background(), CallRequest{Variant: v, Name: name, Args: json.RawMessage(args), Caller: anAgent})
	if err == nil {
		return r, nil
	}
	var p *problem.Problem
	if !errors.As(err, &p) {
		w.T.Fatalf("the error %v is no problem", err)
	}
	return r, p
}

// relay is a client's request to server s that stands for itself.
func (w *world) relay(r *session.Request) (session.Reply, error) {
	return w.gateway.Surface("s").Do(w.T.Context(), r)
}

var passed = catalogtest.Asked

// AddServers, FitServers, RemoveServer and SetServer are an Editor of the configuration that
// the world has in memory.
func (w *world) AddServers(_ config.Permit, all ...config.NamedEdit) error {
	return w.Edit(func(c *config.Config) error {
		for _, s := range all {
			trust := s.Trust
			if trust == "" {
				trust = config.TrustScan
			}
			c.Servers = append(c.Servers, config.Server{Name: s.Name, Protocol: "stdio", Launch: config.Launch{Command: s.Command, Args: s.Args, Env: s.Env}, Enabled: true, Quarantined: s.Quarantined, Trust: trust})
		}
		return nil
	})
}

func (w *world) FitServers(...config.NamedEdit) error { return nil }

func (w *world) RemoveServer(name string) error {
	return w.Edit(func(c *config.Config) error {
		c.Servers = slices.DeleteFunc(c.Servers, func(s config.Server) bool { return s.Name == name })
		return nil
	})
}

func (w *world) SetServer(_ config.Permit, name, field string, value json.RawMessage) error {
	return w.Edit(func(c *config.Config) error {
		s := c.Server(name)
		switch field {
		case "quarantined":
			s.Quarantined = string(value) == "true"
		case "enabled":
			s.Enabled = string(value) != "false"
		case "disabled_tools":
			return json.Unmarshal(value, &s.DisabledTools)
		default:
			return fmt.Errorf("the test knows no key %s", field)
		}
		return nil
	})
}

func (w *world) OverrideHints(_ config.Permit, name, of string, hints json.RawMessage) error {
	return w.Edit(func(c *config.Config) error {
		s := c.Server(name)
		s.HintOverrides = append(slices.Clone(s.HintOverrides), config.HintOverride{Pattern: of, Hints: tool.ParseHints(hints)})
		return nil
	})
}

// Itself is what config.Live says of one command.
func (w *world) Itself(l config.Launch) error {
	if l.Command == "mcpproxy" {
		return problem.New(problem.InvalidParameter, "it is MCPProxy itself", "")
	}
	return nil
}

func trust(kind config.Trust) func(*config.Config) {
	return func(c *config.Config) { c.Servers[0].Trust = kind }
}

// status is a tool's, "callable" when it has none.
func (w *world) status(id string) string {
	w.T.Helper()
	parsed, err := tool.ParseID(id)
	if err != nil {
		w.T.Fatal(err)
	}
	v, err := w.gateway.Tool(context.Background(), Caller{}, ToolRef(parsed))
	if err != nil {
		w.T.Fatal(err)
	}
	if v.Status == "" {
		return "callable"
	}
	return v.Status
}

const (
	readsTool    = `{"name":"reads","description":"Read a thing.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"annotations":{"readOnlyHint":true}}`
	destroysTool = `{"name":"destroys","description":"Destroy a thing.","annotations":{"destructiveHint":true}}`
)

func (w *world) retrieve(r RetrieveRequest) catalogtest.Retrieved {
	w.T.Helper()
	r.Caller = anAgent
	return w.Retrieved(w.gateway.Retrieve(context.Background(), r))
}

func (*world) Progress(string) upstream.Progress { return upstream.Progress{} }

func (*world) Oddities(string) []string { return nil }
