package policy

import "mcpproxy/internal/config/auth"

// Scopes are defined in package auth, which the packages of the callers import. Other packages use them as part of
// the policy.
type (
	Scope       = auth.Scope       // the servers and tools that a caller may use; the zero value allows all
	ScopeKey    = auth.ScopeKey    // comparable form of a Scope
	ScopeRule   = auth.ScopeRule   // one restriction
	ScopeLimits = auth.ScopeLimits // the settings of a rule
	ScopeTools  = auth.ToolPatterns
)

// NewScope returns the intersection of rules; a nil rule is ignored.
func NewScope(rules ...*ScopeRule) Scope { return auth.NewScope(rules...) }

// NewScopeRule returns the rule for some limits.
func NewScopeRule(l ScopeLimits) *ScopeRule { return auth.NewScopeRule(l) }

// MatchesPattern reports whether a name matches a pattern: * matches any characters and ? one.
func MatchesPattern(pattern, name string) bool { return auth.MatchesPattern(pattern, name) }

// ScopeIncludes reports whether a scope includes the lane of an operation.
func ScopeIncludes(s Scope, o Operation) bool { return s.Lanes().Has(auth.OperationLane(o)) }

// WorstOperationOfScope returns the most dangerous operation of a scope; NoOperation if it has none.
func WorstOperationOfScope(s Scope) Operation {
	for o := Destructive; o > NoOperation; o-- {
		if ScopeIncludes(s, o) {
			return o
		}
	}
	return NoOperation
}
