package policy

import "mcpproxy/internal/config/auth"

// What a caller may reach stands in package auth, below the package that says who
// is asking. To everybody else it is part of the policy.
type (
	Scope       = auth.Scope       // what a caller may reach: everything, if nothing is said
	ScopeKey    = auth.ScopeKey    // stands for a Scope
	ScopeRule   = auth.ScopeRule   // a part of what there is
	ScopeLimits = auth.ScopeLimits // what a rule follows from
	ScopeTools  = auth.ToolPatterns
)

// ScopeOf returns what all of the rules let through; nil is no rule.
func ScopeOf(rules ...*ScopeRule) Scope { return auth.ScopeOf(rules...) }

// NewScopeRule makes the rule of some limits.
func NewScopeRule(l ScopeLimits) *ScopeRule { return auth.NewScopeRule(l) }

// Matches reports whether a name fits a pattern: a name, in which * stands for any
// characters and ? for one.
func Matches(pattern, name string) bool { return auth.MatchesPattern(pattern, name) }

// Within reports whether an operation is in the lanes of a scope.
func Within(s Scope, o Operation) bool { return s.Lanes().Has(auth.Lane(o)) }

// Worst returns the worst operation in the lanes of a scope; NoOperation when it has
// none.
func Worst(s Scope) Operation {
	for o := Destructive; o > NoOperation; o-- {
		if Within(s, o) {
			return o
		}
	}
	return NoOperation
}
