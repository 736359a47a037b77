package policy

import "mcpproxy/internal/scope"

// What a caller may reach stands in package scope, below the package that says who
// is asking. To everybody else it is part of the policy.
type (
	Scope       = scope.Scope  // what a caller may reach: everything, if nothing is said
	ScopeKey    = scope.Key    // stands for a Scope
	ScopeRule   = scope.Rule   // a part of what there is
	ScopeLimits = scope.Limits // what a rule follows from
	ScopeTools  = scope.Tools
)

// ScopeOf returns what all of the rules let through; nil is no rule.
func ScopeOf(rules ...*ScopeRule) Scope { return scope.Of(rules...) }

// NewScopeRule makes the rule of some limits.
func NewScopeRule(l ScopeLimits) *ScopeRule { return scope.NewRule(l) }

// Matches reports whether a name fits a pattern: a name, in which * stands for any
// characters and ? for one.
func Matches(pattern, name string) bool { return scope.Matches(pattern, name) }

// Within reports whether an operation is in the lanes of a scope.
func Within(s Scope, o Operation) bool { return s.Lanes().Has(scope.Lane(o)) }

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
