package catalog

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
)

// Offers returns what a server offers beside tools, as far as it is known.
func (c *Catalog) Offers(server string) *Offers {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offers[server]
}

// OffersNow returns what a server offers beside tools, held against what is
// decided at this moment.
func (c *Catalog) OffersNow(server string) *OffersView {
	o, decided := c.Offers(server), c.Book.View(server)
	if o == nil {
		return &OffersView{decided: decided}
	}
	if v := o.seen.Load(); v != nil && v.decided == decided {
		return v
	}
	v := o.view(decided)
	o.seen.Store(v)
	return v
}

// OffersListed takes over a list that a server gave to MCPProxy itself. What
// its trust allows is approved before this returns.
func (c *Catalog) OffersListed(ctx context.Context, server string, kind tool.Kind, raws []json.RawMessage) {
	for {
		old := c.Offers(server)
		next := old.listed(kind, raws, source{server, c.names}, c.Book.View(server))
		known := func(o *Offer) bool {
			was := old.list(kind).byName[o.Name]
			return was != nil && was.Fingerprint == o.Fingerprint
		}
		accepted, admitted := c.admitOffers(ctx, server, next.Listed(kind), known)
		next.admitted = admitted && (old == nil || old.admitted)
		if !replace(c, c.offers, server, old, next) {
			continue
		}
		signal(c.wake)
		if !next.admitted {
			signal(c.unsaved)
		}
		if accepted > 0 {
			c.doubt(ctx, true)
		}
		return
	}
}

// admitOffers is admit for what a server offers beside tools. What waits is told
// of unless it was known before.
func (c *Catalog) admitOffers(ctx context.Context, server string, offers []*Offer, known func(*Offer) bool) (accepted int, done bool) {
	ctx, cancel := context.WithTimeout(ctx, admitTime)
	defer cancel()
	return judge(ctx, c, server, offers, (*Offer).Candidate, known, "what a server offers cannot be accepted now")
}

// OffersShown judges, element by element, a list that a server gave to a client
// in a session of its own, and returns which of them the client may see. What
// MCPProxy itself is listed goes first: another definition of the same name is
// not accepted besides. strange reports that there is such a one, so that what is
// known may be old.
func (c *Catalog) OffersShown(ctx context.Context, server string, kind tool.Kind, raws []json.RawMessage) (pass []bool, strange bool) {
	o := c.Offers(server)
	rules, decided, ok := c.rules(server)
	pass = make([]bool, len(raws))
	if !ok || rules.Quarantined {
		return pass, false
	}
	var news, settled []*Offer
	var at []int
	for i, raw := range raws {
		one := o.read(kind, raw, source{server, c.names})
		if one == nil {
			continue
		}
		own := o.list(kind).byName[one.Name]
		switch {
		case approved(decided, one):
			pass[i] = true
			if was := o.besides(kind, one.Name); was != nil && was.Fingerprint != one.Fingerprint {
				settled = append(settled, one)
			}
		case own != nil && own.Fingerprint != one.Fingerprint:
			strange = true
			pass[i] = rules.Trust == approval.Auto && approval.Evaluate(rules, decided.Of(kind, one.Name), one.Candidate()).Accepted
		default:
			news, at = append(news, one), append(at, i)
		}
	}
	var held []*Offer
	full := o != nil && len(o.beside) >= maxAside // then it is news each time
	if len(news) > 0 {
		c.admitOffers(ctx, server, news, func(one *Offer) bool {
			was := o.Find(kind, one.Name)
			return full || was != nil && was.Fingerprint == one.Fingerprint
		})
		decided = c.Book.View(server)
	}
	for k, one := range news {
		if pass[at[k]] = approved(decided, one); !pass[at[k]] && o.recall(kind, one.Name, one.Raw) == nil {
			held = append(held, one)
		}
	}
	c.noteBeside(server, held, settled)
	return pass, strange
}

// noteBeside puts up for review what clients alone were shown, and takes out
// what is again as it was approved.
func (c *Catalog) noteBeside(server string, held, settled []*Offer) {
	for len(held)+len(settled) > 0 {
		old := c.Offers(server)
		next := old.clone()
		for _, one := range settled {
			delete(next.beside, offerName{one.Kind, one.Name})
		}
		for _, one := range held {
			if old.list(one.Kind).byName[one.Name] == nil {
				next.putAside(one.aside(true))
			}
		}
		if replace(c, c.offers, server, old, next) {
			signal(c.wake)
			return
		}
	}
}

// admitRestOffers is admitRest for offers.
func (c *Catalog) admitRestOffers(ctx context.Context) (accepted int, all bool) {
	c.mu.Lock()
	rest := map[string]*Offers{}
	for server, o := range c.offers {
		if !o.admitted {
			rest[server] = o
		}
	}
	c.mu.Unlock()
	all = true
	for server, o := range rest {
		n, done := c.admitOffers(ctx, server, o.Shown(), func(*Offer) bool { return true })
		accepted += n
		all = all && done
		next := o.clone()
		next.admitted = done
		if n > 0 {
			next.epoch++
		}
		if !replace(c, c.offers, server, o, next) {
			all = false
		}
	}
	return accepted, all
}

// OfferStatus is the status of an offer by what is decided at this moment.
func (c *Catalog) OfferStatus(server string, o *Offer) policy.Status {
	return c.offerStatus(server, c.Book.View(server).Of(o.Kind, o.Name).Approves(o.Fingerprint))
}

func (c *Catalog) offerStatus(server string, approved bool) policy.Status {
	configured, _, there := c.configured(server)
	decided := c.Book.View(server)
	return policy.StatusOf(policy.StatusFacts{
		Known: there && decided.Known(), ServerEnabled: configured.Enabled,
		Quarantined: Quarantined(configured, decided), Approved: approved,
	})
}
