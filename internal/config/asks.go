package config

import (
	"cmp"
	"slices"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// Asks says by which rule a person is asked about a call of a tool that counts as a lane:
// the general rules and those of its server, and what the profiles of its caller add.
func (c *Config) Asks(id tool.ID, within policy.Scope, lane policy.Operation) policy.AskedBy {
	var own *policy.AskRules
	if s := c.Server(id.Server); s != nil {
		own = &s.Ask
	}
	caught := policy.Catch(&c.Ask, own, id, lane)
	for i := range c.Profiles {
		if p := &c.Profiles[i]; !caught.Asked() && within.InProfile(p.Name) {
			caught = p.Ask.Add(p.Name, id, lane)
		}
	}
	return caught
}

// MayAsk reports whether there are rules by which a person may be asked about a call to a
// server.
func (c *Config) MayAsk(server string, within policy.Scope) bool {
	if c.Ask.Any() {
		return true
	}
	if s := c.Server(server); s != nil && s.Ask.Any() {
		return true
	}
	for i := range c.Profiles {
		if p := &c.Profiles[i]; p.Ask.Any() && within.InProfile(p.Name) {
			return true
		}
	}
	return false
}

// defaultWait is for a configuration that was not parsed.
const defaultWait = 45 * time.Second

// AskWait is how long a call to a server waits for the answer.
func (c *Config) AskWait(server string) time.Duration {
	own := time.Duration(0)
	if s := c.Server(server); s != nil {
		own = s.Ask.Wait
	}
	return cmp.Or(own, c.Ask.Wait, defaultWait)
}

// AnswersByClient reports whether the form of a client that presents the token of that name
// approves. Who presents none has no name, and never does.
func (c *Config) AnswersByClient(token string) bool {
	return token != "" && c.Presence == PresenceNone && slices.Contains(c.AnswerByClient, token)
}
