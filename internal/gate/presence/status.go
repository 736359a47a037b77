package presence

import (
	"context"
	"time"
)

// Status is the status of presence.
type Status struct {
	On             bool
	Kind           ProofKind // kind of the anchor
	Void           string    // why no grant of access is valid; "" if signatures are valid
	Remedy         string
	Anchor         *Anchor // the verifying anchor; nil if there is none
	Reset          time.Time
	Places         []FingerprintStatus
	Signed         int      // number of verified statements
	Bad            []string // statements that do not verify
	MaySet         bool     // a root anchor can be set
	MayJoin        bool
	MayCancelReset bool // a reset can be cancelled
}

// FingerprintStatus is the status of one fingerprint store.
type FingerprintStatus struct {
	Name  string
	State FingerprintState
}

// Status reads the fingerprint stores again and returns the status of presence.
func (g *Gate) Status(ctx context.Context) (Status, error) {
	if g == nil {
		return Status{Kind: None}, nil
	}
	if err := g.Reload(ctx); err != nil {
		return Status{}, err
	}
	s, v := g.currentVerdict()
	out := Status{On: v.on, Kind: s.chain.lastAnchor().Kind, Void: v.invalidReason, Remedy: v.remedy, Signed: len(s.all), Bad: s.bad, MaySet: v.canSetRoot, MayJoin: v.canJoin}
	for _, p := range g.opt.Places {
		out.Places = append(out.Places, FingerprintStatus{p.Name(), s.places[p.Name()].state})
	}
	if out.MayCancelReset = v.canCancelReset; s.chain.lastAnchor().Kind == reset {
		out.Reset, out.Kind = s.chain.lastAnchor().Since, None
	}
	if before := s.chain.beforeReset(); before.lastAnchor().canVerifyStatements() {
		out.Anchor = before.lastAnchor()
		out.Kind = out.Anchor.Kind
	}
	return out, nil
}
