package approval

import (
	"cmp"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/presence"
)

// ClaimOf is what a person signs who approves a definition.
func ClaimOf(server string, c Candidate) presence.Claim {
	return claim(server, c.Kind, c.Tool, c.pin(Mark{}))
}

func claim(server string, kind tool.Kind, name string, p *Pin) presence.Claim {
	hints := p.Hints
	hints.Title = ""
	return presence.NewClaim("approve", cmp.Or(string(kind), "tool"), server, name, p.Fingerprint.String(), "hints "+string(hints.AppendJSON(nil)))
}

// LaunchClaim is what a person signs who approves how a server is launched.
func LaunchClaim(server string, f tool.Fingerprint) presence.Claim {
	return presence.NewClaim("approve launch", server, f.String())
}

// SwitchClaim is what a person signs who switches a tool on.
func SwitchClaim(id tool.ID) presence.Claim {
	return presence.NewClaim("enable tool", id.Server, id.Tool)
}

func (l *Launch) claim() presence.Claim { return LaunchClaim(l.Server, l.Fingerprint) }

// Claims are those of everything that is approved.
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

// Unsigned names what is approved and does not count, since nobody has signed it.
func (b *Book) Unsigned() (all []presence.Claim) {
	for server, v := range b.known().servers {
		for n, e := range v.entries {
			if e.Unsigned != nil && e.Unsigned.ByPerson() {
				all = append(all, claim(server, n.kind, n.name, e.Unsigned))
			}
		}
		if v.unsigned != nil {
			all = append(all, v.unsigned.claim())
		}
	}
	return all
}

// weigh puts an approval aside that does not count. What the trust in a server has
// accepted is nobody's decision: it counts when this process has accepted it itself, which
// it does anew where the store alone says so.
func (b *Book) weigh(server string, row *Row) {
	p := row.Pin
	if p != nil && p.Before != nil && p.Before.Pin != nil && !b.gate.Confirmed(claim(server, row.Kind, row.Tool, p.Before.Pin)) {
		p.Before = nil
	}
	if p == nil || b.gate.Confirmed(claim(server, row.Kind, row.Tool, p)) {
		return
	}
	if before := b.View(server).Of(row.Kind, row.Tool); !p.ByPerson() && before.Approves(p.Fingerprint) && !before.Pin.ByPerson() && before.Pin.Hints == p.Hints {
		return
	}
	row.Pin, row.Unsigned, row.Was = nil, p, &p.Fingerprint
}

// store makes the row what is stored: what does not count stays there.
func (r *Row) store() {
	if r.Pin == nil && r.Unsigned != nil {
		r.Pin, r.Was = r.Unsigned, nil
	}
	r.Unsigned = nil
}
