package store

import (
	"context"
	"fmt"
	"slices"

	"mcpproxy/internal/gate/presence"
)

// PresenceProofStore stores the presence anchors and the signed statements, in SQLite or PostgreSQL.
// Writes survive a loss of power.
type PresenceProofStore struct{ questions *ApprovalQuestionStore } // for its access to either database

// PresenceProofs returns the store of anchors and signed statements in the same database.
func (a *ApprovalQuestionStore) PresenceProofs() *PresenceProofStore { return &PresenceProofStore{a} }

// notifyPresenceProofChange notifies the other instances of a new statement or anchor.
func notifyPresenceProofChange(ctx context.Context, t portableTx) error {
	if shared, ok := t.(pgTx); ok {
		return shared.exec(ctx, "SELECT pg_notify(?, ?)", pgChannel, notifyPresence)
	}
	return nil
}

// LoadPresence returns the anchors and the statements, in the order of their times. Bad names those
// that cannot be read: another program has changed them.
func (p *PresenceProofStore) LoadPresence(ctx context.Context) (all presence.StoredPresence, err error) {
	err = p.questions.read(ctx, func(t portableTx) error {
		all = presence.StoredPresence{}
		if err := loadPresenceAnchors(ctx, t, &all); err != nil {
			return err
		}
		var statement, signature []byte
		var nonce, claims string
		return t.eachRow(ctx, scanTargets{&nonce, &statement, &signature, &claims}, func() error {
			e, err := presence.ParseStoredEvidence(statement, slices.Clone(signature), claims)
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

// loadPresenceAnchors appends the anchors to all, in order.
func loadPresenceAnchors(ctx context.Context, t portableTx, all *presence.StoredPresence) error {
	var place int64
	var raw []byte
	return t.eachRow(ctx, scanTargets{&place, &raw}, func() error {
		a, err := presence.ParseAnchor(raw)
		if err != nil {
			all.Bad = append(all.Bad, fmt.Sprintf("anchor %d", place))
		}
		all.Anchors = append(all.Anchors, a) // an unreadable anchor stays empty in its position
		return nil
	}, "SELECT place, anchor FROM presence_anchor ORDER BY place")
}

// SaveStatement stores a statement, or returns presence.ErrUsed.
func (p *PresenceProofStore) SaveStatement(ctx context.Context, e presence.Evidence) error {
	return p.questions.write(ctx, func(t portableTx) error {
		stored := false
		err := t.eachRow(ctx, scanTargets{new(string)}, func() error { stored = true; return nil },
			"INSERT INTO presence_statement (nonce, at, statement, signature, claims) VALUES (?, ?, ?, ?, ?) ON CONFLICT (nonce) DO NOTHING RETURNING nonce",
			e.Nonce, e.At.UnixMicro(), e.Statement.CanonicalJSON(), e.Signature, e.ClaimLines())
		switch {
		case err != nil:
			return err
		case !stored:
			return presence.ErrUsed
		}
		return notifyPresenceProofChange(ctx, t)
	})
}

// SaveAnchors replaces all anchors. It returns presence.ErrMoved if the last stored anchor is not
// head.
func (p *PresenceProofStore) SaveAnchors(ctx context.Context, head presence.Digest, all []presence.Anchor) error {
	return p.questions.write(ctx, func(t portableTx) error {
		if err := t.lockExclusive(ctx); err != nil {
			return err
		}
		var stored presence.StoredPresence
		if err := loadPresenceAnchors(ctx, t, &stored); err != nil {
			return err
		}
		if stored.HeadFingerprint() != head {
			return presence.ErrMoved
		}
		if err := t.exec(ctx, "DELETE FROM presence_anchor"); err != nil {
			return err
		}
		for i := range all {
			text, err := all[i].StoredJSON()
			if err != nil {
				return err
			}
			if err := t.exec(ctx, "INSERT INTO presence_anchor (place, anchor) VALUES (?, ?)", int64(i), text); err != nil {
				return err
			}
		}
		return notifyPresenceProofChange(ctx, t)
	})
}
