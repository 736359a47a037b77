package catalog

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
)

// Primitives returns the known primitives of a server.
func (c *Catalog) Primitives(server string) *ServerPrimitives {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.primitives[server]
}

// CurrentPrimitives returns a server's primitives with the current decisions.
func (c *Catalog) CurrentPrimitives(server string) *DecidedPrimitives {
	o, decided := c.Primitives(server), c.Approvals.ServerView(server)
	if o == nil {
		return &DecidedPrimitives{decided: decided}
	}
	if v := o.viewCache.Load(); v != nil && v.decided == decided {
		return v
	}
	v := o.withDecisions(decided)
	o.viewCache.Store(v)
	return v
}

// StorePrimitives replaces a list that a server sent to MCPProxy itself. Definitions that the server's trust allows are
// approved before it returns.
func (c *Catalog) StorePrimitives(ctx context.Context, server string, kind tool.DefinitionKind, raws []json.RawMessage) {
	for {
		old := c.Primitives(server)
		next := old.withUpdatedList(kind, raws, definitionOrigin{server, c.crossRefs}, c.Approvals.ServerView(server))
		known := func(o *Primitive) bool {
			was := old.listOrEmpty(kind).byName[o.Name]
			return was != nil && was.Fingerprint == o.Fingerprint
		}
		accepted, admitted := c.admitPrimitives(ctx, server, next.Listed(kind), known)
		next.admitted = admitted && (old == nil || old.admitted)
		if !replaceIfUnchanged(c, c.primitives, server, old, next) {
			continue
		}
		trySignal(c.wake)
		if !next.admitted {
			trySignal(c.unsaved)
		}
		if accepted > 0 {
			c.recheckAccepted(ctx, true)
		}
		return
	}
}

// admitPrimitives does for primitives what admitTools does for tools.
func (c *Catalog) admitPrimitives(ctx context.Context, server string, offers []*Primitive, known func(*Primitive) bool) (accepted int, done bool) {
	ctx, cancel := context.WithTimeout(ctx, admitTimeout)
	defer cancel()
	return admitDefinitions(ctx, c, server, offers, (*Primitive).ApprovalCandidate, known, "could not accept the definitions of a server")
}

// FilterClientList evaluates each element of a list that a server sent to a client in the client's own session, and
// returns which elements the client may see. MCPProxy's own list has precedence: another definition of the same name is
// rejected. strange reports such a definition, which means that the known list may be outdated.
func (c *Catalog) FilterClientList(ctx context.Context, server string, kind tool.DefinitionKind, raws []json.RawMessage) (pass []bool, strange bool) {
	o := c.Primitives(server)
	rules, decided, ok := c.admissionRules(server)
	pass = make([]bool, len(raws))
	if !ok || rules.Quarantined {
		return pass, false
	}
	var news, settled []*Primitive
	var at []int
	for i, raw := range raws {
		one, err := o.parsePrimitive(kind, raw, definitionOrigin{server, c.crossRefs})
		if err != nil {
			continue
		}
		own := o.listOrEmpty(kind).byName[one.Name]
		switch {
		case isPrimitiveApproved(decided, one):
			pass[i] = true
			if was := o.findUnlisted(kind, one.Name); was != nil && was.Fingerprint != one.Fingerprint {
				settled = append(settled, one)
			}
		case own != nil && own.Fingerprint != one.Fingerprint:
			strange = true
			pass[i] = rules.Trust == approval.Auto && approval.Evaluate(rules, decided.DecisionsOn(kind, one.Name), one.ApprovalCandidate()).Accepted
		default:
			news, at = append(news, one), append(at, i)
		}
	}
	var held []*Primitive
	full := o != nil && len(o.unlisted) >= maxUnlisted // then the definition counts as new each time
	if len(news) > 0 {
		c.admitPrimitives(ctx, server, news, func(one *Primitive) bool {
			was := o.FindReviewable(kind, one.Name)
			return full || was != nil && was.Fingerprint == one.Fingerprint
		})
		decided = c.Approvals.ServerView(server)
	}
	for k, one := range news {
		if pass[at[k]] = isPrimitiveApproved(decided, one); !pass[at[k]] && o.findIdentical(kind, one.Name, one.Raw) == nil {
			held = append(held, one)
		}
	}
	c.updateUnlisted(server, held, settled)
	return pass, strange
}

// updateUnlisted queues definitions that only clients saw for review, and removes those that match their approval again.
func (c *Catalog) updateUnlisted(server string, held, settled []*Primitive) {
	for len(held)+len(settled) > 0 {
		old := c.Primitives(server)
		next := old.clone()
		for _, one := range settled {
			delete(next.unlisted, primitiveKey{one.Kind, one.Name})
		}
		for _, one := range held {
			if old.listOrEmpty(one.Kind).byName[one.Name] == nil {
				next.addUnlisted(one.toUnlisted(true))
			}
		}
		if replaceIfUnchanged(c, c.primitives, server, old, next) {
			trySignal(c.wake)
			return
		}
	}
}

// retryPrimitiveAdmissions does for primitives what retryAdmissions does for tools.
func (c *Catalog) retryPrimitiveAdmissions(ctx context.Context) (accepted int, all bool) {
	c.mu.Lock()
	rest := map[string]*ServerPrimitives{}
	for server, o := range c.primitives {
		if !o.admitted {
			rest[server] = o
		}
	}
	c.mu.Unlock()
	all = true
	for server, o := range rest {
		n, done := c.admitPrimitives(ctx, server, o.Reviewable(), func(*Primitive) bool { return true })
		accepted += n
		all = all && done
		next := o.clone()
		next.admitted = done
		if n > 0 {
			next.epoch++
		}
		if !replaceIfUnchanged(c, c.primitives, server, o, next) {
			all = false
		}
	}
	return accepted, all
}

// PrimitiveStatus returns the status of a primitive by the current decisions.
func (c *Catalog) PrimitiveStatus(server string, o *Primitive) policy.ToolStatus {
	return c.primitiveStatusGivenApproval(server, c.Approvals.ServerView(server).DecisionsOn(o.Kind, o.Name).Approves(o.Fingerprint))
}

func (c *Catalog) primitiveStatusGivenApproval(server string, approved bool) policy.ToolStatus {
	configured, _, there := c.serverConfig(server)
	decided := c.Approvals.ServerView(server)
	return policy.StatusOf(policy.StatusFacts{
		Known: there && decided.IsLoaded(), ServerEnabled: configured.Enabled,
		Quarantined: IsQuarantined(configured, decided), Approved: approved,
	})
}
