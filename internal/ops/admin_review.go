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
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// maxDiffShown limits the number of definitions in a review that are shown with differences.
const maxDiffShown = 100

// defaultWaiting is the default page size of PendingApprovals. It applies separately to tools and to primitives.
const defaultWaiting = 500

// findServerUnderReview returns a server or a proposal for review, with its definitions.
func (a *Admin) findServerUnderReview(name string) (*serverUnderReview, error) {
	snapshot := a.Catalog.Current()
	if c := a.Config().Server(name); c != nil {
		s := &serverUnderReview{name: name, config: *c, listed: snapshot.Server(name), primitivesLoaded: true}
		if s.listed == nil {
			s.decided = a.Book.ServerView(name)
			return s, nil
		}
		s.primitivesLoaded = a.Offers.AreListsUpToDate(snapshot, s.listed)
		a.Offers.StoreChangedInstructions(context.Background(), s.listed) // loads the instructions
		s.decided = a.Book.ServerView(name)
		for _, t := range s.listed.Tools {
			s.tools = append(s.tools, newToolUnderReview(t, s.decided))
		}
		for _, o := range a.Catalog.Primitives(name).Reviewable() {
			s.primitives = append(s.primitives, a.newPrimitiveUnderReview(name, o, s.decided))
		}
		s.limitPrimitives()
		return s, nil
	}
	p, there := a.Book.FindProposal(name)
	if !there {
		return nil, a.serverNotFoundError(name)
	}
	proposal, err := decodeProposal(p)
	if err != nil {
		return nil, err
	}
	return newProposalUnderReview(proposal), nil
}

// PendingApprovals returns all servers and definitions that wait for a user's approval. Proposed servers are last.
func (a *Admin) PendingApprovals(ctx context.Context, _ Caller, q PendingApprovalsQuery) (Waiting, error) {
	last := q.Offset + cmp.Or(q.Limit, defaultWaiting)
	page := func(n int) bool { return n > q.Offset && n <= last }
	w := Waiting{Servers: []WaitingServer{}, Tools: []WaitingTool{}, Offers: []WaitingOffer{}}
	for _, s := range a.Catalog.Current().Servers() {
		if s.Quarantined {
			if one, err := a.findServerUnderReview(s.Name); err == nil && one.proposal == nil {
				w.Servers = append(w.Servers, one.toWaitingServer())
			}
			continue
		}
		decided := a.Book.ServerView(s.Name)
		if !decided.IsLoaded() {
			continue
		}
		tools, offers := w.TotalTools, w.TotalOffers
		for _, t := range s.Tools {
			if decided.ToolDecisions(t.ID.Tool).Approves(t.Fingerprint()) {
				continue
			}
			d := newToolUnderReview(t, decided)
			w.addDefinition(d.evaluation.Why, d.scanResult())
			if w.TotalTools++; page(w.TotalTools) {
				w.Tools = append(w.Tools, a.waitingToolView(ctx, t, &d))
			}
		}
		for _, o := range a.Catalog.Primitives(s.Name).Reviewable() {
			if decided.DecisionsOn(o.Kind, o.Name).Approves(o.Fingerprint) {
				continue
			}
			d := a.newPrimitiveUnderReview(s.Name, o, decided)
			w.addDefinition(d.evaluation.Why, d.scanResult())
			if w.TotalOffers++; page(w.TotalOffers) {
				w.Offers = append(w.Offers, WaitingOffer{Kind: d.Kind, Server: d.server, Name: d.Tool, PendingInfo: a.pendingInfo(&d), ScanResult: d.scanResult()})
			}
		}
		tools, offers = w.TotalTools-tools, w.TotalOffers-offers
		if tools+offers > 0 && a.hasLostApprovals(s) {
			w.Forgotten, w.Warnings = append(w.Forgotten, Forgotten{Name: s.Name, Tools: tools, Offers: offers}), a.MissingApprovalWarnings()
		}
	}
	for _, p := range a.Proposals() {
		w.Servers = append(w.Servers, newProposalUnderReview(p).toWaitingServer())
	}
	return w, nil
}

