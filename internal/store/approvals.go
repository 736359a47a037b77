package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// SaveApprovals stores a change of the decisions in one transaction.
func (s *commonStore) SaveApprovals(ctx context.Context, c approval.ChangeSet) error {
	return s.db.decide(ctx, false, newServerNotification(c.Server, c.Launch != nil), func(_ context.Context, t sqlTx) error {
		if c.RemoveProposal != "" {
			t.write("DELETE FROM proposal WHERE name = ?", c.RemoveProposal)
		}
		if p := c.Propose; p != nil {
			insertProposal(t, p)
		}
		applyServerChange(t, &c)
		return nil
	})
}

// applyServerChange writes the decisions about one server: forgotten decisions, the approved launch, and decisions
// about tools and primitives.
func applyServerChange(t sqlTx, c *approval.ChangeSet) {
	if c.Forget {
		t.write("DELETE FROM approval WHERE server = ?", c.Server)
		t.write("DELETE FROM held WHERE server = ?", c.Server)
	}
	if c.Forget || c.RevokeLaunch {
		t.write("DELETE FROM launch WHERE server = ?", c.Server)
	}
	if l := c.Launch; l != nil {
		t.write(`INSERT INTO launch (server, fingerprint, approved_by, approved_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (server) DO UPDATE SET fingerprint = excluded.fingerprint, approved_by = excluded.approved_by, approved_at = excluded.approved_at`,
			l.Server, l.Fingerprint[:], l.By, l.At.UnixMicro())
	}
	for _, row := range c.Tools {
		upsertDecision(t, c.Server, row)
	}
}

// ReplaceApprovals replaces all decisions. If an approval in all has no definition, the stored definition is kept.
func (s *commonStore) ReplaceApprovals(ctx context.Context, all approval.StoredDecisions) error {
	return s.db.decide(ctx, true, "", func(ctx context.Context, t sqlTx) error {
		if err := deleteDecisionsNotIn(ctx, t, all); err != nil {
			return err
		}
		for _, table := range []string{"launch", "proposal", "held"} {
			t.write("DELETE FROM " + table)
		}
		for server, rows := range all.Tools {
			for _, row := range rows {
				if row.HasDecision() {
					upsertDecision(t, server, row)
				}
			}
		}
		for _, l := range all.Launches {
			applyServerChange(t, &approval.ChangeSet{Server: l.Server, Launch: &l})
		}
		for _, p := range all.Proposals {
			insertProposal(t, &p)
		}
		for server, held := range all.Held {
			upsertHeld(t, server, held)
		}
		lost := int64(0)
		if all.Lost {
			lost = 1
		}
		t.write("UPDATE {decisions|approval_origin} SET lost = ?", lost)
		return nil
	})
}

// SaveHeld stores the times since which the last definition of each tool or primitive of a server has been waiting for
// review.
func (s *commonStore) SaveHeld(ctx context.Context, server string, all []approval.HeldDefinition) error {
	return s.db.update(ctx, func(_ context.Context, t sqlTx) error {
		upsertHeld(t, server, all)
		return nil
	})
}

func upsertHeld(t sqlTx, server string, all []approval.HeldDefinition) {
	for _, h := range all {
		t.write(`INSERT INTO held (server, kind, name, fingerprint, since) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (server, kind, name) DO UPDATE SET fingerprint = excluded.fingerprint, since = excluded.since`,
			server, string(h.Kind), h.Tool, h.Fingerprint[:], h.Since.UnixMicro())
	}
}

// decisionKey identifies the tool or primitive of a decision.
type decisionKey struct {
	kind tool.DefinitionKind
	tool.ID
}

// deleteDecisionsNotIn deletes the decisions about tools and primitives that s does not contain.
func deleteDecisionsNotIn(ctx context.Context, t sqlTx, s approval.StoredDecisions) error {
	keep := map[decisionKey]bool{}
	for server, rows := range s.Tools {
		for _, row := range rows {
			keep[decisionKey{row.Kind, tool.ID{Server: server, Tool: row.Tool}}] = row.HasDecision()
		}
	}
	var gone []decisionKey
	var server, kind, name string
	if err := t.eachRow(ctx, scanTargets{&server, &kind, &name}, func() error {
		if id := (decisionKey{tool.DefinitionKind(kind), tool.ID{Server: server, Tool: name}}); !keep[id] {
			gone = append(gone, id)
		}
		return nil
	}, "SELECT server, kind, tool FROM approval"); err != nil {
		return err
	}
	for _, id := range gone {
		t.write("DELETE FROM approval WHERE server = ? AND kind = ? AND tool = ?", id.Server, string(id.kind), id.Tool)
	}
	return nil
}

