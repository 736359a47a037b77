package auth

import "sync/atomic"

// ProfileRuleFunc returns the rule of a profile of the current configuration; nil if it does not
// exist.
type ProfileRuleFunc func(name string) *ScopeRule

// ruleOrDenyAll returns the rule of a profile, or DenyAllRule if the profile does not exist.
func (p ProfileRuleFunc) ruleOrDenyAll(name string) *ScopeRule {
	if name == "" {
		return nil
	}
	if r := p(name); r != nil {
		return r
	}
	return DenyAllRule(name)
}

// NewCallerBounds returns the bounds of a caller, from its token (nil: none) and the profile of its address ("":
// none). It returns nil if there is neither.
func NewCallerBounds(t *LoadedToken, profile string, all ProfileRuleFunc) Bounds {
	if t == nil && profile == "" {
		return nil
	}
	return &callerBounds{token: t, profile: profile, all: all}
}

type callerBounds struct {
	token   *LoadedToken
	profile string
	all     ProfileRuleFunc
	missing atomic.Uint32 // see Caller.MissLane
}

// granted returns the lanes that the scopes of an access token allow.
func (b *callerBounds) granted() OperationLaneSet {
	if u := b.token.User(); u != nil {
		return u.Granted
	}
	return AllLanes
}

func (b *callerBounds) Scope() Scope {
	if b.token == nil {
		return NewScope(b.all.ruleOrDenyAll(b.profile))
	}
	if b.token.HasEnded() {
		return NewScope(DenyAllRule(""))
	}
	bound := b.token.Profile
	if b.profile == bound {
		return NewScope(b.token.rule, b.all.ruleOrDenyAll(bound))
	}
	return NewScope(b.token.rule, b.all.ruleOrDenyAll(bound), b.all.ruleOrDenyAll(b.profile))
}