// waitingToolView returns the view of a tool that waits for approval.
func (a *Admin) waitingToolView(ctx context.Context, t *catalog.Tool, d *definitionUnderReview) WaitingTool {
	w := WaitingTool{
		Name: d.toolID().String(), Server: d.server, Tool: d.Tool, PendingInfo: a.pendingInfo(d), Loosened: d.evaluation.Loosened, ScanResult: d.scanResult(),
		Lane: t.CallWith.Operation().String(), Guessed: t.LacksDeclaredHints(),
	}
	if d.pin != nil {
		w.What = a.summaries.getOrCompute(d.pin.Fingerprint, d.Fingerprint, func() *approval.ChangeSummary {
			c, err := a.compareToApproved(ctx, d)
			if err != nil || c.Approved == nil {
				return nil
			}
			s := approval.SummarizeDifferences(c.Changes)
			return &s
		})
	}
	return w
}

// ServerReview returns the information that a user reviews before approving a server.
func (a *Admin) ServerReview(ctx context.Context, _ Caller, in ServerRef) (ServerReview, error) {
	s, err := a.findServerUnderReview(in.Name)
	if err != nil {
		return ServerReview{}, err
	}
	r := s.toServerReview()
	diffs := 0
	changes := func(d definitionUnderReview) []approval.Difference {
		if d.evaluation.Why != approval.Changed || diffs == maxDiffShown {
			return nil
		}
		diffs++
		of, err := a.compareToApproved(ctx, &d)
		if err != nil || of.Truncated {
			return nil // without changes, a client shows the whole definition
		}
		return of.Changes
	}
	for _, d := range s.tools {
		r.Tools = append(r.Tools, ReviewedTool{Tool: d.Tool, ApprovalStatus: d.approvalStatus(), Definition: d.Definition, Changes: changes(d), ScanResult: d.scanResult()})
	}
	for _, d := range s.primitives {
		r.Offers = append(r.Offers, ReviewedOffer{Kind: d.Kind, Name: d.Tool, ApprovalStatus: d.approvalStatus(), ForClients: d.forClients,
			Definition: d.Definition, Changes: changes(d), ScanResult: d.scanResult()})
	}
	if a.Book.RestrictionsLost() {
		r.Notice = restrictionsLost
	}
	return r, nil
}

// toServerReview returns the review of the server without its tools and primitives.
func (s *serverUnderReview) toServerReview() ServerReview {
	r := ServerReview{
		Name: s.name, Stage: s.reviewStage(), Fingerprint: s.fingerprint(), Launch: s.launchView(),
		State: DisplayedServerState(s.listed), LastError: maskedLastError(s.listed), Listed: s.hasCurrentTools(), Instructions: s.instructions(),
		Tools: []ReviewedTool{}, Offers: []ReviewedOffer{}, TotalOffers: len(s.primitives) + s.omitted,
	}
	said := toScanResult(scan.ScanText("instructions", s.instructions()))
	r.Verdict, r.Findings = said.Verdict, said.Findings
	if s.proposal != nil {
		r.ProposedBy, r.ProposedAt, r.ProposedEnv = s.proposal.By, &s.proposal.At, s.config.Env
	}
	if launch := s.decided.ApprovedLaunch(); launch != nil && catalog.IsLaunchApproved(s.config, s.decided) {
		r.LaunchApprovedBy, r.LaunchApprovedAt = launch.By, &launch.At
	}
	return r
}

// ApproveServer approves the current stage of a server if the fingerprint matches: first its launch, then its
// definitions, which ends the quarantine. For a server that is not quarantined, it approves all waiting definitions
// except blocked ones.
func (a *Admin) ApproveServer(ctx context.Context, c Caller, in ServerDecision) (ServerReview, error) {
	s, err := a.findServerUnderReview(in.Name)
	if err != nil {
		return ServerReview{}, err
	}
	stage, approve := s.reviewStage(), a.approveDefinitions
	detail := problem.ClipName(in.Fingerprint)
	if stage == StageLaunch {
		detail, approve = s.describeLaunch(), a.approveLaunch
	}
	err = a.runUserAction(c, newActionRecord(c, activity.Approval, tool.ID{Server: in.Name}, "approve_server_"+string(stage), detail), func() error {
		if err := checkFingerprint("Server '"+in.Name+"'", s.fingerprint(), in.Fingerprint); err != nil {
			return err
		}
		if stage == StageLaunch && a.pinLaunch != nil {
			a.addPin(ctx, s)
		}
		if err := a.requirePresenceForApproval(ctx, s, stage); err != nil {
			return err
		}
		return approve(ctx, s, c)
	})
	if err != nil {
		return ServerReview{}, err
	}
	return a.ServerReview(ctx, c, in.ServerRef)
}

