package catalog

import (
	"context"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
)

// StatusNow is the status of a tool by what is decided at this moment: a
// decision counts before the snapshot that has it is published.
func (c *Catalog) StatusNow(t *Tool) policy.Status {
	if t.Status != policy.Callable {
		return t.Status
	}
	decided := c.Book.View(t.ID.Server)
	entry := decided.Tool(t.ID.Tool)
	return policy.StatusOf(policy.StatusFacts{
		Known: decided.Known(), ServerEnabled: true,
		SwitchedOff: entry.Off != nil, Approved: entry.Approves(t.Fingerprint()),
	})
}

// admit accepts of a list what the trust in the server allows, before it is
// published. done is false when it has to be tried again. What came with this
// list, against old, and waits is told of when tell is set.
func (c *Catalog) admit(ctx context.Context, server string, old *list, entries []*entry, tell bool) (accepted int, done bool) {
	_, infer, _ := c.configured(server)
	before := old.set()
	return judge(ctx, c, server, entries, func(e *entry) approval.Candidate { return e.candidate(infer) },
		func(e *entry) bool { return !tell || before[e] }, "the tools of a server cannot be accepted now")
}

// judge accepts of the definitions of a server, by what they are as candidates,
// what the trust in it allows. It tells of that and of those that wait, unless
// they were known before. done is false when it has to be tried again; why is
// logged as failed.
func judge[T any](ctx context.Context, c *Catalog, server string, all []T, candidate func(T) approval.Candidate, known func(T) bool, failed string) (accepted int, done bool) {
	rules, decided, ok := c.rules(server)
	if !ok {
		return 0, false
	}
	var open []T
	var candidates []approval.Candidate
	for _, one := range all {
		if x := candidate(one); !decided.Of(x.Kind, x.Tool).Approves(x.Fingerprint) {
			open, candidates = append(open, one), append(candidates, x)
		}
	}
	if len(candidates) == 0 {
		return 0, true
	}
	judged, err := c.Book.Admit(ctx, server, rules, candidates)
	if err != nil && ctx.Err() == nil {
		c.Logger.Warn(failed, "server", server, "error", err)
	}
	byKind := map[tool.Kind]*Admission{}
	for i, j := range judged {
		a := byKind[j.Kind]
		if a == nil {
			a = &Admission{Server: server, Kind: j.Kind, Trust: rules.Trust}
			byKind[j.Kind] = a
		}
		switch {
		case j.Accepted:
			a.Accepted = append(a.Accepted, j)
			accepted++
		case j.Why != "" && !rules.Quarantined && !known(open[i]):
			a.Held = append(a.Held, j)
		}
	}
	c.tell(byKind)
	return accepted, err == nil
}

func (c *Catalog) tell(byKind map[tool.Kind]*Admission) {
	for _, a := range byKind {
		if c.Observe != nil && len(a.Accepted)+len(a.Held) > 0 {
			c.Observe(*a)
		}
	}
}

// rules are what definitions of a server are judged by, beside what is decided
// about it; ok is false as long as either is not known.
func (c *Catalog) rules(server string) (rules approval.Rules, decided *approval.View, ok bool) {
	configured, _, there := c.configured(server)
	decided = c.Book.View(server)
	return approval.Rules{Trust: approval.Trust(configured.Trust), Quarantined: Quarantined(configured, decided)}, decided, there && decided.Known()
}

// configured returns what the configuration says of a server, and what is made of
// its tools that say nothing.
func (c *Catalog) configured(server string) (s config.Server, infer policy.InferMode, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.servers { // a config.Server is large to hand about
		if s := &c.servers[i]; s.Name == server {
			return *s, infers(*s, c.infer), true
		}
	}
	return config.Server{}, c.infer, false
}

// admitRest tries again what could not be accepted, and judges anew what a
// changed configuration may judge otherwise. It reports whether nothing is left.
func (c *Catalog) admitRest(ctx context.Context) (all bool) {
	c.mu.Lock()
	rest := map[string][]*entry{}
	for server, l := range c.lists {
		if !l.admitted {
			l.admitted = true
			rest[server] = l.entries
		}
	}
	c.mu.Unlock()
	total := 0
	all = true
	for server, entries := range rest {
		accepted, done := c.admit(ctx, server, nil, entries, false)
		total += accepted
		if !done {
			all = false
			c.mu.Lock()
			if l := c.lists[server]; l != nil {
				l.admitted = false
			}
			c.mu.Unlock()
		}
	}
	offers, allOffers := c.admitRestOffers(ctx)
	if total+offers > 0 {
		c.Refresh()
	}
	return all && allOffers
}

// loadBook reads what is decided, until that succeeds.
func (c *Catalog) loadBook(ctx context.Context) {
	select {
	case <-c.Book.Loaded():
		return
	default:
	}
	for {
		err := c.Book.Load(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
		c.Logger.Error("the approvals cannot be read, so no tool can be called", "error", err)
		pause(ctx, time.Second)
	}
	c.admitRest(ctx)
}