func insertProposal(t sqlTx, p *approval.ServerProposal) {
	t.write("INSERT INTO proposal (name, server, proposed_by, proposed_at) VALUES (?, ?, ?, ?)",
		p.Name, []byte(p.Server), p.By, p.At.UnixMicro())
}

// upsertDecision stores the decision about a tool or primitive. If row has no definition, the stored one is kept.
func upsertDecision(t sqlTx, server string, row approval.DecisionRow) {
	values := make([]any, 20)
	values[0], values[1], values[12] = server, row.Tool, string(row.Kind)
	if p := row.Pin; p != nil {
		values[2], values[3] = p.Fingerprint[:], string(p.Hints.AppendJSON(nil))
		values[5], values[6] = p.By, p.At.UnixMicro()
		if was := p.Before; was != nil {
			if p := was.Pin; p != nil {
				values[13], values[14] = p.Fingerprint[:], string(p.Hints.AppendJSON(nil))
				values[15], values[16] = p.By, p.At.UnixMicro()
			}
			if b := was.Block; b != nil {
				values[17], values[18], values[19] = b.Fingerprint[:], b.By, b.At.UnixMicro()
			}
		}
		if row.Definition != nil {
			values[4] = []byte(row.Definition)
		}
	}
	if b := row.Block; b != nil {
		values[7], values[8], values[9] = b.Fingerprint[:], b.By, b.At.UnixMicro()
	}
	if off := row.Off; off != nil {
		values[10], values[11] = off.By, off.At.UnixMicro()
	}
	t.write(`INSERT INTO approval (server, tool, approved, hints, definition, approved_by, approved_at,
			blocked, blocked_by, blocked_at, off_by, off_at, kind,
			before, before_hints, before_by, before_at, before_blocked, before_blocked_by, before_blocked_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (server, kind, tool) DO UPDATE SET
			approved = excluded.approved, hints = excluded.hints,
			definition = CASE
				WHEN excluded.approved IS NULL THEN NULL
				WHEN excluded.definition IS NOT NULL THEN excluded.definition
				WHEN excluded.approved <> approval.approved AND excluded.approved = approval.before THEN approval.before_definition
				ELSE approval.definition END,
			before_definition = CASE excluded.before
				WHEN approval.approved THEN approval.definition
				WHEN approval.before THEN approval.before_definition END,
			before = excluded.before, before_hints = excluded.before_hints, before_by = excluded.before_by, before_at = excluded.before_at,
			before_blocked = excluded.before_blocked, before_blocked_by = excluded.before_blocked_by, before_blocked_at = excluded.before_blocked_at,
			approved_by = excluded.approved_by, approved_at = excluded.approved_at,
			blocked = excluded.blocked, blocked_by = excluded.blocked_by, blocked_at = excluded.blocked_at,
			off_by = excluded.off_by, off_at = excluded.off_at`, values...)
}

// LoadApprovals returns all decisions, without the definitions. If an SQLite file contains invalid decisions, the file
// is renamed and replaced.
func (s *commonStore) LoadApprovals(ctx context.Context) (saved approval.StoredDecisions, err error) {
	err = s.db.loadDecisions(ctx, func(ctx context.Context, r sqlReader) error {
		saved, err = readApprovals(ctx, r)
		return err
	})
	return saved, err
}

