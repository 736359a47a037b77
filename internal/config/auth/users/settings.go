package users

import (
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/config/auth"
)

// Check is how the access of a token is checked again while it is valid.
type Check string

// The checks.
const (
	CheckUserInfo      Check = "userinfo"      // the provider's userinfo endpoint accepts the token
	CheckIntrospection Check = "introspection" // the provider's introspection endpoint says that the token is active
	CheckOff           Check = "off"           // not at all: MaxLifetime limits the token
)

// Checks returns the names of all checks.
func Checks() []string {
	return []string{string(CheckUserInfo), string(CheckIntrospection), string(CheckOff)}
}

// Settings configure a Verifier. They are not changed after Apply.
type Settings struct {
	PublicURL string // without a slash at its end
	ClientID  string // told to clients that cannot register; "" if there is none
	Scopes    []string
	Issuers   []Issuer
	Rules     []Rule
}

// Issuer is a provider whose tokens are accepted.
type Issuer struct {
	URL                        string
	Label                      string   // precedes the names of its users; "" for one issuer
	Audiences                  []string // accepted at the MCP addresses, next to their own URLs
	APIAudiences               []string // accepted by REST, next to its own URL
	ClientIDs                  []string // nil: all
	NameClaim, GroupsClaim     string
	TrustEmail                 bool // an address counts without email_verified
	IgnoreScopes               bool // every token has all lanes
	Check                      Check
	CheckClient, CheckPassword string        // client for introspection
	MaxLifetime                time.Duration // with CheckOff
}

// Rule gives access to the users that fit all its conditions. An empty condition fits everyone.
type Rule struct {
	Issuer   string
	Subjects []string
	Emails   []string // addresses, or @ and a domain
	Groups   []string

	Profile string
	Lanes   []string // nil: all
	Role    auth.Role
	Limits  auth.UserLimits
}

// identity is what the rules see of a user.
type identity struct {
	issuer, subject, email string
	groups                 []string
}

// ruleFor returns the first rule that fits; nil if there is none.
func (s *Settings) ruleFor(who *identity) *Rule {
	i := slices.IndexFunc(s.Rules, func(r Rule) bool { return r.fits(who) })
	if i < 0 {
		return nil
	}
	return &s.Rules[i]
}

func (r *Rule) fits(who *identity) bool {
	fitsEmail := func(pattern string) bool {
		if strings.HasPrefix(pattern, "@") {
			at := strings.LastIndexByte(who.email, '@')
			return at > 0 && strings.EqualFold(who.email[at:], pattern)
		}
		return who.email != "" && strings.EqualFold(who.email, pattern)
	}
	return (r.Issuer == "" || r.Issuer == who.issuer) &&
		(len(r.Subjects) == 0 || slices.Contains(r.Subjects, who.subject)) &&
		(len(r.Emails) == 0 || slices.ContainsFunc(r.Emails, fitsEmail)) &&
		(len(r.Groups) == 0 || slices.ContainsFunc(r.Groups, func(g string) bool { return slices.Contains(who.groups, g) }))
}
