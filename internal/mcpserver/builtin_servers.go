package mcpserver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// The operations of upstream_servers. There is none that enables, approves,
// changes or removes a server: that is a person's, by other ways than MCP.
const (
	listServers   = "list"
	getServer     = "get"
	addServer     = "add"
	restartServer = "restart"
)

// toolUpstreamServers shows the servers. An agent may look, and where the
// configuration allows it propose a server and restart one.
func (q *builtinRequest) upstreamServers(ctx context.Context) session.Reply {
	a := arguments{tool: toolUpstreamServers, raw: q.args}
	operation := q.operation(&a)
	var s ops.NewServer
	switch operation {
	case getServer:
		s.Name = a.name("name", "the server to get")
	case restartServer:
		s.Name = a.name("name", "the server to restart")
	case addServer:
		s = proposal(&a)
	}
	if a.bad != nil {
		return q.refuse(ctx, a.bad)
	}
	// A client that presents the key, as it has to where require_mcp_auth is on,
	// calls tools in the person's name; but what asks here is a model, and it
	// decides nothing.
	var v ops.ServerView
	var err error
	switch agent, in := q.Caller.AsAgent(), (ops.ServerRef{Name: s.Name}); operation {
	case listServers:
		all, err := q.gateway.Servers(ctx, agent, ops.Nothing{})
		return q.servers(ctx, all.Servers, err)
	case addServer:
		v, err = q.gateway.AddServer(ctx, agent, s)
	case restartServer:
		v, err = q.gateway.RestartServer(ctx, agent, in)
	case getServer:
		v, err = q.gateway.Server(ctx, agent, in)
	}
	return q.servers(ctx, []ops.ServerView{v}, err)
}

// operation reads which operation is asked for; "" when it is none that this
// agent may ask for.
func (q *builtinRequest) operation(a *arguments) string {
	allowed := []string{listServers, getServer}
	if q.cfg.MCPManagement == config.ManagePropose {
		allowed = append(allowed, addServer, restartServer)
	}
	operation := a.oneOf("operation", allowed...)
	if operation == "" {
		a.missing("operation", listed(allowed))
	}
	return operation
}

// proposal reads the server that an agent proposes. What may be in it is for
// the gateway to say.
func proposal(a *arguments) ops.NewServer {
	s := ops.NewServer{Name: a.name("name", "a name for the new server")}
	s.URL, s.Command = a.optional("url"), a.optional("command")
	if (s.URL == "") == (s.Command == "") {
		a.missing("url or command", "one of the two")
	}
	argsName, envName := a.given("args_json", "args"), a.given("env_json", "env")
	if args := a.jsonText(argsName, '[', "a JSON array of strings"); args != nil {
		_ = wirejson.Elements(args, func(value []byte) error {
			one, ok := wirejson.String(value)
			if !ok {
				a.wrong(argsName, value, "a JSON array of strings", "a JSON array of strings")
			}
			s.Args = append(s.Args, one)
			return nil
		})
	}
	if env := a.jsonText(envName, '{', "a JSON object of strings"); env != nil {
		s.Env = map[string]string{}
		_ = wirejson.Members(env, func(name, value []byte) error {
			one, ok := wirejson.String(value)
			if !ok {
				a.wrong(envName, name, "a JSON object of strings", "a JSON object of strings")
			}
			s.Env[string(name)] = one
			return nil
		})
	}
	a.unknown("headers", "Propose the server without; the user can add headers in mcp_config.json.")
	a.literal("url", s.URL)
	a.literal("command", s.Command)
	a.literal(argsName, s.Args...)
	a.literal(envName, slices.Collect(maps.Values(s.Env))...)
	return s
}

// given returns the name under which something is given: its own, or the one by which
// configuration files call it. It is not given under both.
func (a *arguments) given(name, other string) string {
	switch {
	case a.find(other) == nil:
		return name
	case a.find(name) != nil:
		a.set(problem.New(problem.InvalidParameter, "There are both "+name+" and "+other+", which say the same.", "Give "+name+" alone.").With("parameter", other))
	}
	return other
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
	if value == nil || string(value) == `""` {
		return nil
	}
	text, ok := wirejson.String(value)
	if !ok {
		text = string(value)
	}
	if wirejson.Check([]byte(text), argumentLimits) != nil || wirejson.Kind([]byte(text)) != kind {
		// Not repeated: it may hold what is secret.
		a.wrong(name, []byte(`"…"`), what+", as text", what)
		return nil
	}
	return []byte(text)
}

// servers is the answer of every operation.
func (q *builtinRequest) servers(ctx context.Context, views []ops.ServerView, err error) session.Reply {
	if err != nil {
		return q.refuse(ctx, err)
	}
	entries, quarantined := make([]serverEntry, len(views)), ""
	for i, v := range views {
		if entries[i] = entryOf(v); v.Quarantined {
			quarantined = v.Name
		}
	}
	if quarantined != "" && len(views) > 1 {
		quarantined = "NAME"
	}
	answer, err := json.Marshal(struct {
		Servers []serverEntry `json:"servers"`
		Notice  string        `json:"notice,omitempty"`
	}{entries, waitsForReview(quarantined)})
	return q.answered(ctx, answer, err)
}

// waitsForReview says who can do what about a server that is quarantined; "" when
// none is.
func waitsForReview(name string) string {
	if name == "" {
		return ""
	}
	return "Nothing of a quarantined server can be used before a person has reviewed and approved it: `mcpproxy upstream approve " + name + "`, or the UI."
}

// serverEntry is what an agent gets to see of a server. How the server is
// started and reached is the person's business.
type serverEntry struct {
	Name        string      `json:"name"`
	Protocol    string      `json:"protocol"`
	Enabled     bool        `json:"enabled"`
	Quarantined bool        `json:"quarantined"`
	State       string      `json:"state"`
	ToolCount   int         `json:"tool_count"`
	LastError   string      `json:"last_error,omitempty"`
	Tools       *ops.Counts `json:"tools,omitempty"`
}

func entryOf(v ops.ServerView) serverEntry {
	if v.Quarantined {
		v.Failure = "" // how it fares is the affair of who reviews it
	}
	// What the server itself has said of its failure is for people.
	return serverEntry{v.Name, v.Protocol, v.Enabled, v.Quarantined, v.State, v.ToolCount, v.Failure, v.Tools.ForAgents()}
}
