package catalog

import (
	"context"
	"slices"
	"time"

	"mcpproxy/internal/approval"
	"mcpproxy/internal/config"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/scan"
)

const (
	// admitTime is how long storing what is accepted may hold up a server.
	admitTime = 5 * time.Second
	// admitAgain is the time between two tries to accept what could not be
	// stored.
	admitAgain = 5 * time.Second
)

// Admission is what became of the definitions of one list that were not
// approved before.
type Admission struct {
	Server   string
	Trust    approval.Trust
	Accepted []approval.Judgement // by the trust in the server
	Held     []approval.Judgement // that wait for a person from now on
}

// Quarantined says whether a server waits for review: its configuration says
// so, or it is launched otherwise than the person approved who reviewed it.
func Quarantined(s config.Server, decided *approval.View) bool {
	launch := decided.Launch()
	return s.Quarantined || launch != nil && launch.Fingerprint != s.LaunchFingerprint()
}

// LaunchApproved says whether a person has approved how the server is launched.
func LaunchApproved(s config.Server, decided *approval.View) bool {
	launch := decided.Launch()
	return launch != nil && launch.Fingerprint == s.LaunchFingerprint()
}

// MayStart says whether a server may be started or contacted: it is enabled,
// and if it waits for review, a person has approved how it is launched. While
// it is not known what was approved, nothing may.
func MayStart(s config.Server, decided *approval.View) bool {
	return s.Enabled && decided.Known() && (!Quarantined(s, decided) || LaunchApproved(s, decided))
}

// facts is what the status of a tool follows from.
func facts(server config.Server, decided *approval.View, e *entry) policy.StatusFacts {
	entry := decided.Tool(e.definition.ID.Tool)
	denies := denied(server, e.definition.ID.Tool)
	return policy.StatusFacts{
		// What the configuration alone locks is locked for a known reason.
		Known:          decided.Known() || !server.Enabled || server.Quarantined || denies,
		ServerEnabled:  server.Enabled,
		Quarantined:    Quarantined(server, decided),
		DeniedByConfig: denies,
		SwitchedOff:    entry.Off != nil,
		Approved:       entry.Approves(e.definition.Fingerprint()),
	}
}

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

// Candidate is the tool's definition as it is judged.
func (t *Tool) Candidate() approval.Candidate { return t.entry.candidate(t.infer) }

// candidate has the hints that are declared. Where what is inferred counts as
// such, a change must not loosen that either.
func (e *entry) candidate(infer policy.InferMode) approval.Candidate {
	hints := e.definition.Hints
	if counts(infer) && policy.Silent(hints) {
		hints = policy.Effective(hints, e.inferred().Operation, infer)
	}
	return approval.Candidate{
		Tool: e.definition.ID.Tool, Fingerprint: e.definition.Fingerprint(), Hints: hints,
		Definition: e.definition.Raw, Report: e.report,
	}
}

// report is what the scanner says of the definition. Who asks at the same time
// as another may have it looked at twice, with the same result.
func (e *entry) report() scan.Report {
	if r := e.scanned.Load(); r != nil {
		return *r
	}
	r := scan.Definition(e.definition)
	e.scanned.Store(&r)
	return r
}

// admit accepts of a list what the trust in the server allows, before it is
// published. done is false when it has to be tried again. What came with this
// list, against old, and waits is told of when tell says so.
func (c *Catalog) admit(ctx context.Context, server string, old *list, entries []*entry, tell bool) (accepted int, done bool) {
	decided := c.Book.View(server)
	configured, infer, there := c.configured(server)
	if !there || !decided.Known() {
		return 0, false
	}
	var open []*entry
	var candidates []approval.Candidate
	for _, e := range entries {
		if !decided.Tool(e.definition.ID.Tool).Approves(e.definition.Fingerprint()) {
			open, candidates = append(open, e), append(candidates, e.candidate(infer))
		}
	}
	if len(candidates) == 0 {
		return 0, true
	}
	rules := approval.Rules{Trust: approval.Trust(configured.Trust), Quarantined: Quarantined(configured, decided)}
	judged, err := c.Book.Admit(ctx, server, rules, candidates)
	if err != nil && ctx.Err() == nil {
		c.Logger.Warn("the tools of a server cannot be accepted now", "server", server, "error", err)
	}
	a := Admission{Server: server, Trust: rules.Trust}
	known := old.set()
	for i, j := range judged {
		switch {
		case j.Accepted:
			a.Accepted = append(a.Accepted, j)
		case j.Why != "" && tell && !rules.Quarantined && !known[open[i]]:
			a.Held = append(a.Held, j)
		}
	}
	if c.Observe != nil && len(a.Accepted)+len(a.Held) > 0 {
		c.Observe(a)
	}
	return len(a.Accepted), err == nil
}

// set is the entries of a list.
func (l *list) set() map[*entry]bool {
	if l == nil {
		return nil
	}
	set := make(map[*entry]bool, len(l.entries))
	for _, e := range l.entries {
		set[e] = true
	}
	return set
}

func (c *Catalog) configured(server string) (s config.Server, infer policy.InferMode, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.servers, func(s config.Server) bool { return s.Name == server })
	if i < 0 {
		return config.Server{}, c.infer, false
	}
	return c.servers[i], c.infer, true
}

// admitRest tries again what could not be accepted, and judges anew what a
// changed configuration may judge otherwise. It says whether nothing is left.
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
	if total > 0 {
		c.Refresh()
	}
	return all
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
	c.Refresh() // what was unknown is known
}
