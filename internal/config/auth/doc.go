// Package auth identifies the caller of a request. It turns the socket, API key, session of the web UI, or agent
// token into an Actor with the bounds of its access.
//
// Files:
//   - auth.go: Authenticator identifies the actor of a request; actor.go: the kinds of actors; caller.go: an actor
//     and where its request came from.
//   - scope.go: Scope, the intersection of the rules of the token, of its profile, and of the profile in the address;
//     pattern.go matches names; bounds.go computes a caller's current scope.
//   - token.go: creates and revokes agent tokens, and rejects revoked and expired ones; revoked_file.go: the second
//     copy of revoked tokens.
//   - api_key.go: the file of the API key.
//   - signin.go, session_file.go, webui_session.go: sign-in codes and sessions of the web UI.
//   - guard.go: checks Host and Origin; front.go: what proxies report about a request.
//
// Guarantees:
//   - A request without a credential has at most the rights of an agent. A wrong key, or an expired, revoked or
//     unknown token, identifies no actor. A token is never the admin.
//   - Keys, codes, sessions and tokens are never logged and never read from a URL.
//   - A request over TCP must name a loopback address or a trusted host; a web page can only call the address that it
//     was loaded from.
//   - Headers of proxies count only from trusted proxies. With trusted proxies, clear text from other machines is refused.
//   - A Scope without rules allows everything, and an additional rule never grants access. Checks do not allocate.
//
// It does not decide what an actor may do with a tool (policy) or what a route requires (api).
package auth
