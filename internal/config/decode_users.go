package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/config/auth/users"
)

// The limits of users.
const (
	maxIssuers   = 16
	maxUserRules = 1_000
)

// checkUsers checks the keys of users. What depends on several keys is a warning, because a change of one of them may wait
// for a confirmation. Access is refused then.
func (d *decoder) checkUsers(g objectMembers, c *Config) {
	at := func(key string) int {
		if m, ok := g[key]; ok {
			return m.Name.StartOffset
		}
		return 0
	}
	warn := func(key, path, message, hint string) { d.addWarning(at(key), path, message, hint) }
	labels, urls := map[string]bool{}, map[string]bool{}
	for i, one := range c.OIDC.Issuers {
		mistake := func(message, hint string) {
			d.addMistake(at("oidc"), fmt.Sprintf("oidc.issuers[%d]", i), message, hint)
		}
		switch {
		case one.Issuer == "": // reported
		case urls[one.Issuer]:
			mistake("the issuer "+quoteClipped(one.Issuer)+" is listed twice", "keep one of them")
		case labels[one.Label]:
			mistake("another issuer has the same label", "give each issuer a label, so that their users cannot have the same name")
		case one.Check == users.CheckIntrospection && (one.ClientID == "" || one.ClientSecret == ""):
			mistake("introspection needs a client", "set client_id and client_secret")
		case slices.ContainsFunc(one.APIAudiences, func(a string) bool { return slices.Contains(one.Audiences, a) }):
			mistake("audiences and api_audiences have a value in common, so an MCP client could use REST with its token", "use another audience for REST")
		}
		isKind := func(k users.AudienceKind) func(string) bool {
			return func(a string) bool { return users.KindOfAudience(c.PublicURL, a) == k }
		}
		if slices.ContainsFunc(one.Audiences, isKind(users.RESTAudience)) {
			warn("oidc", fmt.Sprintf("oidc.issuers[%d]", i), "audiences has the address of REST, which gives no access at MCP addresses", "remove it: REST accepts it anyway")
		}
		if slices.ContainsFunc(one.APIAudiences, isKind(users.MCPAudience)) {
			warn("oidc", fmt.Sprintf("oidc.issuers[%d]", i), "api_audiences has an MCP address, which gives no access to REST", "use another audience for REST")
		}
		urls[one.Issuer], labels[one.Label] = true, true
	}
	for i, u := range c.Users {
		path := fmt.Sprintf("users[%d]", i)
		for _, list := range [][]string{u.Subjects, u.Emails, u.Groups, u.Lanes} {
			if list != nil && len(list) == 0 {
				d.addMistake(at("users"), path, "the rule has an empty list", "remove the key, or the rule")
			}
		}
		if u.Issuer != "" && !urls[u.Issuer] {
			warn("users", path, "the issuer of the rule is not in oidc.issuers, so the rule gives no access", "write it exactly as there")
		}
		if u.Profile != "" && c.Profile(u.Profile) == nil {
			warn("users", path, "there is no profile "+quoteClipped(u.Profile)+", so the rule gives no access", "add it to profiles")
		}
	}
	switch {
	case len(c.Users) == 0 && len(c.OIDC.Issuers) > 0:
		warn("oidc", "oidc", "oidc is set without users, so it has no effect", "add users")
	case len(c.Users) > 0 && len(c.OIDC.Issuers) == 0:
		warn("users", "users", "users is set without oidc.issuers, so no user has access", "add oidc.issuers")
	case len(c.Users) > 0 && c.PublicURL == "":
		warn("users", "users", "users is set without public_url, so no user has access", "set public_url to the URL that clients use")
	}
}

func checkEmailPattern(s string) error {
	local, domain, ok := strings.Cut(s, "@")
	if !ok || domain == "" || strings.ContainsAny(local+domain, "@*? ") {
		return errors.New("the value is neither an email address nor @ and a domain; such as @example.com")
	}
	return nil
}

// checkClientIDIfSet checks a client ID that may be empty.
func checkClientIDIfSet(s string) error {
	if s == "" {
		return nil
	}
	return checkOneLine(s)
}
