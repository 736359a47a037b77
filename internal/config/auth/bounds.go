package auth

// Profiles returns the rule of a profile of the current configuration; nil if it does not
// exist.
type Profiles func(name string) *ScopeRule

// rule returns the rule of a profile, DenyAllRule if it does not exist.
func (p Profiles) rule(name string) *ScopeRule {
	if name == "" {
		return nil
	}
	if r := p(name); r != nil {
		return r
	}
	return DenyAllRule(name)
}

// CallerBounds returns the bounds of a caller with a token (nil: none) at the address of
// a profile ("": none). It returns nil if there are none.
func CallerBounds(t *ActiveToken, profile string, all Profiles) Bounds {
	if t == nil && profile == "" {
		return nil
	}
	return &bounds{t, profile, all}
}

type bounds struct {
	token   *ActiveToken
	profile string
	all     Profiles
}

func (b *bounds) Scope() Scope {
	if b.token == nil {
		return ScopeOf(b.all.rule(b.profile))
	}
	if b.token.HasEnded() {
		return ScopeOf(DenyAllRule(""))
	}
	bound := b.token.Profile
	if b.profile == bound {
		return ScopeOf(b.token.rule, b.all.rule(bound))
	}
	return ScopeOf(b.token.rule, b.all.rule(bound), b.all.rule(b.profile))
}
