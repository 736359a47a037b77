package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/gatetest"
	"mcpproxy/internal/upstream"
)

var adminAgent, adminPerson = catalogtest.AgentCaller, catalogtest.AdminCaller

// operations combines all operations.
type operations struct {
	*Admin
	all *gate.AggregateEndpoint
}

// adminWorld is a test environment with all operations and in-memory dependencies. It implements ConfigEditor for its
// configuration.
type adminWorld struct {
	*catalogtest.Harness
	relays  *catalogtest.ScriptedServers
	gateway operations
	guard   *catalog.PrimitiveGuard
}

func newAdminWorld(t testing.TB, change func(*config.Config), definitions ...string) *adminWorld {
	t.Helper()
	w := &adminWorld{Harness: catalogtest.New(t, change, definitions...)}
	w.relays = w.Upstreams.(*catalogtest.ScriptedServers)
	w.renew(w.Book)
	return w
}

// renew creates the gateway and the operations again, with the current catalog.
func (w *adminWorld) renew(book *approval.Book) {
	w.Book = book
	deps := gatetest.NewDeps(w.Harness)
	w.guard = deps.Offers
	o := &w.gateway
	through := gate.New(deps)
	o.Admin = NewAdmin(NewGateway(GatewayDeps{Book: book, Gate: through, Upstreams: w, Log: catalogtest.QueryableLog{Harness: w.Harness}}), w)
	o.all = gate.NewAggregateEndpoint(gate.AggregateDeps{Catalog: w.Catalog, Gate: through, Offers: w.guard, Reply: session.NewReplyBuilder("test", catalogtest.Logger)})
}

// servers returns the views of all servers.
func (w *adminWorld) servers() []ServerView {
	all, _ := w.gateway.Servers(context.Background(), adminPerson, Nothing{})
	return all.Servers
}

func (w *adminWorld) call(v policy.CallToolVariant, name, args string) (gate.CallResult, *problem.Problem) {
	w.T.Helper()
	r, err := w.gateway.Call(context.Background(), gate.LaneCall{CallTool: v, Name: name, Args: json.RawMessage(args), Caller: adminAgent})
	if err == nil {
		return r, nil
	}
	var p *problem.Problem
	if !errors.As(err, &p) {
		w.T.Fatalf("the error %v is not a problem", err)
	}
	return r, p
}

// relay sends a client's request to server s outside a session.
func (w *adminWorld) relay(r *session.Request) (session.Reply, error) {
	return w.gateway.GatedEndpoint("s").Do(w.T.Context(), r)
}

var passed = catalogtest.NewRequest

// AddServers, CheckNewServers, RemoveServer and SetServer implement ConfigEditor for the in-memory configuration.
func (w *adminWorld) AddServers(_ config.ConfirmFunc, all ...config.NamedEdit) error {
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

func (w *adminWorld) CheckNewServers(...config.NamedEdit) error { return nil }

func (w *adminWorld) RemoveServer(name string) error {
	return w.Edit(func(c *config.Config) error {
		c.Servers = slices.DeleteFunc(c.Servers, func(s config.Server) bool { return s.Name == name })
		return nil
	})
}

func (w *adminWorld) SetServer(_ config.ConfirmFunc, name, field string, value json.RawMessage) error {
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
			return fmt.Errorf("the test environment does not support the key %s", field)
		}
		return nil
	})
}

func (w *adminWorld) SetToolSettings(_ config.ConfirmFunc, server, name string, changes []config.ToolSettingChange) error {
	return w.Edit(func(c *config.Config) error {
		for i := range c.Servers {
			if s := &c.Servers[i]; s.Name == server {
				one := config.ToolSettings{Tool: name}
				if old := s.ToolSettingsOf(name); old != nil {
					one = *old
				}
				for _, change := range changes {
					text, _ := wirejson.String(change.Value)
					switch change.Key {
					case "alias":
						one.Alias = text
					case "description":
						one.Description = text
					case "add_description":
						one.AddDescription = text
					case "always":
						one.Always = string(change.Value) == "true"
					}
				}
				s.ToolSettings = []config.ToolSettings{one}
			}
		}
		return nil
	})
}

func (w *adminWorld) SetHintOverride(_ config.ConfirmFunc, name, of string, hints json.RawMessage) error {
	return w.Edit(func(c *config.Config) error {
		s := c.Server(name)
		s.HintOverrides = append(slices.Clone(s.HintOverrides), config.HintOverride{Pattern: of, Hints: tool.ParseHints(hints)})
		return nil
	})
}

// CheckNotSelfReference imitates config.LiveConfig for one command.
func (w *adminWorld) CheckNotSelfReference(l config.Launch) error {
	if l.Command == "mcpproxy" {
		return problem.New(problem.InvalidParameter, "it is MCPProxy itself", "")
	}
	return nil
}

func trust(kind config.Trust) func(*config.Config) {
	return func(c *config.Config) { c.Servers[0].Trust = kind }
}

// status returns the status of a tool, or "callable" if it has none.
func (w *adminWorld) status(id string) string {
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
	adminReadsTool    = `{"name":"reads","description":"Read a thing.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"annotations":{"readOnlyHint":true}}`
	adminDestroysTool = `{"name":"destroys","description":"Destroy a thing.","annotations":{"destructiveHint":true}}`
)

func (w *adminWorld) retrieve(r RetrieveRequest) catalogtest.RetrieveResult {
	w.T.Helper()
	r.Caller = adminAgent
	return w.ParseRetrieveResult(w.gateway.RetrieveTools(context.Background(), r))
}

func (*adminWorld) StartProgress(string) upstream.StartProgress { return upstream.StartProgress{} }

func (*adminWorld) Deviations(string) []string               { return nil }
func (*adminWorld) SessionNeeds(string) []upstream.KnownNeed { return nil }
