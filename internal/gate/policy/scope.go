package policy

import "mcpproxy/internal/config/auth"

// Scopes are defined in package auth, below the package of the callers. For other packages they are part
// of the policy.
type (
	Scope       = auth.Scope       // what a caller may reach; the zero value is everything
	ScopeKey    = auth.ScopeKey    // comparable form of a Scope
	ScopeRule   = auth.ScopeRule   // one restriction
	ScopeLimits = auth.ScopeLimits // the settings of a rule
	ScopeTools  = auth.ToolPatterns
)

// ScopeOf returns the intersection of rules; nil is no rule.
func ScopeOf(rules ...*ScopeRule) Scope { return auth.NewScope(rules...) }

// NewScopeRule returns the rule for some limits.
func NewScopeRule(l ScopeLimits) *ScopeRule { return auth.NewScopeRule(l) }

// Matches reports whether a name matches a pattern: * stands for any characters and ? for one.
func Matches(pattern, name string) bool { return auth.MatchesPattern(pattern, name) }

// Within reports whether a scope includes the lane of an operation.
func Within(s Scope, o Operation) bool { return s.Lanes().Has(auth.Lane(o)) }

// Worst returns the most dangerous operation of a scope; NoOperation if it has none.
func Worst(s Scope) Operation {
	for o := Destructive; o > NoOperation; o-- {
		if Within(s, o) {
			return o
		}
	}
	return NoOperation
}
