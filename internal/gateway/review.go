package gateway

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
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/door"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/redact"
	"mcpproxy/internal/scan"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// subject is a server as it is reviewed: one of the configuration, or one that
// is proposed.
type subject struct {
	name     string
	config   config.Server
	proposal *approval.Proposal // nil for a server of the configuration
	decided  *approval.View
	listed   *catalog.Server // nil for a proposal
	offers   []*catalog.Offer
	more     int  // offers that are left out
	settled  bool // what it offers was asked for
}

// subject finds a server to review.
func (g *Gateway) subject(name string) (*subject, error) {
	snapshot := g.Catalog.Current()
	if c := g.Config().Server(name); c != nil {
		s := &subject{name: name, config: *c, listed: snapshot.Server(name)}
		g.addOffers(s, snapshot)
		s.decided = g.Book.View(name)
		return s, nil
	}
	p, there := g.Book.Proposal(name)
	if !there {
		return nil, door.NoServer(snapshot, name)
	}
	return proposed(p)
}

// proposed is a proposal as a server.
func proposed(p approval.Proposal) (*subject, error) {
	s, _, err := readProposal(p)
	if err != nil {
		return nil, err
	}
	return &subject{name: p.Name, config: s, proposal: &p}, nil
}

// reviewed are the servers that wait for review: those that are proposed come
// last.
func (g *Gateway) reviewed() []*subject {
	var all []*subject
	for _, s := range g.Catalog.Current().Servers() {
		if !s.Quarantined {
			continue
		}
		if one, err := g.subject(s.Name); err == nil && one.proposal == nil {
			all = append(all, one)
		}
	}
	return append(all, g.proposals()...)
}

// proposals are the proposed servers whose name is not taken meanwhile.
func (g *Gateway) proposals() []*subject {
	var all []*subject
	for _, p := range g.Book.Proposals() {
		if g.Config().Server(p.Name) != nil {
			continue
		}
		one, err := proposed(p)
		if err != nil {
			g.Logger.Error("a proposed server cannot be read", "server", p.Name, "error", err)
			continue
		}
		all = append(all, one)
	}
	return all
}

func (s *subject) stage() ReviewStage {
	switch {
	case s.proposal != nil:
		return StageLaunch
	case !catalog.Quarantined(s.config, s.decided):
		return StageApproved
	case catalog.LaunchApproved(s.config, s.decided):
		return StageDefinitions
	}
	return StageLaunch
}

