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

// maxReviewed bounds the offers that a review shows.
const maxReviewed = 5_000

// subject is a server as it is reviewed: one of the configuration, or one that
// is proposed.
type subject struct {
	name     string
	config   config.Server
	proposal *Proposal // nil for a server of the configuration
	decided  *approval.View
	listed   *catalog.Server // nil for a proposal
	tools    []definition
	offers   []definition
	more     int  // offers that are left out
	settled  bool // what it offers was asked for
}

// proposed is a proposal as a server.
func proposed(p Proposal) *subject {
	return &subject{name: p.Config.Name, config: p.Config, proposal: &p}
}

// shorten leaves out the offers that are more than a review shows: what waits
// comes first.
func (s *subject) shorten() {
	rank := func(d definition) int {
		if d.waits.Why == "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(s.offers, func(a, b definition) int { return rank(a) - rank(b) })
	s.more = max(0, len(s.offers)-maxReviewed)
	s.offers = s.offers[:len(s.offers)-s.more]
}

func (s *subject) stage() ReviewStage {
	if s.proposal != nil {
		return StageLaunch
	}
	return stageOf(s.config, s.decided)
}

// fingerprint is what an approval of the stage has to name.
func (s *subject) fingerprint() string {
	launch, h := s.config.LaunchFingerprint(), sha256.New()
	switch {
	case s.proposal != nil: // with the values of the environment, which a person is shown
		fmt.Fprintf(h, "mcpproxy proposal %s\n", launch)
		for _, name := range slices.Sorted(maps.Keys(s.config.Env)) {
			fmt.Fprintf(h, "%q %q\n", name, s.config.Env[name])
		}
	case s.stage() == StageLaunch:
		return launch.String()
	default:
		fmt.Fprintf(h, "mcpproxy review %s\n%x\n", launch, sha256.Sum256([]byte(s.instructions())))
		for _, d := range sorted(s.tools) {
			fmt.Fprintf(h, "%s %q\n", d.Fingerprint, d.Tool)
		}
		for _, d := range sorted(s.offers) {
			fmt.Fprintf(h, "%s %s %q\n", d.Fingerprint, d.Kind, d.Tool)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func sorted(all []definition) []definition {
	return slices.SortedFunc(slices.Values(all), func(a, b definition) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Tool, b.Tool))
	})
}

// told reports whether the tools are what the server lists. What another launch of
// it has listed is not, nor what is remembered, unless it is approved already.
func (s *subject) told() bool {
	return s.listed != nil && s.listed.Listed && (s.listed.ListedThisRun && s.settled || s.stage() == StageApproved)
}

func (s *subject) instructions() string {
	if s.listed == nil {
		return ""
	}
	return s.listed.State.Instructions
}

func (s *subject) waiting() WaitingServer {
	w := WaitingServer{
		Name: s.name, Stage: s.stage(), Fingerprint: s.fingerprint(),
		Launch: s.launch(), ToolCount: len(s.tools), OfferCount: len(s.offers) + s.more,
	}
	if s.proposal != nil {
		w.ProposedBy, w.ProposedAt, w.Since = s.proposal.By, &s.proposal.At, &s.proposal.At
		w.ClientName, w.SessionID = s.proposal.Client, s.proposal.Session
	} else if launch := s.decided.Launch(); launch != nil && s.stage() == StageDefinitions {
		w.Since = &launch.At
	}
	for _, list := range [][]definition{s.tools, s.offers} {
		for _, d := range list {
			w.Findings += len(d.Report().Findings)
		}
	}
	return w
}

// unsettled are the definitions that an approval of all is about.
func (s *subject) unsettled() (all []approval.Candidate) {
	for _, list := range [][]definition{s.tools, s.offers} {
		for _, d := range list {
			if d.unsettled() {
				all = append(all, d.Candidate)
			}
		}
	}
	return all
}

// claims are what a person signs who approves the stage.
func (s *subject) claims(stage ReviewStage, lost bool) (all []claim) {
	if stage == StageLaunch {
		return append(all, approval.LaunchClaim(s.name, s.config.LaunchFingerprint()))
	}
	for _, c := range s.unsettled() {
		all = append(all, approval.ClaimOf(s.name, c))
	}
	if launch := s.launchToPin(lost); launch != nil {
		all = append(all, approval.LaunchClaim(s.name, *launch))
	}
	return all
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
		return problem.Brief(l.URL)
	}
	return problem.Brief(strings.Join(append([]string{l.Command}, l.Args...), " "))
}

// launchToPin is the launch that the approval of definitions approves with
// them. That of a server which its owner wrote into the file is not reviewed,
// and what the owner changes there later needs no review; only where approvals
// were lost the pin says that this server is known again.
func (s *subject) launchToPin(lost bool) *tool.Fingerprint {
	if s.stage() == StageApproved && s.decided.Launch() == nil && !lost {
		return nil
	}
	launch := s.config.LaunchFingerprint()
	return &launch
}
