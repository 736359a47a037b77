package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// SaveApprovals stores a change of the decisions, completely or not at all.
func (db *SQLite) SaveApprovals(ctx context.Context, c approval.ChangeSet) error {
	return db.writeTx(ctx, func(conn *sqliteWriteConn) error {
		if c.Settle != "" {
			conn.execInTx("DELETE FROM proposal WHERE name = ?", c.Settle)
		}
		if p := c.Propose; p != nil {
			insertProposal(conn, p)
		}
		applyServerChange(conn, &c)
		return nil
	})
}

// applyServerChange writes the decisions of a change about one server: what it forgets, the approved launch, and its
// tools and primitives.
func applyServerChange(conn *sqliteWriteConn, c *approval.ChangeSet) {
	if c.Forget {
		conn.execInTx("DELETE FROM approval WHERE server = ?", c.Server)
		conn.execInTx("DELETE FROM held WHERE server = ?", c.Server)
	}
	if c.Forget || c.Unpin {
		conn.execInTx("DELETE FROM launch WHERE server = ?", c.Server)
	}
	if l := c.Launch; l != nil {
		conn.execInTx("INSERT OR REPLACE INTO launch (server, fingerprint, approved_by, approved_at) VALUES (?, ?, ?, ?)",
			l.Server, l.Fingerprint[:], l.By, l.At.UnixMicro())
	}
	for _, row := range c.Tools {
		upsertDecision(conn, c.Server, row)
	}
}

// ReplaceApprovals replaces all decisions. It keeps stored definitions that s approves without
// giving them.
func (db *SQLite) ReplaceApprovals(ctx context.Context, s approval.StoredDecisions) error {
	return db.writeTx(ctx, func(conn *sqliteWriteConn) error {
		if err := deleteDecisionsNotIn(ctx, conn, s); err != nil {
			return err
		}
		for _, table := range []string{"launch", "proposal", "held"} {
			conn.execInTx("DELETE FROM " + table)
		}
		for server, rows := range s.Tools {
			for _, row := range rows {
				if row.HasDecision() {
					upsertDecision(conn, server, row)
				}
			}
		}
		for _, l := range s.Launches {
			applyServerChange(conn, &approval.ChangeSet{Server: l.Server, Launch: &l})
		}
		for _, p := range s.Proposals {
			insertProposal(conn, &p)
		}
		for server, all := range s.Held {
			upsertHeld(conn, server, all)
		}
		lost := int64(0)
		if s.Lost {
			lost = 1
		}
		conn.execInTx("UPDATE approval_origin SET lost = ?", lost)
		return nil
	})
}

// SaveHeld stores since when definitions of a server wait for review: for each tool or primitive
// the last one.
func (db *SQLite) SaveHeld(ctx context.Context, server string, all []approval.HeldDefinition) error {
	return db.writeTx(ctx, func(conn *sqliteWriteConn) error {
		upsertHeld(conn, server, all)
		return nil
	})
}

func upsertHeld(conn *sqliteWriteConn, server string, all []approval.HeldDefinition) {
	for _, h := range all {
		conn.execInTx("INSERT OR REPLACE INTO held (server, kind, name, fingerprint, since) VALUES (?, ?, ?, ?, ?)",
			server, string(h.Kind), h.Tool, h.Fingerprint[:], h.Since.UnixMicro())
	}
}

// decisionKey identifies the tool or primitive that a decision is about.
type decisionKey struct {
	kind tool.DefinitionKind
	tool.ID
}

// deleteDecisionsNotIn deletes the decisions about tools and primitives that s does not contain.
func deleteDecisionsNotIn(ctx context.Context, conn *sqliteWriteConn, s approval.StoredDecisions) error {
	keep := map[decisionKey]bool{}
	for server, rows := range s.Tools {
		for _, row := range rows {
			keep[decisionKey{row.Kind, tool.ID{Server: server, Tool: row.Tool}}] = row.HasDecision()
		}
	}
	var gone []decisionKey
	var id decisionKey
	if err := eachRow(ctx, conn, scanTargets{&id.Server, &id.kind, &id.Tool}, func() error {
		if !keep[id] {
			gone = append(gone, id)
		}
		return nil
	}, "SELECT server, kind, tool FROM approval"); err != nil {
		return err
	}
	for _, id := range gone {
		conn.execInTx("DELETE FROM approval WHERE server = ? AND kind = ? AND tool = ?", id.Server, string(id.kind), id.Tool)
	}
	return nil
}

