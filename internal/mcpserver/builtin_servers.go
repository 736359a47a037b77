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

// The operations of upstream_servers. Enabling, approving, changing and removing a server is reserved for
// users, outside of MCP.
const (
	listServers   = "list"
	getServer     = "get"
	addServer     = "add"
	restartServer = "restart"
)

// upstreamServers shows the servers. If the configuration allows it, an agent may also propose and restart
// servers.
func (q *builtinRequest) upstreamServers(ctx context.Context) session.Reply {
	a := arguments{tool: toolUpstreamServers, raw: q.args}
	operation := q.operation(&a)
	var s ops.AddServerRequest
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
	// A client that presents the API key, as require_mcp_auth demands, calls tools on behalf of the user;
	// but here a model asks, and it decides nothing.
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

// operation reads the operation; "" if it is not allowed for this agent.
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

// proposal reads the proposed server. The gateway validates it.
func proposal(a *arguments) ops.AddServerRequest {
	s := ops.AddServerRequest{Name: a.name("name", "a name for the new server")}
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

// given returns which of two alternative names of a parameter is present. Both are an error.
func (a *arguments) given(name, other string) string {
	switch {
	case a.find(other) == nil:
		return name
	case a.find(name) != nil:
		a.set(problem.New(problem.InvalidParameter, "There are both "+name+" and "+other+", which say the same.", "Give "+name+" alone.").With("parameter", other))
	}
	return other
}

// unknown rejects a configuration key that proposals do not support: ignoring it would propose another
// server than intended.
func (a *arguments) unknown(name, hint string) {
	if a.find(name) != nil {
		a.set(problem.New(problem.InvalidParameter, "upstream_servers has no parameter "+name+".", hint).With("parameter", name))
	}
}

// literal rejects references such as ${env:NAME}. A reviewer sees the names of variables, not that an
// agent filled one with a secret of the user.
func (a *arguments) literal(name string, texts ...string) {
	for _, text := range texts {
		if strings.Contains(text, "${") {
			a.set(problem.New(problem.InvalidParameter, "Invalid "+name+": a server that an agent proposes may not refer to the environment or the keyring (${…})",
				"Propose it without; the user can add the reference in mcp_config.json.").With("parameter", name))
		}
	}
}

// jsonText reads a parameter that is JSON as text, or the value itself, as some models send it; nil if
// missing.
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
		// The error does not repeat the value, which may be secret.
		a.wrong(name, []byte(`"…"`), what+", as text", what)
		return nil
	}
	return []byte(text)
}

// servers returns the result of every operation.
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

// waitsForReview says who can review a quarantined server; "" if none is quarantined.
func waitsForReview(name string) string {
	if name == "" {
		return ""
	}
	return "Nothing of a quarantined server can be used before a person has reviewed and approved it: `mcpproxy upstream approve " + name + "`, or the UI."
}

// serverEntry is what an agent sees of a server. How it is started and reached is hidden.
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
		v.Failure = "" // agents do not need the review state
	}
	// Text of the server itself is for users only.
	return serverEntry{v.Name, v.Protocol, v.Enabled, v.Quarantined, v.State, v.ToolCount, v.Failure, v.Tools.BlockedAsPending()}
}
