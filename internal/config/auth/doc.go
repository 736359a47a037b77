// Package auth identifies the caller: socket, API key, session of the web UI, or agent token become an
// Actor, with the bounds of what it may use. A Scope (scope*.go) is the intersection of rules: of the
// token, of its profile, and of the profile in the address. It also checks Host and Origin (guard.go).
//
// Guarantees:
//   - A request without proof is an agent at most. A wrong key, or an expired, revoked or unknown
//     token, is nobody. A token is never the admin.
//   - Keys, codes, sessions and tokens are never logged and never read from a URL.
//   - A request over TCP must name a loopback address or a trusted host; a web page can only call the
//     address it came from.
//   - A Scope without rules allows everything; a rule never adds access. Checks do not allocate.
//
// It does not decide what an actor may do with a tool (policy) or what a route requires (api).
package auth