func readApprovals(ctx context.Context, r sqlReader) (approval.StoredDecisions, error) {
	saved := approval.StoredDecisions{Tools: map[string][]approval.DecisionRow{}}
	var lost int64
	found, err := r.firstRow(ctx, scanTargets{&lost}, "SELECT lost FROM {decisions|approval_origin}")
	if err == nil && !found {
		err = fmt.Errorf("%w: its origin is missing", errDamaged)
	}
	if saved.Lost = lost != 0; err != nil {
		return saved, err
	}
	var server string
	var approved, blocked []byte
	var hints, approvedBy, blockedBy, offBy sql.NullString
	var approvedAt, blockedAt, offAt sql.NullInt64
	var was, wasBlocked []byte
	var wasHints, wasBy, wasBlockedBy sql.NullString
	var wasAt, wasBlockedAt sql.NullInt64
	mark := func(by sql.NullString, at sql.NullInt64) approval.AuthorAndTime {
		return approval.AuthorAndTime{By: by.String, At: time.UnixMicro(at.Int64)}
	}
	if err := r.eachRow(ctx, scanTargets{&server, &approved, &approvedBy, &approvedAt}, func() error {
		l := approval.ApprovedLaunch{Server: server, AuthorAndTime: mark(approvedBy, approvedAt)}
		err := parseFingerprint(&l.Fingerprint, approved)
		saved.Launches = append(saved.Launches, l)
		return err
	}, "SELECT server, fingerprint, approved_by, approved_at FROM launch ORDER BY server"); err != nil {
		return saved, err
	}
	var name string
	var proposed []byte
	if err := r.eachRow(ctx, scanTargets{&name, &proposed, &approvedBy, &approvedAt}, func() error {
		saved.Proposals = append(saved.Proposals, approval.ServerProposal{Name: name, Server: proposed, AuthorAndTime: mark(approvedBy, approvedAt)})
		return nil
	}, "SELECT name, server, proposed_by, proposed_at FROM proposal ORDER BY id"); err != nil {
		return saved, err
	}
	var kind string
	var since int64
	if err := r.eachRow(ctx, scanTargets{&server, &kind, &name, &approved, &since}, func() error {
		h := approval.HeldDefinition{Kind: tool.DefinitionKind(kind), Tool: name, Since: time.UnixMicro(since)}
		err := parseFingerprint(&h.Fingerprint, approved)
		if saved.Held == nil {
			saved.Held = map[string][]approval.HeldDefinition{}
		}
		saved.Held[server] = append(saved.Held[server], h)
		return err
	}, "SELECT server, kind, name, fingerprint, since FROM held ORDER BY server, kind, name"); err != nil {
		return saved, err
	}
	err = r.eachRow(ctx, scanTargets{&server, &kind, &name, &approved, &hints, &approvedBy, &approvedAt,
		&blocked, &blockedBy, &blockedAt, &offBy, &offAt,
		&was, &wasHints, &wasBy, &wasAt, &wasBlocked, &wasBlockedBy, &wasBlockedAt}, func() (err error) {
		row := approval.DecisionRow{Kind: tool.DefinitionKind(kind), Tool: name}
		if approved != nil {
			row.Pin = &approval.Pin{Hints: tool.ParseHints(json.RawMessage(hints.String)), AuthorAndTime: mark(approvedBy, approvedAt)}
			row.Pin.Before, err = newReplacedDecision(was, wasHints.String, mark(wasBy, wasAt), wasBlocked, mark(wasBlockedBy, wasBlockedAt))
			err = errors.Join(err, parseFingerprint(&row.Pin.Fingerprint, approved))
		}
		if blocked != nil {
			row.Block = &approval.Block{AuthorAndTime: mark(blockedBy, blockedAt)}
			err = errors.Join(err, parseFingerprint(&row.Block.Fingerprint, blocked))
		}
		if offBy.Valid {
			m := mark(offBy, offAt)
			row.Off = &m
		}
		saved.Tools[server] = append(saved.Tools[server], row)
		return err
	}, `SELECT server, kind, tool, approved, hints, approved_by, approved_at,
		blocked, blocked_by, blocked_at, off_by, off_at,
		before, before_hints, before_by, before_at, before_blocked, before_blocked_by, before_blocked_at FROM approval`)
	return saved, err
}

// newReplacedDecision returns the decision that an approval replaced, or nil if there was none.
func newReplacedDecision(approved []byte, hints string, by approval.AuthorAndTime, blocked []byte, blockedBy approval.AuthorAndTime) (was *approval.ReplacedDecision, err error) {
	if approved == nil && blocked == nil {
		return nil, nil
	}
	was = &approval.ReplacedDecision{}
	if approved != nil {
		was.Pin = &approval.Pin{Hints: tool.ParseHints(json.RawMessage(hints)), AuthorAndTime: by}
		err = parseFingerprint(&was.Pin.Fingerprint, approved)
	}
	if blocked != nil {
		was.Block = &approval.Block{AuthorAndTime: blockedBy}
		err = errors.Join(err, parseFingerprint(&was.Block.Fingerprint, blocked))
	}
	return was, err
}

func parseFingerprint(to *tool.Fingerprint, stored []byte) error {
	if copy(to[:], stored) != len(to) || len(stored) != len(to) {
		return fmt.Errorf("%w: a fingerprint has %d bytes", errDamaged, len(stored))
	}
	return nil
}

// ApprovedDefinition returns the approved definition of a tool or primitive, or nil if there is none.
func (s *commonStore) ApprovedDefinition(ctx context.Context, kind tool.DefinitionKind, id tool.ID) (json.RawMessage, error) {
	var raw []byte
	err := s.db.view(ctx, func(ctx context.Context, r sqlReader) error {
		_, err := r.firstRow(ctx, scanTargets{&raw}, "SELECT definition FROM approval WHERE server = ? AND kind = ? AND tool = ?", id.Server, string(kind), id.Tool)
		return err
	})
	return raw, err
}
