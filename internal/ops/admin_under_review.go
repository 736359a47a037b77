package ops

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
)

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
	for _, c := range s.definitionsToApprove() {
		all = append(all, approval.ApprovalClaim(s.name, c))
	}
	if launch := s.launchFingerprintToApprove(lost); launch != nil {
		all = append(all, approval.LaunchClaim(s.name, *launch))
	}
	return all
}

// launchView returns the launch as shown to the user. A launch that waits for review is not masked, because a command
// can look like a secret.
func (s *serverUnderReview) launchView() LaunchView {
	if s.reviewStage() == StageLaunch {
		return LaunchView(s.config.ExactLaunch())
	}
	return LaunchView(s.config.MaskedLaunch())
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
