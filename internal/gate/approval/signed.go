package approval

import (
	"cmp"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/presence"
)

// ClaimOf returns the claim that a user signs to approve a definition.
func ClaimOf(server string, c Candidate) presence.Claim {
	return claim(server, c.Kind, c.Tool, c.pin(Mark{}))
}

func claim(server string, kind tool.DefinitionKind, name string, p *Pin) presence.Claim {
	hints := p.Hints
	hints.Title = ""
	return presence.NewClaim("approve", cmp.Or(string(kind), "tool"), server, name, p.Fingerprint.String(), "hints "+string(hints.AppendJSON(nil)))
}

// LaunchClaim returns the claim that a user signs to approve a launch.
func LaunchClaim(server string, f tool.Fingerprint) presence.Claim {
	return presence.NewClaim("approve launch", server, f.String())
}

// SwitchClaim returns the claim that a user signs to switch a tool on.
func SwitchClaim(id tool.ID) presence.Claim {
	return presence.NewClaim("enable tool", id.Server, id.Tool)
}

func (l *Launch) claim() presence.Claim { return LaunchClaim(l.Server, l.Fingerprint) }

// Claims returns the claims of all approvals.
func (b *Book) Claims() (all []presence.Claim) {
	for server, v := range b.known().servers {
		for n, e := range v.entries {
			if e.Pin != nil {
				all = append(all, claim(server, n.kind, n.name, e.Pin))
			}
		}
		if v.launch != nil {
			all = append(all, v.launch.claim())
		}
	}
	return all
}

// Unsigned returns the claims of approvals that do not count because the signature is missing.
func (b *Book) Unsigned() (all []presence.Claim) {
	for server, v := range b.known().servers {
		for n, e := range v.entries {
			if e.Unsigned != nil && e.Unsigned.ByUser() {
				all = append(all, claim(server, n.kind, n.name, e.Unsigned))
			}
		}
		if v.unsigned != nil {
			all = append(all, v.unsigned.claim())
		}
	}
	return all
}

// checkSignature sets an approval aside that lacks a signature. An automatic approval is no decision of a
// user: it counts if this process has made it, and it repeats those that it loads.
func (b *Book) checkSignature(server string, row *Row) {
	p := row.Pin
	if p != nil && p.Before != nil && p.Before.Pin != nil && !b.gate.Confirmed(claim(server, row.Kind, row.Tool, p.Before.Pin)) {
		p.Before = nil
	}
	if p == nil || b.gate.Confirmed(claim(server, row.Kind, row.Tool, p)) {
		return
	}
	if before := b.View(server).Of(row.Kind, row.Tool); !p.ByUser() && before.Approves(p.Fingerprint) && !before.Pin.ByUser() && before.Pin.Hints == p.Hints {
		return
	}
	row.Pin, row.Unsigned, row.Was = nil, p, &p.Fingerprint
}

// store converts the row for storage: an approval that does not count stays stored.
func (r *Row) store() {
	if r.Pin == nil && r.Unsigned != nil {
		r.Pin, r.Was = r.Unsigned, nil
	}
	r.Unsigned = nil
}
