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

// runUpstreamServers shows the servers. If the configuration allows it, an agent may also propose and restart
// servers.
func (q *builtinToolCall) runUpstreamServers(ctx context.Context) session.Reply {
	a := toolArguments{tool: toolUpstreamServers, raw: q.args}
	operation := q.readOperation(&a)
	var s ops.AddServerRequest
	switch operation {
	case getServer:
		s.Name = a.requiredName("name", "the server to get")
	case restartServer:
		s.Name = a.requiredName("name", "the server to restart")
	case addServer:
		s = readProposedServer(&a)
	}
	if a.bad != nil {
		return q.refusalReply(ctx, a.bad)
	}
	// A client that presents the API key, as require_mcp_auth demands, calls tools on behalf of the user;
	// but here a model asks, and it decides nothing.
	var v ops.ServerView
	var err error
	switch agent, in := q.Caller.AsAgent(), (ops.ServerRef{Name: s.Name}); operation {
	case listServers:
		all, err := q.gateway.Servers(ctx, agent, ops.Nothing{})
		return q.serversReply(ctx, all.Servers, err)
	case addServer:
		v, err = q.gateway.AddServer(ctx, agent, s)
	case restartServer:
		v, err = q.gateway.RestartServer(ctx, agent, in)
	case getServer:
		v, err = q.gateway.Server(ctx, agent, in)
	}
	return q.serversReply(ctx, []ops.ServerView{v}, err)
}

// readOperation reads the operation; "" if it is not allowed for this agent.
func (q *builtinToolCall) readOperation(a *toolArguments) string {
	allowed := []string{listServers, getServer}
	if q.cfg.MCPManagement == config.ManagePropose {
		allowed = append(allowed, addServer, restartServer)
	}
	operation := a.optionalWord("operation", allowed...)
	if operation == "" {
		a.setMissing("operation", joinWithOr(allowed))
	}
	return operation
}

// readProposedServer reads the proposed server. The gateway validates it.
func readProposedServer(a *toolArguments) ops.AddServerRequest {
	s := ops.AddServerRequest{Name: a.requiredName("name", "a name for the new server")}
	s.URL, s.Command = a.optionalText("url"), a.optionalText("command")
	if (s.URL == "") == (s.Command == "") {
		a.setMissing("url or command", "one of the two")
	}
	argsName, envName := a.chooseAlternativeName("args_json", "args"), a.chooseAlternativeName("env_json", "env")
	if args := a.readJSONText(argsName, '[', "a JSON array of strings"); args != nil {
		_ = wirejson.EachElement(args, func(value []byte) error {
			one, ok := wirejson.String(value)
			if !ok {
				a.setInvalid(argsName, value, "a JSON array of strings", "a JSON array of strings")
			}
			s.Args = append(s.Args, one)
			return nil
		})
	}
	if env := a.readJSONText(envName, '{', "a JSON object of strings"); env != nil {
		s.Env = map[string]string{}
		_ = wirejson.EachMember(env, func(name, value []byte) error {
			one, ok := wirejson.String(value)
			if !ok {
				a.setInvalid(envName, name, "a JSON object of strings", "a JSON object of strings")
			}
			s.Env[string(name)] = one
			return nil
		})
	}
	a.rejectParameter("headers", "Propose the server without headers; the user can add them in mcp_config.json.")
	a.rejectReferences("url", s.URL)
	a.rejectReferences("command", s.Command)
	a.rejectReferences(argsName, s.Args...)
	a.rejectReferences(envName, slices.Collect(maps.Values(s.Env))...)
	return s
}

// chooseAlternativeName returns which of two alternative names of a parameter is present. Both are an error.
func (a *toolArguments) chooseAlternativeName(name, other string) string {
	switch {
	case a.findArgument(other) == nil:
		return name
	case a.findArgument(name) != nil:
		a.setProblem(problem.New(problem.InvalidParameter, "There are both "+name+" and "+other+", which mean the same.", "Give "+name+" alone.").With("parameter", other))
	}
	return other
}