// addPin pins the version that the command of a server starts. If that is not possible, the launch stays as it is.
func (a *Admin) addPin(ctx context.Context, s *serverUnderReview) {
	pinned, why := a.pinLaunch(ctx, s.config)
	if why != "" {
		a.Logger.Warn("the version of a server is not pinned", "server", s.name, "reason", why)
	}
	s.pinned = pinned.Pin != s.config.Pin
	s.config = pinned
}

// requirePresenceForApproval requires proof of presence for an approval and for the configuration changes that it
// causes.
func (a *Admin) requirePresenceForApproval(ctx context.Context, s *serverUnderReview, stage ReviewStage) error {
	if !a.Presence.IsOn() {
		return nil
	}
	edit := quarantineForReview
	if stage != StageLaunch {
		edit = endQuarantine
	}
	widens, err := requiredClaims(func(permit config.ConfirmFunc) error { return edit(a.editor, permit, s) })
	if err != nil {
		return err
	}
	return a.Presence.RequireSigned(ctx, append(s.claimsToSign(stage, a.Book.ApprovalsLost()), widens...)...)
}

// quarantineForReview writes the server to the file as quarantined.
func quarantineForReview(e ConfigEditor, permit config.ConfirmFunc, s *serverUnderReview) error {
	if s.proposal != nil {
		edit := s.proposal.Edit
		edit.Pin = s.config.Pin
		return e.AddServers(permit, config.NamedEdit{Name: s.name, ServerEdit: edit})
	}
	if !s.config.Quarantined {
		if err := e.SetServer(permit, s.name, "quarantined", json.RawMessage("true")); err != nil {
			return err
		}
	}
	if !s.pinned {
		return nil
	}
	return e.SetServer(permit, s.name, "pin", wirejson.AppendString(nil, s.config.Pin))
}

// endQuarantine removes the server's quarantine from the file.
func endQuarantine(e ConfigEditor, permit config.ConfirmFunc, s *serverUnderReview) error {
	if !s.config.Quarantined {
		return nil
	}
	return e.SetServer(permit, s.name, "quarantined", nil)
}

// approveLaunch quarantines the server in the file before it approves the launch, so that no error can start a server
// that was not reviewed.
func (a *Admin) approveLaunch(ctx context.Context, s *serverUnderReview, c Caller) error {
	if err := quarantineForReview(a.editor, a.configConfirmFunc(ctx), s); err != nil {
		return err
	}
	now := a.Config().Server(s.name)
	if now == nil || now.LaunchFingerprint() != s.config.LaunchFingerprint() || !now.Quarantined {
		return problem.Newf(problem.Conflict, "The configuration of server '%s' was changed since it was read.", s.name).
			WithHint("Review it again, then decide.")
	}
	return a.Book.ApproveLaunch(ctx, s.name, now.LaunchFingerprint(), c.Actor.String())
}

// approveDefinitions approves the listed definitions, then ends the quarantine. The quarantine blocks all calls, so it
// ends last. If that fails, the approvals are kept but allow no calls, and another approval ends the quarantine.
func (a *Admin) approveDefinitions(ctx context.Context, s *serverUnderReview, c Caller) error {
	if !s.hasCurrentTools() {
		return problem.Newf(problem.ServerUnavailable, "Server '%s' has not listed its tools yet, so there is nothing to approve.", s.name).
			WithHint("See with `mcpproxy upstream logs " + s.name + "` what it is doing, and try again.")
	}
	if err := a.Book.Approve(ctx, s.name, c.Actor.String(), s.definitionsToApprove(), s.launchFingerprintToApprove(a.Book.ApprovalsLost())); err != nil {
		return err
	}
	return endQuarantine(a.editor, a.configConfirmFunc(ctx), s)
}

// QuarantineServer stops a server, locks its tools and requires a new review of its launch. It writes the file before
// it revokes the approval of the launch, because a missing approval locks only a quarantined server.
func (a *Admin) QuarantineServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	err := a.runUserAction(c, newActionRecord(c, activity.ServerChange, tool.ID{Server: in.Name}, "quarantine", ""), func() error {
		s, err := a.findServerUnderReview(in.Name)
		if err != nil || s.proposal != nil { // a proposal is always quarantined
			return err
		}
		if !s.config.Quarantined {
			if err := a.editor.SetServer(a.configConfirmFunc(ctx), in.Name, "quarantined", json.RawMessage("true")); err != nil {
				return err
			}
		}
		return a.Book.RevokeLaunch(ctx, in.Name)
	})
	return a.serverViewAfter(ctx, c, in, err)
}
