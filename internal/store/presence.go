package store

import (
	"context"
	"fmt"
	"slices"

	"mcpproxy/internal/gate/presence"
)

// PresenceProofStore stores presence anchors and signed statements in SQLite or PostgreSQL. Writes survive a loss of
// power.
type PresenceProofStore struct{ db transactor }

// PresenceProofs returns the store of anchors and signed statements in the same database.
func (a *ApprovalQuestionStore) PresenceProofs() *PresenceProofStore {
	return &PresenceProofStore{a.db}
}

// LoadPresence returns the anchors and the statements, ordered by time. Bad lists those that cannot be parsed, because
// another program changed them.
func (p *PresenceProofStore) LoadPresence(ctx context.Context) (presence.StoredState, error) {
	return viewed(ctx, p.db, func(ctx context.Context, t sqlReader) (all presence.StoredState, err error) {
		if err := loadPresenceAnchors(ctx, t, &all); err != nil {
			return all, err
		}
		var statement, signature []byte
		var nonce, claims string
		err = t.eachRow(ctx, scanTargets{&nonce, &statement, &signature, &claims}, func() error {
			e, err := presence.ParseStoredEvidence(statement, slices.Clone(signature), claims)
			if err != nil || e.Nonce != nonce {
				all.Bad = append(all.Bad, nonce)
				return nil
			}
			all.Statements = append(all.Statements, e)
			return nil
		}, "SELECT nonce, statement, signature, claims FROM presence_statement ORDER BY at, nonce")
		return all, err
	})
}

// loadPresenceAnchors appends the anchors to all, in order.
func loadPresenceAnchors(ctx context.Context, t sqlReader, all *presence.StoredState) error {
	var place int64
	var raw []byte
	return t.eachRow(ctx, scanTargets{&place, &raw}, func() error {
		a, err := presence.ParseAnchor(raw)
		if err != nil {
			all.Bad = append(all.Bad, fmt.Sprintf("anchor %d", place))
		}
		all.Anchors = append(all.Anchors, a) // an unreadable anchor is empty, but keeps its position
		return nil
	}, "SELECT place, anchor FROM presence_anchor ORDER BY place")
}

// SaveStatement stores a statement. It returns presence.ErrUsed if the statement is already stored.
func (p *PresenceProofStore) SaveStatement(ctx context.Context, e presence.Evidence) error {
	return p.db.updateDurably(ctx, func(ctx context.Context, t sqlTx) error {
		stored, err := t.firstRow(ctx, scanTargets{new(string)},
			"INSERT INTO presence_statement (nonce, at, statement, signature, claims) VALUES (?, ?, ?, ?, ?) ON CONFLICT (nonce) DO NOTHING RETURNING nonce",
			e.Nonce, e.At.UnixMicro(), e.Statement.CanonicalJSON(), e.Signature, e.ClaimLines())
		switch {
		case err != nil:
			return err
		case !stored:
			return presence.ErrUsed
		}
		t.notify(notifyPresence)
		return nil
	})
}

// SaveAnchors replaces all anchors. It returns presence.ErrMoved if head is not the last stored anchor.
func (p *PresenceProofStore) SaveAnchors(ctx context.Context, head presence.Digest, all []presence.Anchor) error {
	return p.db.updateDurably(ctx, func(ctx context.Context, t sqlTx) error {
		t.lockExclusive()
		var stored presence.StoredState
		if err := loadPresenceAnchors(ctx, t, &stored); err != nil {
			return err
		}
		if stored.HeadFingerprint() != head {
			return presence.ErrMoved
		}
		t.write("DELETE FROM presence_anchor")
		for i := range all {
			text, err := all[i].StoredJSON()
			if err != nil {
				return err
			}
			t.write("INSERT INTO presence_anchor (place, anchor) VALUES (?, ?)", int64(i), text)
		}
		t.notify(notifyPresence)
		return nil
	})
}