// rejectParameter rejects a configuration key that proposals do not support: ignoring it would propose another
// server than intended.
func (a *toolArguments) rejectParameter(name, hint string) {
	if a.findArgument(name) != nil {
		a.setProblem(problem.New(problem.InvalidParameter, "upstream_servers has no parameter "+name+".", hint).With("parameter", name))
	}
}

// rejectReferences rejects references such as ${env:NAME}. A reviewer sees the names of variables, not that an
// agent filled one with a secret of the user.
func (a *toolArguments) rejectReferences(name string, texts ...string) {
	for _, text := range texts {
		if strings.Contains(text, "${") {
			a.setProblem(problem.New(problem.InvalidParameter, "Invalid "+name+": a server that an agent proposes may not refer to the environment or the keyring (${…})",
				"Propose it without the reference; the user can add it in mcp_config.json.").With("parameter", name))
		}
	}
}

// readJSONText reads a parameter that is JSON as text, or the value itself, as some models send it; nil if
// missing.
func (a *toolArguments) readJSONText(name string, kind byte, what string) []byte {
	value := a.findArgument(name)
	if value == nil || string(value) == `""` {
		return nil
	}
	text, ok := wirejson.String(value)
	if !ok {
		text = string(value)
	}
	if wirejson.Check([]byte(text), argumentLimits) != nil || wirejson.Kind([]byte(text)) != kind {
		// The error does not repeat the value, which may be secret.
		a.setInvalid(name, []byte(`"…"`), what+", as text", what)
		return nil
	}
	return []byte(text)
}

// serversReply returns the result of every operation.
func (q *builtinToolCall) serversReply(ctx context.Context, views []ops.ServerView, err error) session.Reply {
	if err != nil {
		return q.refusalReply(ctx, err)
	}
	entries, quarantined := make([]agentServerView, len(views)), ""
	for i, v := range views {
		if entries[i] = newAgentServerView(v); v.Quarantined {
			quarantined = v.Name
		}
	}
	if quarantined != "" && len(views) > 1 {
		quarantined = "NAME"
	}
	answer, err := json.Marshal(struct {
		Servers []agentServerView `json:"servers"`
		Notice  string            `json:"notice,omitempty"`
	}{entries, strings.TrimSpace(q.gateway.PauseNotice() + " " + quarantineNotice(quarantined))})
	return q.toolReply(ctx, answer, err)
}

// quarantineNotice says who can review a quarantined server; "" if none is quarantined.
func quarantineNotice(name string) string {
	if name == "" {
		return ""
	}
	return "A quarantined server cannot be used until the user has reviewed and approved it: `mcpproxy upstream approve " + name + "`, or the UI."
}

// agentServerView is what an agent sees of a server. How it is started and reached is hidden.
type agentServerView struct {
	Name        string      `json:"name"`
	Protocol    string      `json:"protocol"`
	Enabled     bool        `json:"enabled"`
	Quarantined bool        `json:"quarantined"`
	State       string      `json:"state"`
	ToolCount   int         `json:"tool_count"`
	LastError   string      `json:"last_error,omitempty"`
	Login       string      `json:"login,omitempty"` // why it needs a login, and what the user can do
	Tools       *ops.Counts `json:"tools,omitempty"`
}

func newAgentServerView(v ops.ServerView) agentServerView {
	if v.Quarantined {
		v.Failure = "" // agents do not need the review state
	}
	// Text of the server itself is for users only.
	a := agentServerView{v.Name, v.Protocol, v.Enabled, v.Quarantined, v.State, v.ToolCount, v.Failure, "", v.Tools.WithBlockedAsPending()}
	if v.Login != nil {
		a.Login = v.Login.Reason + ". The user: " + v.Login.Remedy
	}
	return a
}
