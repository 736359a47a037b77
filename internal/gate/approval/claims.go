package approval

import (
	"cmp"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/presence"
)

// ApprovalClaim returns the claim that a user signs to approve a definition.
func ApprovalClaim(server string, c CandidateDefinition) presence.Claim {
	return newApprovalClaim(server, c.Kind, c.Tool, c.newPin(AuthorAndTime{}))
}

func newApprovalClaim(server string, kind tool.DefinitionKind, name string, p *Pin) presence.Claim {
	hints := p.Hints
	hints.Title = ""
	return presence.NewClaim("approve", cmp.Or(string(kind), "tool"), server, name, p.Fingerprint.String(), "hints "+string(hints.AppendJSON(nil)))
}

// LaunchClaim returns the claim that a user signs to approve a launch.
func LaunchClaim(server string, f tool.Fingerprint) presence.Claim {
	return presence.NewClaim("approve launch", server, f.String())
}

// SwitchOnClaim returns the claim that a user signs to switch a tool on.
func SwitchOnClaim(id tool.ID) presence.Claim {
	return presence.NewClaim("enable tool", id.Server, id.Tool)
}

func (l *ApprovedLaunch) toClaim() presence.Claim { return LaunchClaim(l.Server, l.Fingerprint) }

// AllClaims returns the claims of all approvals.
func (b *Book) AllClaims() (all []presence.Claim) {
	for server, v := range b.currentState().servers {
		for n, e := range v.entries {
			if e.Pin != nil {
				all = append(all, newApprovalClaim(server, n.kind, n.name, e.Pin))
			}
		}
		if v.launch != nil {
			all = append(all, v.launch.toClaim())
		}
	}
	return all
}

// UnsignedClaims returns the claims of approvals that are not valid because the signature is missing.
func (b *Book) UnsignedClaims() (all []presence.Claim) {
	for server, v := range b.currentState().servers {
		for n, e := range v.entries {
			if e.Unsigned != nil && e.Unsigned.ByUser() {
				all = append(all, newApprovalClaim(server, n.kind, n.name, e.Unsigned))
			}
		}
		if v.unsigned != nil {
			all = append(all, v.unsigned.toClaim())
		}
	}
	return all
}

// setAsideUnsigned moves an approval without a signature from Pin to Unsigned. An automatic approval is not a
// decision of a user: it is valid if this process has made it, and the process makes the loaded ones again.
func (b *Book) setAsideUnsigned(server string, row *DecisionRow) {
	p := row.Pin
	if p != nil && p.Before != nil && p.Before.Pin != nil && !b.gate.IsConfirmed(newApprovalClaim(server, row.Kind, row.Tool, p.Before.Pin)) {
		p.Before = nil
	}
	if row.endRefusedApproval(); row.Baseline != nil {
		if !b.gate.IsConfirmed(newApprovalClaim(server, row.Kind, row.Tool, row.Baseline)) {
			row.Baseline = nil
		}
		return
	}
	if p == nil || b.gate.IsConfirmed(newApprovalClaim(server, row.Kind, row.Tool, p)) {
		return
	}
	if before := b.ServerView(server).DecisionsOn(row.Kind, row.Tool); !p.ByUser() && before.Approves(p.Fingerprint) && !before.Pin.ByUser() && before.Pin.Hints == p.Hints {
		return
	}
	row.Pin, row.Unsigned, row.Was = nil, p, &p.Fingerprint
}

// toStoredForm converts the row for storage. An approval that is not valid stays stored. A baseline is stored only
// together with the block that overrides it, because without the block it would count as an approval.
func (r *DecisionRow) toStoredForm() {
	if r.Baseline != nil && (r.Block == nil || !r.Block.Overrides(r.Baseline)) {
		r.Baseline = nil
	}
	if notCounted := cmp.Or(r.Unsigned, r.Baseline); r.Pin == nil && notCounted != nil {
		r.Pin, r.Was = notCounted, nil
	}
	r.Unsigned, r.Baseline = nil, nil
}