func insertProposal(conn *sqliteWriteConn, p *approval.ServerProposal) {
	conn.execInTx("INSERT INTO proposal (name, server, proposed_by, proposed_at) VALUES (?, ?, ?, ?)",
		p.Name, []byte(p.Server), p.By, p.At.UnixMicro())
}

// upsertDecision stores the decision about a tool or primitive. If no definition is given, the
// stored one stays.
func upsertDecision(conn *sqliteWriteConn, server string, row approval.DecisionRow) {
	values := make([]driver.Value, 20)
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
	conn.execInTx(`INSERT INTO approval (server, tool, approved, hints, definition, approved_by, approved_at,
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

// LoadApprovals returns all decisions, without the definitions. A database with impossible
// decisions is put aside.
func (db *SQLite) LoadApprovals(ctx context.Context) (approval.StoredDecisions, error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return approval.StoredDecisions{}, err
	}
	saved, err := readApprovals(ctx, e.reads)
	return saved, db.blockWritesOnDamage(e, e.addDamageIfSchemaDiffers(ctx, err))
}

func readApprovals(ctx context.Context, reads *sql.DB) (approval.StoredDecisions, error) {
	saved := approval.StoredDecisions{Tools: map[string][]approval.DecisionRow{}}
	found, err := firstRow(ctx, reads, scanTargets{&saved.Lost}, "SELECT lost FROM approval_origin")
	if err == nil && !found {
		err = fmt.Errorf("%w: it does not say how it began", errDamaged)
	}
	if err != nil {
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
	if err := eachRow(ctx, reads, scanTargets{&server, &approved, &approvedBy, &approvedAt}, func() error {
		l := approval.ApprovedLaunch{Server: server, AuthorAndTime: mark(approvedBy, approvedAt)}
		err := parseFingerprint(&l.Fingerprint, approved)
		saved.Launches = append(saved.Launches, l)
		return err
	}, "SELECT server, fingerprint, approved_by, approved_at FROM launch ORDER BY server"); err != nil {
		return saved, err
	}
	var name string
	var proposed []byte
	if err := eachRow(ctx, reads, scanTargets{&name, &proposed, &approvedBy, &approvedAt}, func() error {
		saved.Proposals = append(saved.Proposals, approval.ServerProposal{Name: name, Server: proposed, AuthorAndTime: mark(approvedBy, approvedAt)})
		return nil
	}, "SELECT name, server, proposed_by, proposed_at FROM proposal ORDER BY id"); err != nil {
		return saved, err
	}
	var kind tool.DefinitionKind
	var since int64
	if err := eachRow(ctx, reads, scanTargets{&server, &kind, &name, &approved, &since}, func() error {
		h := approval.HeldDefinition{Kind: kind, Tool: name, Since: time.UnixMicro(since)}
		err := parseFingerprint(&h.Fingerprint, approved)
		if saved.Held == nil {
			saved.Held = map[string][]approval.HeldDefinition{}
		}
		saved.Held[server] = append(saved.Held[server], h)
		return err
	}, "SELECT server, kind, name, fingerprint, since FROM held"); err != nil {
		return saved, err
	}
	err = eachRow(ctx, reads, scanTargets{&server, &kind, &name, &approved, &hints, &approvedBy, &approvedAt,
		&blocked, &blockedBy, &blockedAt, &offBy, &offAt,
		&was, &wasHints, &wasBy, &wasAt, &wasBlocked, &wasBlockedBy, &wasBlockedAt}, func() (err error) {
		row := approval.DecisionRow{Kind: kind, Tool: name}
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

// newReplacedDecision returns the decision that an approval replaced; nil if there was none.
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

// ApprovedDefinition returns the approved definition of a tool or primitive, nil if there is none.
func (db *SQLite) ApprovedDefinition(ctx context.Context, kind tool.DefinitionKind, id tool.ID) (json.RawMessage, error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return nil, err
	}
	var raw []byte
	_, err = firstRow(ctx, e.reads, scanTargets{&raw}, "SELECT definition FROM approval WHERE server = ? AND kind = ? AND tool = ?", id.Server, string(kind), id.Tool)
	return raw, err
}
