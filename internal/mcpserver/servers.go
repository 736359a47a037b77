package mcpserver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"mcpproxy/internal/auth"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
)

// The operations of upstream_servers. There is none that enables, approves,
// changes or removes a server: that is a person's, by other ways than MCP.
const (
	listServers   = "list"
	getServer     = "get"
	addServer     = "add"
	restartServer = "restart"
)

// upstreamServers shows the servers. An agent may look, and where the
// configuration allows it propose a server and restart one.
func (x *exchange) upstreamServers(ctx context.Context, args []byte) outcome {
	a := arguments{tool: upstreamServers, raw: args}
	switch x.operation(&a) {
	case listServers:
		return x.servers(x.s.Gateway.Servers(ctx), nil)
	case getServer:
		name := a.text("name", "the server to get")
		return x.ifSound(&a, func() outcome { return x.one(x.s.Gateway.Server(ctx, name)) })
	case restartServer:
		name := a.text("name", "the server to restart")
		return x.ifSound(&a, func() outcome { return x.restartServer(ctx, name) })
	case addServer:
		s := proposal(&a)
		return x.ifSound(&a, func() outcome { return x.one(x.s.Gateway.AddServer(ctx, s, x.asAgent())) })
	}
	return outcome{result: x.refusal(a.bad)}
}

// operation reads which operation is asked for; "" when it is none that this
// agent may ask for.
func (x *exchange) operation(a *arguments) string {
	allowed := []string{listServers, getServer}
	if x.cfg.MCPManagement == config.ManagePropose {
		allowed = append(allowed, addServer, restartServer)
	}
	operation := a.oneOf("operation", allowed...)
	if operation == "" {
		a.missing("operation", listed(allowed))
	}
	return operation
}

// asAgent is the caller with an agent's rights. A client that presents the key,
// as it has to where require_mcp_auth is on, calls tools in the person's name;
// but what asks here is a model, and it decides nothing.
func (x *exchange) asAgent() gateway.Caller {
	c := x.caller()
	c.Actor = auth.Actor{Kind: auth.Agent, Name: c.Actor.Name}
	return c
}

// ifSound does what was asked for, if it was asked for soundly.
func (x *exchange) ifSound(a *arguments, do func() outcome) outcome {
	if a.bad != nil {
		return outcome{result: x.refusal(a.bad)}
	}
	return do()
}

func (x *exchange) restartServer(ctx context.Context, name string) outcome {
	if err := x.s.Gateway.RestartServer(ctx, name, x.asAgent()); err != nil {
		return outcome{result: x.refusal(err)}
	}
	return x.one(x.s.Gateway.Server(ctx, name))
}

// proposal reads the server that an agent proposes. What may be in it is for
// the gateway to say.
func proposal(a *arguments) gateway.NewServer {
	s := gateway.NewServer{Name: a.text("name", "a name for the new server")}
	s.URL, s.Command = a.optional("url"), a.optional("command")
	if (s.URL == "") == (s.Command == "") {
		a.missing("url or command", "one of the two")
	}
	if args := a.jsonText("args_json", '[', "a JSON array of strings"); args != nil {
		_ = strictjson.Elements(args, func(value []byte) error {
			one, ok := strictjson.String(value)
			if !ok {
				a.wrong("args_json", value, "must be a JSON array of strings", "a JSON array of strings")
			}
			s.Args = append(s.Args, one)
			return nil
		})
	}
	if env := a.jsonText("env_json", '{', "a JSON object of strings"); env != nil {
		s.Env = map[string]string{}
		_ = strictjson.Members(env, func(name, value []byte) error {
			one, ok := strictjson.String(value)
			if !ok {
				a.wrong("env_json", name, "must be a JSON object of strings", "a JSON object of strings")
			}
			s.Env[string(name)] = one
			return nil
		})
	}
	a.unknown("args", "Give them as args_json, a JSON array as text.")
	a.unknown("env", "Give it as env_json, a JSON object as text.")
	a.unknown("headers", "Propose the server without; the user can add headers in mcp_config.json.")
	a.literal("url", s.URL)
	a.literal("command", s.Command)
	a.literal("args_json", s.Args...)
	a.literal("env_json", slices.Collect(maps.Values(s.Env))...)
	return s
}

// unknown refuses what configuration files call a part of a server and a
// proposal does not: left out silently, another server would be proposed than
// was meant.
func (a *arguments) unknown(name, hint string) {
	if a.find(name) != nil {
		a.set(problem.New(problem.InvalidParameter, "upstream_servers has no parameter "+name+".", hint).With("parameter", name))
	}
}

// literal refuses references such as ${env:NAME}. Who approves a server sees the
// names of its variables, not that an agent had one of them filled with a
// secret of the person's.
func (a *arguments) literal(name string, texts ...string) {
	for _, text := range texts {
		if strings.Contains(text, "${") {
			a.set(problem.New(problem.InvalidParameter, "Invalid "+name+": a server that an agent proposes may not refer to the environment or the keyring (${…})",
				"Propose it without; the user can add the reference in mcp_config.json.").With("parameter", name))
		}
	}
}

// jsonText reads a parameter that is JSON as text, or, as some models send it,
// the value itself; nil when it is not given.
func (a *arguments) jsonText(name string, kind byte, what string) []byte {
	value := a.find(name)
	if value == nil {
		return nil
	}
	text, ok := strictjson.String(value)
	if !ok {
		text = string(value)
	}
	if strictjson.Check([]byte(text), limits) != nil || strictjson.Kind([]byte(text)) != kind {
		// Not repeated: it may hold what is secret.
		a.wrong(name, []byte(`"…"`), "must be "+what+", as text", what)
		return nil
	}
	return []byte(text)
}

// one is the answer with one server.
func (x *exchange) one(v gateway.ServerView, err error) outcome {
	return x.servers([]gateway.ServerView{v}, err)
}

// servers is the answer of every operation.
func (x *exchange) servers(views []gateway.ServerView, err error) outcome {
	if err != nil {
		return outcome{result: x.refusal(err)}
	}
	entries := make([]serverEntry, len(views))
	for i, v := range views {
		entries[i] = entryOf(v)
	}
	return x.answer(json.Marshal(struct {
		Servers []serverEntry `json:"servers"`
	}{entries}))
}

// serverEntry is what an agent gets to see of a server. How the server is
// started and reached is the person's business.
type serverEntry struct {
	Name        string          `json:"name"`
	Protocol    string          `json:"protocol"`
	Enabled     bool            `json:"enabled"`
	Quarantined bool            `json:"quarantined"`
	State       string          `json:"state"`
	ToolCount   int             `json:"tool_count"`
	LastError   string          `json:"last_error,omitempty"`
	Tools       *gateway.Counts `json:"tools,omitempty"`
}

func entryOf(v gateway.ServerView) serverEntry {
	if v.Quarantined {
		v.LastError = "" // the server may have said it, and nobody has approved that
	}
	return serverEntry{v.Name, v.Protocol, v.Enabled, v.Quarantined, v.State, v.ToolCount, v.LastError, v.Tools}
}
