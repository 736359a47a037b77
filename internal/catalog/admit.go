package catalog

import (
	"context"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
)

// CurrentStatus returns a tool's status by the current decisions. A decision counts before the snapshot that contains
// it is published.
func (c *Catalog) CurrentStatus(t *Tool) policy.ToolStatus {
	if t.Status != policy.Callable {
		return t.Status
	}
	decided := c.Approvals.ServerView(t.ID.Server)
	entry := decided.ToolDecisions(t.ID.Tool)
	return policy.StatusOf(policy.StatusFacts{
		Known: decided.IsLoaded(), ServerEnabled: true,
		SwitchedOff: entry.Off != nil, Approved: entry.Approves(t.Fingerprint()),
	})
}

// admitTools accepts the definitions of a list that the server's trust allows, before the list is published. done is
// false when the caller has to retry. If tell is set, admitTools reports definitions that await approval and were not
// on the old list.
func (c *Catalog) admitTools(ctx context.Context, server string, old *toolList, entries []*analyzedTool, tell bool) (accepted int, done bool) {
	_, infer, _ := c.serverConfig(server)
	before := old.analyzedToolSet()
	return admitDefinitions(ctx, c, server, entries, func(e *analyzedTool) approval.CandidateDefinition { return e.approvalCandidate(infer) },
		func(e *analyzedTool) bool { return !tell || before[e] }, "could not accept the tools of a server")
}

// admitDefinitions accepts the definitions that the server's trust allows. It reports accepted definitions, and those
// that now await approval unless they were known before. done is false when the caller has to retry. A store error is
// logged with the message failed.
func admitDefinitions[T any](ctx context.Context, c *Catalog, server string, all []T, candidate func(T) approval.CandidateDefinition, known func(T) bool, failed string) (accepted int, done bool) {
	rules, decided, ok := c.admissionRules(server)
	if !ok {
		return 0, false
	}
	var open []T
	var candidates []approval.CandidateDefinition
	for _, one := range all {
		if x := candidate(one); !decided.DecisionsOn(x.Kind, x.Tool).Approves(x.Fingerprint) {
			open, candidates = append(open, one), append(candidates, x)
		}
	}
	if len(candidates) == 0 {
		return 0, true
	}
	evaluated, err := c.Approvals.AcceptTrusted(ctx, server, rules, candidates)
	if err != nil && ctx.Err() == nil {
		c.Logger.Warn(failed, "server", server, "error", err)
	}
	byKind := map[tool.DefinitionKind]*AdmissionOutcome{}
	for i, j := range evaluated {
		a := byKind[j.Kind]
		if a == nil {
			a = &AdmissionOutcome{Server: server, Kind: j.Kind, Trust: rules.Trust}
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
	c.reportAdmissions(byKind)
	return accepted, err == nil
}

func (c *Catalog) reportAdmissions(byKind map[tool.DefinitionKind]*AdmissionOutcome) {
	for _, a := range byKind {
		if c.Observe != nil && len(a.Accepted)+len(a.Held) > 0 {
			c.Observe(*a)
		}
	}
}

// admissionRules returns the evaluation rules for a server's definitions and the decisions about the server. ok is
// false until both are known.
func (c *Catalog) admissionRules(server string) (rules approval.EvaluationRules, decided *approval.ServerView, ok bool) {
	configured, _, there := c.serverConfig(server)
	decided = c.Approvals.ServerView(server)
	return approval.EvaluationRules{Trust: approval.Trust(configured.Trust), Quarantined: IsQuarantined(configured, decided)}, decided, there && decided.IsLoaded()
}

// serverConfig returns a server's configuration and its inference mode.
func (c *Catalog) serverConfig(server string) (s config.Server, infer policy.InferMode, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.servers { // a config.Server is large to copy
		if s := &c.servers[i]; s.Name == server {
			return *s, serverHintInferenceMode(*s, c.inferMode), true
		}
	}
	return config.Server{}, c.inferMode, false
}

// retryAdmissions retries definitions that could not be accepted. After a configuration change, it evaluates all
// definitions again. It reports whether every list is done.
func (c *Catalog) retryAdmissions(ctx context.Context) (all bool) {
	c.mu.Lock()
	rest := map[string][]*analyzedTool{}
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
		accepted, done := c.admitTools(ctx, server, nil, entries, false)
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
	offers, allOffers := c.retryPrimitiveAdmissions(ctx)
	if total+offers > 0 {
		c.Publish()
	}
	return all && allOffers
}

// loadApprovals reads the decisions, and retries until that succeeds.
func (c *Catalog) loadApprovals(ctx context.Context) {
	select {
	case <-c.Approvals.LoadedChan():
		return
	default:
	}
	for {
		err := c.Approvals.Load(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
		c.Logger.Error("the approvals cannot be read, so no tool can be called", "error", err)
		sleepContext(ctx, time.Second)
	}
	c.retryAdmissions(ctx)
}
