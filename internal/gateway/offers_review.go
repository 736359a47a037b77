package gateway

import (
	"context"
	"slices"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/door"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// The bounds of a review.
const (
	maxReviewed  = 5_000 // offers that it shows
	maxDiffShown = 100   // of how many of them it shows the difference
)

// addOffers adds what a server offers beside tools: what waits first.
func (g *Gateway) addOffers(s *subject, snapshot *catalog.Snapshot) {
	s.settled = s.listed == nil || s.listed.State.Phase != upstream.Ready || g.offers.Settled(snapshot, s.listed)
	if s.listed == nil {
		return
	}
	g.offers.Hear(context.Background(), s.listed) // what it says of itself is known already
	all := g.Catalog.Offers(s.name).Shown()
	now := g.Catalog.OffersNow(s.name)
	slices.SortStableFunc(all, func(a, b *catalog.Offer) int { return rank(now.Approves(a)) - rank(now.Approves(b)) })
	s.more = max(0, len(all)-maxReviewed)
	s.offers = all[:len(all)-s.more]
}

func rank(approved bool) int {
	if approved {
		return 1
	}
	return 0
}

// offerWaits returns why an offer waits for a person, if it does.
func offerWaits(decided *approval.View, o *catalog.Offer) approval.Judgement {
	return approval.Judge(approval.Rules{}, decided.Of(o.Kind, o.Name), o.Candidate())
}

func (g *Gateway) reviewedOffers(ctx context.Context, s *subject) []ReviewedOffer {
	all, diffs := make([]ReviewedOffer, 0, len(s.offers)), 0
	for _, o := range s.offers {
		report, why := o.Candidate().Report(), offerWaits(s.decided, o).Why
		v := ReviewedOffer{
			Kind: o.Kind, Name: o.Name, Fingerprint: o.Fingerprint.String(), Status: g.Catalog.OfferStatus(s.name, o).String(),
			Reason: why, ForClients: o.ForClients, Definition: o.Raw, Verdict: report.Verdict, Findings: findings(report),
		}
		if why == approval.Changed && diffs < maxDiffShown {
			diffs++
			if d, err := g.diffOffer(ctx, s.name, o); err == nil { // without it the whole definition is there
				v.Changes = d.Changes
			}
		}
		all = append(all, v)
	}
	return all
}

// addWaiting adds the offers of a server that wait.
func (g *Gateway) addWaiting(w *Waiting, s *catalog.Server, decided *approval.View) {
	if !decided.Known() {
		return
	}
	for _, o := range g.Catalog.Offers(s.Name).Shown() {
		e := decided.Of(o.Kind, o.Name)
		if e.Approves(o.Fingerprint) {
			continue
		}
		if w.TotalOffers++; w.TotalOffers > maxWaiting {
			continue
		}
		report := o.Candidate().Report()
		v := WaitingOffer{Kind: o.Kind, Server: s.Name, Name: o.Name, Reason: offerWaits(decided, o).Why,
			Fingerprint: o.Fingerprint.String(), Verdict: report.Verdict, Findings: findings(report)}
		if e.Pin != nil {
			v.Approved = e.Pin.Fingerprint.String()
		}
		w.Offers = append(w.Offers, v)
	}
}

// countOffers is nil when there are none.
func countOffers(now *catalog.OffersView) *OfferCounts {
	if len(now.Counts()) == 0 {
		return nil
	}
	var c OfferCounts
	for kind, n := range now.Counts() {
		one := &OfferCount{n.Total, n.Waiting}
		switch kind {
		case tool.KindInstructions:
			c.Instructions = one
		case tool.KindPrompt:
			c.Prompts = one
		case tool.KindResource:
			c.Resources = one
		case tool.KindTemplate:
			c.Templates = one
		}
	}
	return &c
}

// findOffer returns an offer that is there to be approved, or NOT_FOUND.
func (g *Gateway) findOffer(in OfferRef) (*catalog.Offer, error) {
	snapshot := g.Catalog.Current()
	s := snapshot.Server(in.Server)
	if s == nil {
		return nil, door.NoServer(snapshot, in.Server)
	}
	g.offers.Hear(context.Background(), s) // what it says of itself is known already
	if o := g.Catalog.Offers(in.Server).Find(in.Kind, in.Name); o != nil {
		return o, nil
	}
	if in.Kind == tool.KindInstructions {
		return nil, problem.Newf(problem.NotFound, "Server '%s' has no instructions.", in.Server).
			WithHint("See what waits with `mcpproxy approvals`.")
	}
	return nil, problem.Newf(problem.NotFound, "Server '%s' has no %s '%s', as far as is known.", in.Server, in.Kind.Word(), clip(in.Name)).
		WithHint("See what the server offers with `mcpproxy upstream review " + in.Server + "`.")
}

// ApproveOffer approves the definition of a prompt, a resource, a template or
// of instructions that was seen, if it is still what the server has.
func (g *Gateway) ApproveOffer(ctx context.Context, c Caller, in OfferDecision) (OfferDiff, error) {
	return g.decideOffer(ctx, in, "approve_", c, func(o *catalog.Offer) error {
		return g.Book.Approve(ctx, in.Server, c.Actor.String(), []approval.Candidate{o.Candidate()}, nil)
	})
}

// BlockOffer refuses it. When it was approved it is not any more.
func (g *Gateway) BlockOffer(ctx context.Context, c Caller, in OfferDecision) (OfferDiff, error) {
	return g.decideOffer(ctx, in, "block_", c, func(o *catalog.Offer) error {
		return g.Book.BlockOffer(ctx, in.Kind, tool.ID{Server: in.Server, Tool: in.Name}, o.Fingerprint, c.Actor.String())
	})
}

func (g *Gateway) decideOffer(ctx context.Context, in OfferDecision, action string, c Caller, decide func(*catalog.Offer) error) (OfferDiff, error) {
	detail := clip(in.Fingerprint)
	if in.Kind != tool.KindInstructions {
		detail = clip(in.Name) + " " + detail
	}
	err := g.act(c, about(c, activity.Approval, tool.ID{Server: in.Server}, action+string(in.Kind), detail), func() error {
		o, err := g.findOffer(in.OfferRef)
		if err != nil {
			return err
		}
		if err := same("The definition", o.Fingerprint.String(), in.Fingerprint); err != nil {
			return err
		}
		return decide(o)
	})
	if err != nil {
		return OfferDiff{}, err
	}
	return g.DiffOffer(ctx, c, in.OfferRef)
}

// DiffOffer returns the approved definition of a prompt, a resource, a template
// or of instructions beside the one that the server has now.
func (g *Gateway) DiffOffer(ctx context.Context, _ Caller, in OfferRef) (OfferDiff, error) {
	o, err := g.findOffer(in)
	if err != nil {
		return OfferDiff{}, err
	}
	return g.diffOffer(ctx, in.Server, o)
}

func (g *Gateway) diffOffer(ctx context.Context, server string, o *catalog.Offer) (OfferDiff, error) {
	decided, report := g.Book.View(server), o.Candidate().Report()
	e := decided.Of(o.Kind, o.Name)
	d := OfferDiff{
		Kind: o.Kind, Server: server, Name: o.Name, Status: g.Catalog.OfferStatus(server, o).String(), Reason: offerWaits(decided, o).Why, Fingerprint: o.Fingerprint.String(),
		Definition: o.Raw, Changes: []approval.Difference{}, Verdict: report.Verdict, Findings: findings(report),
	}
	if e.Pin == nil {
		return d, nil
	}
	raw, err := g.Book.Definition(ctx, o.Kind, tool.ID{Server: server, Tool: o.Name})
	if err != nil {
		return OfferDiff{}, err
	}
	if was, err := tool.ParseOffer(o.Kind, raw); err != nil || was.Fingerprint != e.Pin.Fingerprint {
		return d, nil // there is nothing to hold the new one against, as in DiffTool
	}
	d.Approved = &ApprovedView{Fingerprint: e.Pin.Fingerprint.String(), Definition: raw, By: e.Pin.By, At: e.Pin.At}
	changes, complete, err := approval.Diff(raw, o.Raw)
	if err != nil {
		return OfferDiff{}, err
	}
	d.Changes, d.Truncated = append(d.Changes, changes...), !complete
	return d, nil
}
