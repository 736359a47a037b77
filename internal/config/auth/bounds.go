package auth

// Profiles returns the rule of a profile of the configuration that is live; nil when
// there is none of that name.
type Profiles func(name string) *ScopeRule

// rule is that of a profile: nothing, when there is none (any more).
func (p Profiles) rule(name string) *ScopeRule {
	if name == "" {
		return nil
	}
	if r := p(name); r != nil {
		return r
	}
	return NoScope(name)
}

// Within returns the bounds of who presents a token (nil: none), at the address of a
// profile ("": none). They are nil where there are none.
func Within(t *Held, profile string, all Profiles) Bounds {
	if t == nil && profile == "" {
		return nil
	}
	return &bounds{t, profile, all}
}

type bounds struct {
	token   *Held
	profile string
	all     Profiles
}

func (b *bounds) Scope() Scope {
	if b.token == nil {
		return ScopeOf(b.all.rule(b.profile))
	}
	if b.token.Over() {
		return ScopeOf(NoScope(""))
	}
	bound := b.token.Profile
	if b.profile == bound {
		return ScopeOf(b.token.rule, b.all.rule(bound))
	}
	return ScopeOf(b.token.rule, b.all.rule(bound), b.all.rule(b.profile))
}
