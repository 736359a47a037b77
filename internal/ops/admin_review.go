package ops

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

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
		s.tools = mapSlice(s.listed.Tools, func(t *catalog.Tool) definitionUnderReview { return newToolUnderReview(t, s.decided) })
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
	stage, approve, unpinned := s.reviewStage(), a.approveDefinitions, ""
	detail := problem.ClipName(in.Fingerprint)
	if stage == StageLaunch {
		detail, approve = s.describeLaunch(), a.approveLaunch
	}
	err = a.runUserAction(c, newActionRecord(c, activity.Approval, tool.ID{Server: in.Name}, "approve_server_"+string(stage), detail), func() error {
		if err := checkFingerprint("Server '"+in.Name+"'", s.fingerprint(), in.Fingerprint); err != nil {
			return err
		}
		if stage == StageLaunch && a.pinLaunch != nil {
			unpinned = a.addPin(ctx, s)
		}
		if err := a.requirePresenceForApproval(ctx, s, stage); err != nil {
			return err
		}
		return approve(ctx, s, c)
	})
	if err != nil {
		return ServerReview{}, err
	}
	r, err := a.ServerReview(ctx, c, in.ServerRef)
	if unpinned != "" && r.Notice == "" {
		r.Notice = unpinnedNotice(in.Name, unpinned)
	}
	return r, err
}

