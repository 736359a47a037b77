package catalog

import (
	"context"
	"maps"
	"slices"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// registerToolNames registers the names of a server's tools before any of them is evaluated.
func (c *Catalog) registerToolNames(server string, entries []*analyzedTool) {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.definition.ID.Tool
	}
	c.crossRefs.SetToolNames(server, names)
}

// recheckAccepted puts automatically accepted definitions back under review if they refer to a tool of another server
// that was listed later. It returns when the check is complete or another goroutine runs it. It returns false when the
// check failed and will be repeated.
func (c *Catalog) recheckAccepted(ctx context.Context, came bool) bool {
	d := &c.rechecks
	d.mu.Lock()
	defer d.mu.Unlock()
	if came {
		d.requested++
	}
	if d.running {
		return true // the running goroutine serves this request
	}
	d.running = true
	defer func() { d.running = false }()
	for d.completed < d.requested {
		seen := d.requested
		d.mu.Unlock()
		done := c.recheckAll(ctx)
		d.mu.Lock()
		if !done {
			if came { // else the caller retries
				trySignal(c.unsaved)
			}
			return false
		}
		d.completed = seen
	}
	return true
}

// restart makes the next recheck start over.
func (d *recheckQueue) restart() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.completed = 0
}

// isDone reports whether all requested rechecks are complete.
func (d *recheckQueue) isDone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.completed == d.requested
}

func (c *Catalog) recheckAll(ctx context.Context) (done bool) {
	all := map[string][]approval.CandidateDefinition{}
	c.mu.Lock()
	lists, offers := maps.Clone(c.lists), maps.Clone(c.primitives)
	c.mu.Unlock()
	for server, l := range lists {
		for _, e := range l.externalRefs() {
			if e.scanned.RefersToOtherServer() {
				_, infer, _ := c.serverConfig(server)
				all[server] = append(all[server], e.approvalCandidate(infer))
			}
		}
	}
	for server, o := range offers {
		for _, one := range o.Reviewable() {
			if one.scanned.RefersToOtherServer() {
				all[server] = append(all[server], one.ApprovalCandidate())
			}
		}
	}
	done = true
	for server, candidates := range all {
		done = c.recheckServer(ctx, server, candidates) && done
	}
	return done
}

// precomputeExternalRefs computes external references in advance, so that the recheck does not have to.
func (c *Catalog) precomputeExternalRefs() {
	c.mu.Lock()
	lists := slices.Collect(maps.Values(c.lists))
	c.mu.Unlock()
	for _, l := range lists {
		l.externalRefs()
	}
}

// recheckServer puts automatically accepted definitions of a server back under review.
func (c *Catalog) recheckServer(ctx context.Context, server string, candidates []approval.CandidateDefinition) (done bool) {
	rules, decided, ok := c.admissionRules(server)
	if !ok {
		return decided.IsLoaded() // else the server is no longer configured
	}
	candidates = slices.DeleteFunc(candidates, func(x approval.CandidateDefinition) bool {
		return !decided.DecisionsOn(x.Kind, x.Tool).ApprovedByScan(x.Fingerprint)
	})
	if len(candidates) == 0 {
		return true
	}
	held, err := c.Approvals.HoldCrossServerInstructions(ctx, server, rules, candidates)
	if err != nil {
		if ctx.Err() == nil {
			c.Logger.Warn("could not put definitions that give instructions about tools of other servers back under review", "server", server, "error", err)
		}
		return false
	}
	byKind := map[tool.DefinitionKind]*AdmissionOutcome{}
	for _, j := range held {
		if byKind[j.Kind] == nil {
			byKind[j.Kind] = &AdmissionOutcome{Server: server, Kind: j.Kind, Trust: rules.Trust}
		}
		byKind[j.Kind].Held = append(byKind[j.Kind].Held, j)
	}
	c.reportAdmissions(byKind)
	return true
}
