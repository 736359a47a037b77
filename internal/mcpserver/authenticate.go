package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

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
	refusal, refused := errors.AsType[*auth.TokenRefusal](err)
	challenge := ""
	if refused || unproven && !socket || x.actor.Kind == auth.Nobody {
		challenge = x.s.Auth.UserChallenge(r.URL.Path, refusal)
	}
	switch {
	case refused:
		x.refuseUser(refusal, challenge)
		return false
	case errors.Is(err, auth.ErrProviderAway):
		x.out.w.Header().Set("Retry-After", "5")
		x.refuseUnread(http.StatusServiceUnavailable, "The OpenID provider does not answer, so no access token is accepted: try again in a moment.")
		return false
	case err != nil:
		x.refuseUnread(http.StatusServiceUnavailable, "The agent tokens cannot be read yet, so no token is accepted: try again in a moment.")
		return false
	case x.actor.Kind == auth.Nobody:
		x.refuseUnauthorized("The API key or agent token is wrong, or the token has expired or was revoked."+howToProve, challenge)
		return false
	case unproven && !socket && challenge != "":
		x.refuseUnauthorized("An access token of your provider is required. The header WWW-Authenticate names where to get one.", challenge)
		return false
	case unproven && cfg.RequireMCPAuth && !socket:
		x.refuseUnauthorized("An agent token or the API key is required (require_mcp_auth is on)."+howToProve, "")
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

func (x *httpRequest) refuseUnauthorized(message, challenge string) {
	x.recordRefusal(x.r.Context(), problem.New(problem.Unauthorized, message, ""))
	x.out.w.Header().Set("WWW-Authenticate", cmp.Or(challenge, `Bearer realm="mcpproxy"`))
	x.refuseUnread(http.StatusUnauthorized, message)
}

// refuseUser refuses an access token: 401 for an invalid one, 403 for one that gives no access.
func (x *httpRequest) refuseUser(refusal *auth.TokenRefusal, challenge string) {
	if !refusal.Forbidden {
		x.refuseUnauthorized(refusal.Reason+".", challenge)
		return
	}
	x.recordRefusal(x.r.Context(), problem.New(problem.Forbidden, refusal.Reason+".", ""))
	if challenge != "" {
		x.out.w.Header().Set("WWW-Authenticate", challenge)
	}
	x.refuseUnread(http.StatusForbidden, refusal.Reason+".")
}

// addStepUp turns a refusal by the scopes of the access token into a 403 that names the missing scope.
func (x *httpRequest) addStepUp(o *requestOutcome) {
	lane := auth.MissedLane(x.bounds)
	if lane == 0 {
		return
	}
	var scopes []string
	for l, granted := auth.Read, x.token.User().Granted; l <= auth.Destructive; l++ {
		if granted.Has(l) || l == lane {
			scopes = append(scopes, auth.ScopeOf(l))
		}
	}
	refusal := &auth.TokenRefusal{Reason: "The call needs another scope", Forbidden: true, Scope: strings.Join(scopes, " ")}
	x.out.w.Header().Set("WWW-Authenticate", x.s.Auth.UserChallenge(x.r.URL.Path, refusal))
	o.Status = http.StatusForbidden
}