// fingerprint is what an approval of the stage has to name.
func (s *subject) fingerprint() string {
	launch := s.config.LaunchFingerprint()
	if s.proposal != nil {
		return s.proposedFingerprint(launch)
	}
	if s.stage() == StageLaunch {
		return launch.String()
	}
	h := sha256.New()
	fmt.Fprintf(h, "mcpproxy review %s\n%x\n", launch, sha256.Sum256([]byte(s.instructions())))
	tools := slices.Clone(s.tools())
	slices.SortFunc(tools, func(a, b *catalog.Tool) int { return cmp.Compare(a.ID.Tool, b.ID.Tool) })
	for _, t := range tools {
		fmt.Fprintf(h, "%s %q\n", t.Fingerprint(), t.ID.Tool)
	}
	offers := slices.Clone(s.offers)
	slices.SortFunc(offers, func(a, b *catalog.Offer) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for _, o := range offers {
		fmt.Fprintf(h, "%s %s %q\n", o.Fingerprint, o.Kind, o.Name)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// proposedFingerprint covers the values of the environment, too, which a person
// is shown of a proposal.
func (s *subject) proposedFingerprint(launch tool.Fingerprint) string {
	h := sha256.New()
	fmt.Fprintf(h, "mcpproxy proposal %s\n", launch)
	for _, name := range slices.Sorted(maps.Keys(s.config.Env)) {
		fmt.Fprintf(h, "%q %q\n", name, s.config.Env[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (s *subject) tools() []*catalog.Tool {
	if s.listed == nil {
		return nil
	}
	return s.listed.Tools
}

// told says whether the tools are what the server lists. What another launch of
// it has listed is not, nor what is remembered, unless it is approved already.
func (s *subject) told() bool {
	return s.listed != nil && s.listed.Listed && (s.listed.Told && s.settled || s.stage() == StageApproved)
}

func (s *subject) instructions() string {
	if s.listed == nil {
		return ""
	}
	return s.listed.State.Instructions
}

func (s *subject) proposer() (by string, at *time.Time) {
	if s.proposal == nil {
		return "", nil
	}
	return s.proposal.By, &s.proposal.At
}

func (s *subject) waiting() WaitingServer {
	w := WaitingServer{
		Name: s.name, Stage: s.stage(), Fingerprint: s.fingerprint(),
		Launch: s.launch(), ToolCount: len(s.tools()), OfferCount: len(s.offers) + s.more,
	}
	for _, o := range s.offers {
		w.Findings += len(o.Candidate().Report().Findings)
	}
	w.ProposedBy, w.ProposedAt = s.proposer()
	for _, t := range s.tools() {
		w.Findings += len(t.Candidate().Report().Findings)
	}
	return w
}

func (g *Gateway) review(ctx context.Context, s *subject) ServerReview {
	said := scan.Text("instructions", s.instructions())
	r := ServerReview{
		Name: s.name, Stage: s.stage(), Fingerprint: s.fingerprint(), Launch: s.launch(),
		State: string(upstream.Stopped), Instructions: s.instructions(),
		Verdict: said.Verdict, Findings: findings(said), Tools: []ReviewedTool{},
		Offers: g.reviewedOffers(ctx, s), TotalOffers: len(s.offers) + s.more,
	}
	r.ProposedBy, r.ProposedAt = s.proposer()
	if s.proposal != nil {
		r.ProposedEnv = s.config.Env
	}
	if launch := s.decided.Launch(); launch != nil && catalog.LaunchApproved(s.config, s.decided) {
		r.LaunchApprovedBy, r.LaunchApprovedAt = launch.By, &launch.At
	}
	if s.listed == nil {
		return r
	}
	r.Listed = s.told()
	if s.listed.State.Phase != upstream.Ready {
		r.LastError = redact.Text(s.listed.State.LastError)
	}
	if s.listed.State.Phase != "" {
		r.State = string(s.listed.State.Phase)
	}
	for _, t := range s.listed.Tools {
		report := t.Candidate().Report()
		r.Tools = append(r.Tools, ReviewedTool{
			Tool: t.ID.Tool, Fingerprint: t.Fingerprint().String(), Status: t.Status.String(),
			Reason: waits(s.decided.Tool(t.ID.Tool), t).Why, Definition: t.Raw,
			Verdict: report.Verdict, Findings: findings(report),
		})
	}
	return r
}

const restrictionsLost = "What was blocked or switched off earlier is lost, at least in part: look at each tool before you approve."

// ReviewServer returns what a person looks at before approving a server.
func (g *Gateway) ReviewServer(ctx context.Context, _ Caller, in ServerRef) (ServerReview, error) {
	s, err := g.subject(in.Name)
	if err != nil {
		return ServerReview{}, err
	}
	r := g.review(ctx, s)
	if g.Book.RestrictionsLost() {
		r.Notice = restrictionsLost
	}
	return r, nil
}

// ApproveServer takes a server one stage further, if the fingerprint is that of
// what is reviewed in it: how it is launched; then its definitions, which ends
// the quarantine. Of a server that is not quarantined it approves the
// definitions that wait, but for those that a person has blocked.
func (g *Gateway) ApproveServer(ctx context.Context, c Caller, in ServerDecision) (ServerReview, error) {
	s, err := g.subject(in.Name)
	if err != nil {
		return ServerReview{}, err
	}
	stage := s.stage()
	detail := clip(in.Fingerprint)
	if stage == StageLaunch {
		detail = s.describeLaunch()
	}
	err = g.act(c, about(c, activity.Approval, tool.ID{Server: in.Name}, "approve_server_"+string(stage), detail), func() error {
		if err := same("Server '"+in.Name+"'", s.fingerprint(), in.Fingerprint); err != nil {
			return err
		}
		if stage == StageLaunch {
			return g.approveLaunch(ctx, s, c)
		}
		return g.approveDefinitions(ctx, s, c)
	})
	if err != nil {
		return ServerReview{}, err
	}
	return g.ReviewServer(ctx, c, in.ServerRef)
}

// launch is what a person sees of the launch: nothing of it is masked while it
// waits, since a command can be made to look like a secret.
func (s *subject) launch() LaunchView {
	if s.stage() == StageLaunch {
		return LaunchView(s.config.ExactLaunch())
	}
	return LaunchView(s.config.ShownLaunch())
}

// describeLaunch is the launch for the record.
func (s *subject) describeLaunch() string {
	l := s.config.ShownLaunch()
	if l.URL != "" {
		return clip(l.URL)
	}
	return clip(strings.Join(append([]string{l.Command}, l.Args...), " "))
}

// approveLaunch has the server in the file, quarantined, before its launch is
// approved: whatever fails, nothing runs that was not reviewed.
func (g *Gateway) approveLaunch(ctx context.Context, s *subject, c Caller) error {
	switch {
	case s.proposal != nil:
		_, edit, err := readProposal(*s.proposal)
		if err != nil {
			return err
		}
		if err := g.Editor.AddServer(s.name, edit); err != nil {
			return err
		}
	case !s.config.Quarantined:
		if err := g.Editor.SetServer(s.name, "quarantined", json.RawMessage("true")); err != nil {
			return err
		}
	}
	now := g.Config().Server(s.name)
	if now == nil || now.LaunchFingerprint() != s.config.LaunchFingerprint() || !now.Quarantined {
		return problem.Newf(problem.Conflict, "The configuration of server '%s' has changed meanwhile.", s.name).
			WithHint("Look at it again, then decide.")
	}
	return g.Book.ApproveLaunch(ctx, s.name, now.LaunchFingerprint(), c.Actor.String())
}

// approveDefinitions approves what the server lists. The definitions are
// approved before the quarantine ends.
func (g *Gateway) approveDefinitions(ctx context.Context, s *subject, c Caller) error {
	if !s.told() {
		return problem.Newf(problem.ServerUnavailable, "Server '%s' has not told its tools yet, so there is nothing to approve.", s.name).
			WithHint("See with `mcpproxy upstream logs " + s.name + "` what it is doing, and try again.")
	}
	var all []approval.Candidate
	for _, t := range s.listed.Tools {
		if why := waits(s.decided.Tool(t.ID.Tool), t).Why; why == approval.New || why == approval.Changed {
			all = append(all, t.Candidate())
		}
	}
	for _, o := range s.offers {
		if why := offerWaits(s.decided, o).Why; why == approval.New || why == approval.Changed {
			all = append(all, o.Candidate())
		}
	}
	if err := g.Book.Approve(ctx, s.name, c.Actor.String(), all, g.launchToPin(s)); err != nil {
		return err
	}
	if s.config.Quarantined {
		return g.Editor.SetServer(s.name, "quarantined", nil)
	}
	return nil
}

// launchToPin is the launch that the approval of definitions approves with
// them. That of a server which its owner wrote into the file is not reviewed,
// and what the owner changes there later needs no review; only where approvals
// were lost the pin says that this server is known again.
func (g *Gateway) launchToPin(s *subject) *tool.Fingerprint {
	if s.stage() == StageApproved && s.decided.Launch() == nil && !g.Book.Lost() {
		return nil
	}
	launch := s.config.LaunchFingerprint()
	return &launch
}

// QuarantineServer has a server reviewed anew: it is stopped, nothing of it can
// be called, and its launch waits for a person. The file says so before the
// approval of the launch is taken back: a changed launch is held by that.
func (g *Gateway) QuarantineServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	name := in.Name
	err := g.act(c, about(c, activity.ServerChange, tool.ID{Server: name}, "quarantine", ""), func() error {
		s, err := g.subject(name)
		if err != nil || s.proposal != nil { // which is quarantined
			return err
		}
		if !s.config.Quarantined {
			if err := g.Editor.SetServer(name, "quarantined", json.RawMessage("true")); err != nil {
				return err
			}
		}
		return g.Book.RevokeLaunch(ctx, name)
	})
	if err != nil {
		return ServerView{}, err
	}
	return g.Server(ctx, c, in)
}
