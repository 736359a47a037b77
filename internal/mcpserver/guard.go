package mcpserver

import (
	"context"
	"net/http"

	"mcpproxy/internal/auth"
	"mcpproxy/internal/guard"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
)

// admit lets a request in that may come in, and finds out whose it is. It
// looks at the header only, so that nothing is read for those who stay out.
func (x *request) admit() bool {
	cfg := x.s.Config()
	socket := auth.FromSocket(x.r.Context())
	if why := guard.Refuse(x.r, cfg.TrustedHosts); why != "" {
		x.turnAway(http.StatusForbidden, "Forbidden: "+why+".")
		return false
	}
	r := x.r
	if socket {
		// The socket is the person's, but who speaks MCP over it is an agent,
		// and stands in the record as one, unless a key says otherwise.
		r = r.WithContext(context.Background())
	}
	x.actor = x.s.Auth.Actor(r)
	unproven := x.actor == auth.Actor{Kind: auth.Agent}
	switch {
	case x.actor.Kind == auth.Nobody:
		x.unauthorized("The API key is wrong." + howToProve)
		return false
	case unproven && cfg.RequireMCPAuth && !socket:
		x.unauthorized("An API key is required (require_mcp_auth is on)." + howToProve)
		return false
	}
	return true
}

const howToProve = ` Send the key from the file api_key of the data directory as "Authorization: Bearer KEY" or "X-API-Key: KEY".`

// turnAway refuses a request before it is read. Whose it is may not keep the
// connection by sending the rest of it.
func (x *request) turnAway(status int, message string) {
	x.out.w.Header().Set("Connection", "close")
	x.out.fail(status, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message})
}

func (x *request) unauthorized(message string) {
	x.record(x.r.Context(), problem.New(problem.Unauthorized, message, ""))
	x.out.w.Header().Set("WWW-Authenticate", `Bearer realm="mcpproxy"`)
	x.turnAway(http.StatusUnauthorized, message)
}
