// Package users identifies users by the access tokens of their OpenID providers (OAuth 2.1 protected resource), and maps
// them to profile, lanes, role and limits.
//
// Files:
//   - verifier.go: Verifier, with its cache of verified tokens; settings.go: what it is configured with, and the rules.
//   - claims.go: checks the claims of a token, and derives the user's name; provider.go: metadata, keys and checks of
//     one provider.
//   - resource.go: the addresses that need a token, their metadata (RFC 9728) and challenges.
//
// Guarantees:
//   - A token counts only with a signature of a listed issuer, by a public key algorithm, for the address that is
//     called, or for a listed audience.
//   - A token that its provider no longer accepts, or that no rule allows any more, loses access within CheckInterval
//     and the timeout of a request to the provider. See Check for providers that cannot be asked.
//   - Tokens are never logged. Requests to providers, their answers and the cache are bounded.
//
// Limits: tokens must be JSON Web Tokens. Counts of calls belong to this process.
package users