// addPin pins the version that the command of a server starts. If that is not possible, the launch stays as it is, and
// why is the reason. A command that starts no package has no pin and no reason.
func (a *Admin) addPin(ctx context.Context, s *serverUnderReview) (why string) {
	pinned, why := a.pinLaunch(ctx, s.config)
	if why != "" {
		a.Logger.Warn("the version of a server is not pinned", "server", s.name, "reason", why)
	}
	s.pinned = pinned.Pin != s.config.Pin
	s.config = pinned
	return why
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

// maxReviewed limits the number of prompts, resources and templates in a review.
const maxReviewed = 5_000

// serverUnderReview is a configured or proposed server under review.
type serverUnderReview struct {
	name             string
	config           config.Server
	proposal         *Proposal // nil for a configured server
	pinned           bool      // the approval of the launch adds a pin to the configuration
	decided          *approval.ServerView
	listed           *catalog.Server // nil for a proposal
	tools            []definitionUnderReview
	primitives       []definitionUnderReview
	omitted          int  // number of primitives left out
	primitivesLoaded bool // whether the server's prompts, resources and templates were loaded
}

// newProposalUnderReview returns the review of a proposed server.
func newProposalUnderReview(p Proposal) *serverUnderReview {
	return &serverUnderReview{name: p.Config.Name, config: p.Config, proposal: &p}
}

// limitPrimitives keeps at most maxReviewed primitives and prefers the waiting ones.
func (s *serverUnderReview) limitPrimitives() {
	rank := func(d definitionUnderReview) int {
		if d.evaluation.Why == "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(s.primitives, func(a, b definitionUnderReview) int { return rank(a) - rank(b) })
	s.omitted = max(0, len(s.primitives)-maxReviewed)
	s.primitives = s.primitives[:len(s.primitives)-s.omitted]
}

func (s *serverUnderReview) reviewStage() ReviewStage {
	if s.proposal != nil {
		return StageLaunch
	}
	return reviewStageOf(s.config, s.decided)
}

// fingerprint returns the fingerprint that an approval of the current stage requires.
func (s *serverUnderReview) fingerprint() string {
	launch, h := s.config.LaunchFingerprint(), sha256.New()
	switch {
	case s.proposal != nil: // includes the environment values, which the user sees
		fmt.Fprintf(h, "mcpproxy proposal %s\n", launch)
		for _, name := range slices.Sorted(maps.Keys(s.config.Env)) {
			fmt.Fprintf(h, "%q %q\n", name, s.config.Env[name])
		}
	case s.reviewStage() == StageLaunch:
		return launch.String()
	default:
		fmt.Fprintf(h, "mcpproxy review %s\n%x\n", launch, sha256.Sum256([]byte(s.instructions())))
		for _, d := range sortedDefinitions(s.tools) {
			fmt.Fprintf(h, "%s %q\n", d.Fingerprint, d.Tool)
		}
		for _, d := range sortedDefinitions(s.primitives) {
			fmt.Fprintf(h, "%s %s %q\n", d.Fingerprint, d.Kind, d.Tool)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func sortedDefinitions(all []definitionUnderReview) []definitionUnderReview {
	return slices.SortedFunc(slices.Values(all), func(a, b definitionUnderReview) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Tool, b.Tool))
	})
}

// hasCurrentTools reports whether the tools are the ones that the server currently lists. Restored tools and tools that
// another launch listed count only if they are approved.
func (s *serverUnderReview) hasCurrentTools() bool {
	return s.listed != nil && s.listed.Listed && (s.listed.ListedThisRun && s.primitivesLoaded || s.reviewStage() == StageApproved)
}

func (s *serverUnderReview) instructions() string {
	if s.listed == nil {
		return ""
	}
	return s.listed.State.Instructions
}

func (s *serverUnderReview) toWaitingServer() WaitingServer {
	w := WaitingServer{
		Name: s.name, Stage: s.reviewStage(), Fingerprint: s.fingerprint(),
		Launch: s.launchView(), ToolCount: len(s.tools), OfferCount: len(s.primitives) + s.omitted,
	}
	if s.proposal != nil {
		w.ProposedBy, w.ProposedAt, w.Since = s.proposal.By, &s.proposal.At, &s.proposal.At
		w.ClientName, w.SessionID = s.proposal.Client, s.proposal.Session
	} else if launch := s.decided.ApprovedLaunch(); launch != nil && s.reviewStage() == StageDefinitions {
		w.Since = &launch.At
	}
	for _, list := range [][]definitionUnderReview{s.tools, s.primitives} {
		for _, d := range list {
			w.Findings += len(d.Report().Findings)
		}
	}
	return w
}

// definitionsToApprove returns the definitions that an approval of the whole server covers.
func (s *serverUnderReview) definitionsToApprove() (all []approval.CandidateDefinition) {
	for _, list := range [][]definitionUnderReview{s.tools, s.primitives} {
		for _, d := range list {
			if d.isNewOrChanged() {
				all = append(all, d.CandidateDefinition)
			}
		}
	}
	return all
}

// claimsToSign returns the claims that a user signs to approve the stage.
func (s *serverUnderReview) claimsToSign(stage ReviewStage, lost bool) (all []claimToSign) {
	if stage == StageLaunch {
		return append(all, approval.LaunchClaim(s.name, s.config.LaunchFingerprint()))
	}
	all = mapSlice(s.definitionsToApprove(), func(c approval.CandidateDefinition) claimToSign { return approval.ApprovalClaim(s.name, c) })
	if launch := s.launchFingerprintToApprove(lost); launch != nil {
		all = append(all, approval.LaunchClaim(s.name, *launch))
	}
	return all
}

// launchView returns the launch as shown to the user. A launch that waits for review is not masked, because a command
// can look like a secret.
func (s *serverUnderReview) launchView() LaunchView {
	if s.reviewStage() == StageLaunch {
		return newLaunchView(s.config.ExactLaunch())
	}
	return newLaunchView(s.config.MaskedLaunch())
}

// describeLaunch describes the launch for the activity record.
func (s *serverUnderReview) describeLaunch() string {
	l := s.config.MaskedLaunch()
	if l.URL != "" {
		return problem.ClipName(l.URL)
	}
	return problem.ClipName(strings.Join(append([]string{l.Command}, l.Args...), " "))
}

// launchFingerprintToApprove returns the fingerprint of the launch to approve together with the definitions. It returns
// nil for a server that the user wrote to the file, because its launch and later edits of it need no review. After the
// loss of approvals, it returns the fingerprint to mark the server as known.
func (s *serverUnderReview) launchFingerprintToApprove(lost bool) *tool.Fingerprint {
	if s.reviewStage() == StageApproved && s.decided.ApprovedLaunch() == nil && !lost {
		return nil
	}
	launch := s.config.LaunchFingerprint()
	return &launch
}

// maxSummaries limits the number of cached summaries. It exceeds the usual number of waiting definitions.
const maxSummaries = 20_000

// changeSummaryCache caches the differences between waiting and approved definitions. The zero value is empty.
type changeSummaryCache struct {
	mu       sync.Mutex // guards byChange
	byChange map[[2]tool.Fingerprint]*approval.ChangeSummary
}

// getOrCompute returns the summary of a change from the cache. If it is not cached, it calls compare and caches the
// result.
func (s *changeSummaryCache) getOrCompute(was, is tool.Fingerprint, compare func() *approval.ChangeSummary) *approval.ChangeSummary {
	key := [2]tool.Fingerprint{was, is}
	s.mu.Lock()
	summary := s.byChange[key]
	s.mu.Unlock()
	if summary != nil {
		return summary
	}
	if summary = compare(); summary == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byChange == nil || len(s.byChange) >= maxSummaries {
		s.byChange = map[[2]tool.Fingerprint]*approval.ChangeSummary{}
	}
	s.byChange[key] = summary
	return summary
}
