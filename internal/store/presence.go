package store

import (
	"context"
	"fmt"
	"slices"

	"mcpproxy/internal/gate/presence"
)

// Presence has what proves that a person decides, and what was signed, in a database of
// either kind. What it stores survives a loss of power.
type Presence struct{ in *Asks } // which has the ways to either database

// Presence is what is signed about what people are asked, and everything else.
func (a *Asks) Presence() *Presence { return &Presence{a} }

// tellPresence has other instances told that something was signed.
func tellPresence(ctx context.Context, t transaction) error {
	if shared, ok := t.(sharedTx); ok {
		return shared.do(ctx, "SELECT pg_notify(?, ?)", pgChannel, pgToldPresence)
	}
	return nil
}

// LoadPresence returns everything, statements in the order of their times. What cannot be
// read is named: somebody has changed it.
func (p *Presence) LoadPresence(ctx context.Context) (all presence.StoredState, err error) {
	err = p.in.read(ctx, func(t transaction) error {
		all = presence.StoredState{}
		if err := anchors(ctx, t, &all); err != nil {
			return err
		}
		var statement, signature []byte
		var nonce, claims string
		return t.each(ctx, into{&nonce, &statement, &signature, &claims}, func() error {
			e, err := presence.ParseEvidence(statement, slices.Clone(signature), claims)
			if err != nil || e.Nonce != nonce {
				all.Bad = append(all.Bad, nonce)
				return nil
			}
			all.Statements = append(all.Statements, e)
			return nil
		}, "SELECT nonce, statement, signature, claims FROM presence_statement ORDER BY at, nonce")
	})
	return all, err
}

// anchors reads them in order.
func anchors(ctx context.Context, t transaction, all *presence.StoredState) error {
	var place int64
	var raw []byte
	return t.each(ctx, into{&place, &raw}, func() error {
		a, err := presence.ParseAnchor(raw)
		if err != nil {
			all.Bad = append(all.Bad, fmt.Sprintf("anchor %d", place))
		}
		all.Anchors = append(all.Anchors, a) // one that cannot be read is none, in its place
		return nil
	}, "SELECT place, anchor FROM presence_anchor ORDER BY place")
}

// SaveStatement stores a statement, or returns presence.ErrUsed.
func (p *Presence) SaveStatement(ctx context.Context, e presence.Evidence) error {
	return p.in.write(ctx, func(t transaction) error {
		stored := false
		err := t.each(ctx, into{new(string)}, func() error { stored = true; return nil },
			"INSERT INTO presence_statement (nonce, at, statement, signature, claims) VALUES (?, ?, ?, ?, ?) ON CONFLICT (nonce) DO NOTHING RETURNING nonce",
			e.Nonce, e.At.UnixMicro(), e.Statement.Text(), e.Signature, e.ClaimLines())
		switch {
		case err != nil:
			return err
		case !stored:
			return presence.ErrUsed
		}
		return tellPresence(ctx, t)
	})
}

// SaveAnchors has the anchors stored be these and no others, or returns presence.ErrMoved: the
// last one that is stored is not head.
func (p *Presence) SaveAnchors(ctx context.Context, head presence.Digest, all []presence.Anchor) error {
	return p.in.write(ctx, func(t transaction) error {
		if err := t.alone(ctx); err != nil {
			return err
		}
		var stored presence.StoredState
		if err := anchors(ctx, t, &stored); err != nil {
			return err
		}
		if stored.HeadFingerprint() != head {
			return presence.ErrMoved
		}
		if err := t.do(ctx, "DELETE FROM presence_anchor"); err != nil {
			return err
		}
		for i := range all {
			text, err := all[i].Text()
			if err != nil {
				return err
			}
			if err := t.do(ctx, "INSERT INTO presence_anchor (place, anchor) VALUES (?, ?)", int64(i), text); err != nil {
				return err
			}
		}
		return tellPresence(ctx, t)
	})
}
