package ops

import (
	"cmp"
	"context"
	"encoding/json"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// maxDiffShown bounds of how many definitions a review shows the difference.
const maxDiffShown = 100

// defaultWaiting is how many waiting tools, and offers, Approvals returns to who
// does not say how many.
const defaultWaiting = 500

// subject finds a server to review: what it lists, and what it offers beside.
func (a *Admin) subject(name string) (*subject, error) {
	snapshot := a.Catalog.Current()
	if c := a.Config().Server(name); c != nil {
		s := &subject{name: name, config: *c, listed: snapshot.Server(name), settled: true}
		if s.listed == nil {
			s.decided = a.Book.View(name)
			return s, nil
		}
		s.settled = a.Offers.UpToDate(snapshot, s.listed)
		a.Offers.RefreshInstructions(context.Background(), s.listed) // what it says of itself is known already
		s.decided = a.Book.View(name)
		for _, t := range s.listed.Tools {
			s.tools = append(s.tools, toolDefinition(t, s.decided))
		}
		for _, o := range a.Catalog.Primitives(name).Reviewable() {
			s.offers = append(s.offers, a.offerDefinition(name, o, s.decided))
		}
		s.shorten()
		return s, nil
	}
	p, there := a.Book.Proposal(name)
	if !there {
		return nil, a.NoServer(name)
	}
	proposal, err := readProposal(p)
	if err != nil {
		return nil, err
	}
	return proposed(proposal), nil
}

// Approvals returns everything that waits for a person: the servers that are
// proposed come last of theirs.
func (a *Admin) Approvals(ctx context.Context, _ Caller, q WaitingQuery) (Waiting, error) {
	last := q.Offset + cmp.Or(q.Limit, defaultWaiting)
	page := func(n int) bool { return n > q.Offset && n <= last }
	w := Waiting{Servers: []WaitingServer{}, Tools: []WaitingTool{}, Offers: []WaitingOffer{}}
	for _, s := range a.Catalog.Current().Servers() {
		if s.Quarantined {
			if one, err := a.subject(s.Name); err == nil && one.proposal == nil {
				w.Servers = append(w.Servers, one.waiting())
			}
			continue
		}
		decided := a.Book.View(s.Name)
		if !decided.Known() {
			continue
		}
		tools, offers := w.TotalTools, w.TotalOffers
		for _, t := range s.Tools {
			if decided.Tool(t.ID.Tool).Approves(t.Fingerprint()) {
				continue
			}
			d := toolDefinition(t, decided)
			w.Count(d.waits.Why, d.scanned())
			if w.TotalTools++; page(w.TotalTools) {
				w.Tools = append(w.Tools, a.waitingTool(ctx, t, &d))
			}
		}
		for _, o := range a.Catalog.Primitives(s.Name).Reviewable() {
			if decided.Of(o.Kind, o.Name).Approves(o.Fingerprint) {
				continue
			}
			d := a.offerDefinition(s.Name, o, decided)
			w.Count(d.waits.Why, d.scanned())
			if w.TotalOffers++; page(w.TotalOffers) {
				w.Offers = append(w.Offers, WaitingOffer{Kind: d.Kind, Server: d.server, Name: d.Tool, Pending: a.pending(&d), Scanned: d.scanned()})
			}
		}
		tools, offers = w.TotalTools-tools, w.TotalOffers-offers
		if tools+offers > 0 && a.Forgotten(s) {
			w.Forgotten, w.Warnings = append(w.Forgotten, Forgotten{Name: s.Name, Tools: tools, Offers: offers}), a.TrustWarnings()
		}
	}
	for _, p := range a.Proposals() {
		w.Servers = append(w.Servers, proposed(p).waiting())
	}
	return w, nil
}

// waitingTool returns a tool that waits.
func (a *Admin) waitingTool(ctx context.Context, t *catalog.Tool, d *definition) WaitingTool {
	w := WaitingTool{
		Name: d.id().String(), Server: d.server, Tool: d.Tool, Pending: a.pending(d), Loosened: d.waits.Loosened, Scanned: d.scanned(),
		Lane: t.CallWith.Operation().String(), Guessed: t.Undeclared(),
	}
	if d.pin != nil {
		w.What = a.summaries.of(d.pin.Fingerprint, d.Fingerprint, func() *approval.ChangeSummary {
			c, err := a.compared(ctx, d)
			if err != nil || c.Approved == nil {
				return nil
			}
			s := approval.Summarize(c.Changes)
			return &s
		})
	}
	return w
}

// ReviewServer returns what a person looks at before approving a server.
func (a *Admin) ReviewServer(ctx context.Context, _ Caller, in ServerRef) (ServerReview, error) {
	s, err := a.subject(in.Name)
	if err != nil {
		return ServerReview{}, err
	}
	r := s.review()
	diffs := 0
	for _, d := range s.offers {
		o := ReviewedOffer{Kind: d.Kind, Name: d.Tool, Standing: d.standing(), ForClients: d.forClients,
			Definition: d.Definition, Scanned: d.scanned()}
		if d.waits.Why == approval.Changed && diffs < maxDiffShown {
			diffs++
			if of, err := a.compared(ctx, &d); err == nil { // without it the whole definition is there
				o.Changes = of.Changes
			}
		}
		r.Offers = append(r.Offers, o)
	}
	if a.Book.RestrictionsLost() {
		r.Notice = restrictionsLost
	}
	return r, nil
}

func (s *subject) review() ServerReview {
	r := ServerReview{
		Name: s.name, Stage: s.stage(), Fingerprint: s.fingerprint(), Launch: s.launch(),
		State: StateOf(s.listed), LastError: lastError(s.listed), Listed: s.told(), Instructions: s.instructions(),
		Tools: []ReviewedTool{}, Offers: []ReviewedOffer{}, TotalOffers: len(s.offers) + s.more,
	}
	said := scanned(scan.Text("instructions", s.instructions()))
	r.Verdict, r.Findings = said.Verdict, said.Findings
	if s.proposal != nil {
		r.ProposedBy, r.ProposedAt, r.ProposedEnv = s.proposal.By, &s.proposal.At, s.config.Env
	}
	if launch := s.decided.Launch(); launch != nil && catalog.LaunchApproved(s.config, s.decided) {
		r.LaunchApprovedBy, r.LaunchApprovedAt = launch.By, &launch.At
	}
	for _, d := range s.tools {
		r.Tools = append(r.Tools, ReviewedTool{Tool: d.Tool, Standing: d.standing(), Definition: d.Definition, Scanned: d.scanned()})
	}
	return r
}

// ApproveServer takes a server one stage further, if the fingerprint is that of
// what is reviewed in it: how it is launched; then its definitions, which ends
// the quarantine. Of a server that is not quarantined it approves the
// definitions that wait, but for those that a person has blocked.
func (a *Admin) ApproveServer(ctx context.Context, c Caller, in ServerDecision) (ServerReview, error) {
	s, err := a.subject(in.Name)
	if err != nil {
		return ServerReview{}, err
	}
	stage, approve := s.stage(), a.approveDefinitions
	detail := problem.Brief(in.Fingerprint)
	if stage == StageLaunch {
		detail, approve = s.describeLaunch(), a.approveLaunch
	}
	err = a.act(c, Action(c, activity.Approval, tool.ID{Server: in.Name}, "approve_server_"+string(stage), detail), func() error {
		if err := same("Server '"+in.Name+"'", s.fingerprint(), in.Fingerprint); err != nil {
			return err
		}
		if err := a.permitReview(ctx, s, stage); err != nil {
			return err
		}
		return approve(ctx, s, c)
	})
	if err != nil {
		return ServerReview{}, err
	}
	return a.ReviewServer(ctx, c, in.ServerRef)
}

// permitReview has a person permit an approval, with what of it widens in the file.
func (a *Admin) permitReview(ctx context.Context, s *subject, stage ReviewStage) error {
	if !a.Presence.On() {
		return nil
	}
	edit := beginReview
	if stage != StageLaunch {
		edit = endReview
	}
	widens, err := widens(func(permit config.Permit) error { return edit(a.editor, permit, s) })
	if err != nil {
		return err
	}
	return a.Presence.Require(ctx, append(s.claims(stage, a.Book.Lost()), widens...)...)
}

// beginReview has a server in the file, quarantined.
func beginReview(e Editor, permit config.Permit, s *subject) error {
	switch {
	case s.proposal != nil:
		return e.AddServers(permit, config.NamedEdit{Name: s.name, ServerEdit: s.proposal.Edit})
	case !s.config.Quarantined:
		return e.SetServer(permit, s.name, "quarantined", json.RawMessage("true"))
	}
	return nil
}

// endReview ends the quarantine.
func endReview(e Editor, permit config.Permit, s *subject) error {
	if !s.config.Quarantined {
		return nil
	}
	return e.SetServer(permit, s.name, "quarantined", nil)
}

// approveLaunch has the server in the file, quarantined, before its launch is
// approved: whatever fails, nothing runs that was not reviewed.
func (a *Admin) approveLaunch(ctx context.Context, s *subject, c Caller) error {
	if err := beginReview(a.editor, a.Permit(ctx), s); err != nil {
		return err
	}
	now := a.Config().Server(s.name)
	if now == nil || now.LaunchFingerprint() != s.config.LaunchFingerprint() || !now.Quarantined {
		return problem.Newf(problem.Conflict, "The configuration of server '%s' has changed meanwhile.", s.name).
			WithHint("Look at it again, then decide.")
	}
	return a.Book.ApproveLaunch(ctx, s.name, now.LaunchFingerprint(), c.Actor.String())
}

// approveDefinitions approves what the server lists. The end of the quarantine is
// what lets anything be called, so it comes last. Approvals whose quarantine could
// not be ended stay: they are of what the person has seen and allow nothing alone,
// and the same approval ends it later.
func (a *Admin) approveDefinitions(ctx context.Context, s *subject, c Caller) error {
	if !s.told() {
		return problem.Newf(problem.ServerUnavailable, "Server '%s' has not told its tools yet, so there is nothing to approve.", s.name).
			WithHint("See with `mcpproxy upstream logs " + s.name + "` what it is doing, and try again.")
	}
	if err := a.Book.Approve(ctx, s.name, c.Actor.String(), s.unsettled(), s.launchToPin(a.Book.Lost())); err != nil {
		return err
	}
	return endReview(a.editor, a.Permit(ctx), s)
}

// QuarantineServer has a server reviewed anew: it is stopped, nothing of it can
// be called, and its launch waits for a person. The file says so before the
// approval of the launch is taken back: a changed launch is held by that.
func (a *Admin) QuarantineServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	err := a.act(c, Action(c, activity.ServerChange, tool.ID{Server: in.Name}, "quarantine", ""), func() error {
		s, err := a.subject(in.Name)
		if err != nil || s.proposal != nil { // which is quarantined
			return err
		}
		if !s.config.Quarantined {
			if err := a.editor.SetServer(a.Permit(ctx), in.Name, "quarantined", json.RawMessage("true")); err != nil {
				return err
			}
		}
		return a.Book.RevokeLaunch(ctx, in.Name)
	})
	return a.after(ctx, c, in, err)
}
