package config

import (
	"cmp"
	"slices"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// AskRuleFor returns the rule that makes a call in that lane wait for approval. It considers the general rules, the
// server's rules, and the additional rules of the caller's profiles.
func (c *Config) AskRuleFor(id tool.ID, within policy.Scope, lane policy.Operation) policy.ApprovalRule {
	var own *policy.AskRules
	if s := c.Server(id.Server); s != nil {
		own = &s.Ask
	}
	caught := policy.FindApprovalRule(&c.Ask, own, id, lane)
	for i := range c.Profiles {
		if p := &c.Profiles[i]; !caught.IsSet() && within.HasProfile(p.Name) {
			caught = p.Ask.FindProfileRule(p.Name, id, lane)
		}
	}
	return caught
}

// MayAskUser reports whether any rule may ask a user about a call to a server.
func (c *Config) MayAskUser(server string, within policy.Scope) bool {
	if c.Ask.RequiresAnyApproval() {
		return true
	}
	if s := c.Server(server); s != nil && s.Ask.RequiresAnyApproval() {
		return true
	}
	for i := range c.Profiles {
		if p := &c.Profiles[i]; p.Ask.RequiresAnyApproval() && within.HasProfile(p.Name) {
			return true
		}
	}
	return false
}

// defaultWait is the wait if the configuration was not parsed.
const defaultWait = 45 * time.Second

// AskTimeout returns how long a call to a server waits for the answer.
func (c *Config) AskTimeout(server string) time.Duration {
	own := time.Duration(0)
	if s := c.Server(server); s != nil {
		own = s.Ask.Wait
	}
	return cmp.Or(own, c.Ask.Wait, defaultWait)
}

// ClientMayApprove reports whether the elicitation form of a client with that token may approve. A client without a
// token has no name and may never approve.
func (c *Config) ClientMayApprove(token string) bool {
	return token != "" && c.Presence == PresenceNone && slices.Contains(c.AnswerByClient, token)
}
