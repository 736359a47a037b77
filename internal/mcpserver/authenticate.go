package mcpserver

import (
	"context"
	"net/http"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// authenticate authenticates a request by its headers, before anything is read.
func (x *httpRequest) authenticate() bool {
	cfg := x.s.Config()
	socket := auth.IsFromSocket(x.r.Context())
	if why := auth.HostOrOriginRefusal(x.r, cfg.AllowedHosts()); why != "" {
		x.refuseUnread(http.StatusForbidden, "Forbidden: "+why+".")
		return false
	}
	r := x.r
	if socket {
		// The socket belongs to the user, but an MCP client on it is an agent, and is recorded as one,
		// unless it presents a key.
		r = r.WithContext(context.Background())
	}
	var err error
	x.actor, x.token, err = x.s.Auth.IdentifyRequest(r)
	unproven := x.actor == auth.Actor{Kind: auth.Agent}
	switch {
	case err != nil:
		x.refuseUnread(http.StatusServiceUnavailable, "The agent tokens cannot be read yet, so no token is accepted: try again in a moment.")
		return false
	case x.actor.Kind == auth.Nobody:
		x.refuseUnauthorized("The API key or agent token is wrong, or the token has expired or was revoked." + howToProve)
		return false
	case unproven && cfg.RequireMCPAuth && !socket:
		x.refuseUnauthorized("An agent token or the API key is required (require_mcp_auth is on)." + howToProve)
		return false
	}
	if x.profile != "" && !x.mayUseProfile(x.profile) {
		x.refuseUnread(http.StatusNotFound, "There is no profile "+session.QuoteClipped(x.profile)+" that this client may use. The user sees the profiles with `mcpproxy profile list`.")
		return false
	}
	x.bounds = auth.NewCallerBounds(x.token, x.profile, x.s.Profiles)
	return true
}

// mayUseProfile reports whether the client may use the address of a profile: a client bound to one profile does
// not learn of others.
func (c *clientState) mayUseProfile(profile string) bool {
	return c.s.Profiles(profile) != nil && (c.token == nil || c.token.Profile == "" || c.token.Profile == profile)
}

const howToProve = " Send an agent token, which `mcpproxy token create NAME` makes, or the key from the file api_key of the data directory, " +
	`as "Authorization: Bearer TOKEN" or "X-API-Key: KEY".`

// refuseUnread refuses a request before it is read, and closes the connection instead of reading the rest.
func (x *httpRequest) refuseUnread(status int, message string) {
	x.out.w.Header().Set("Connection", "close")
	x.out.sendError(status, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: message})
}

func (x *httpRequest) refuseUnauthorized(message string) {
	x.recordRefusal(x.r.Context(), problem.New(problem.Unauthorized, message, ""))
	x.out.w.Header().Set("WWW-Authenticate", `Bearer realm="mcpproxy"`)
	x.refuseUnread(http.StatusUnauthorized, message)
}
