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

// SaveApprovals stores a change of what is decided, wholly or not at all.
func (db *DB) SaveApprovals(ctx context.Context, c approval.Change) error {
	return db.write(ctx, func(conn *rawConn) error {
		if c.Settle != "" {
			conn.do("DELETE FROM proposal WHERE name = ?", c.Settle)
		}
		if p := c.Propose; p != nil {
			saveProposal(conn, p)
		}
		saveServer(conn, &c)
		return nil
	})
}

func saveServer(conn *rawConn, c *approval.Change) {
	if c.Forget {
		conn.do("DELETE FROM approval WHERE server = ?", c.Server)
		conn.do("DELETE FROM held WHERE server = ?", c.Server)
	}
	if c.Forget || c.Unpin {
		conn.do("DELETE FROM launch WHERE server = ?", c.Server)
	}
	if l := c.Launch; l != nil {
		conn.do("INSERT OR REPLACE INTO launch (server, fingerprint, approved_by, approved_at) VALUES (?, ?, ?, ?)",
			l.Server, l.Fingerprint[:], l.By, l.At.UnixMicro())
	}
	for _, row := range c.Tools {
		saveTool(conn, c.Server, row)
	}
}

// RestoreApprovals makes the database have these decisions and no others.
// Approved definitions that are not given stay.
func (db *DB) RestoreApprovals(ctx context.Context, s approval.Saved) error {
	return db.write(ctx, func(conn *rawConn) error {
		if err := dropTools(ctx, conn, s); err != nil {
			return err
		}
		for _, table := range []string{"launch", "proposal", "held"} {
			conn.do("DELETE FROM " + table)
		}
		for server, rows := range s.Tools {
			for _, row := range rows {
				if row.Decided() {
					saveTool(conn, server, row)
				}
			}
		}
		for _, l := range s.Launches {
			saveServer(conn, &approval.Change{Server: l.Server, Launch: &l})
		}
		for _, p := range s.Proposals {
			saveProposal(conn, &p)
		}
		for server, all := range s.Held {
			saveHeld(conn, server, all)
		}
		lost := int64(0)
		if s.Lost {
			lost = 1
		}
		conn.do("UPDATE approval_origin SET lost = ?", lost)
		return nil
	})
}

// SaveHeld stores since when definitions of a server wait, of each tool and offer
// the last one.
func (db *DB) SaveHeld(ctx context.Context, server string, all []approval.Held) error {
	return db.write(ctx, func(conn *rawConn) error {
		saveHeld(conn, server, all)
		return nil
	})
}

func saveHeld(conn *rawConn, server string, all []approval.Held) {
	for _, h := range all {
		conn.do("INSERT OR REPLACE INTO held (server, kind, name, fingerprint, since) VALUES (?, ?, ?, ?, ?)",
			server, string(h.Kind), h.Tool, h.Fingerprint[:], h.Since.UnixMicro())
	}
}

// decidedAbout is what a row is about.
type decidedAbout struct {
	kind tool.DefinitionKind
	tool.ID
}

// dropTools removes what is decided about tools and offers that s does not have.
func dropTools(ctx context.Context, conn *rawConn, s approval.Saved) error {
	keep := map[decidedAbout]bool{}
	for server, rows := range s.Tools {
		for _, row := range rows {
			keep[decidedAbout{row.Kind, tool.ID{Server: server, Tool: row.Tool}}] = row.Decided()
		}
	}
	var gone []decidedAbout
	var id decidedAbout
	if err := each(ctx, conn, into{&id.Server, &id.kind, &id.Tool}, func() error {
		if !keep[id] {
			gone = append(gone, id)
		}
		return nil
	}, "SELECT server, kind, tool FROM approval"); err != nil {
		return err
	}
	for _, id := range gone {
		conn.do("DELETE FROM approval WHERE server = ? AND kind = ? AND tool = ?", id.Server, string(id.kind), id.Tool)
	}
	return nil
}

func saveProposal(conn *rawConn, p *approval.Proposal) {
	conn.do("INSERT INTO proposal (name, server, proposed_by, proposed_at) VALUES (?, ?, ?, ?)",
		p.Name, []byte(p.Server), p.By, p.At.UnixMicro())
}

// saveTool stores what is decided about a tool or an offer. An approved
// definition that is not given is the one that is stored.
func saveTool(conn *rawConn, server string, row approval.Row) {
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
	conn.do(`INSERT INTO approval (server, tool, approved, hints, definition, approved_by, approved_at,
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

// LoadApprovals returns everything that is decided, without the definitions. A
// database in which that cannot be right is put aside.
func (db *DB) LoadApprovals(ctx context.Context) (approval.Saved, error) {
	e, err := db.use(ctx)
	if err != nil {
		return approval.Saved{}, err
	}
	saved, err := loadApprovals(ctx, e.reads)
	return saved, db.failed(e, e.blame(ctx, err))
}

func loadApprovals(ctx context.Context, reads *sql.DB) (approval.Saved, error) {
	saved := approval.Saved{Tools: map[string][]approval.Row{}}
	found, err := first(ctx, reads, into{&saved.Lost}, "SELECT lost FROM approval_origin")
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
	mark := func(by sql.NullString, at sql.NullInt64) approval.Mark {
		return approval.Mark{By: by.String, At: time.UnixMicro(at.Int64)}
	}
	if err := each(ctx, reads, into{&server, &approved, &approvedBy, &approvedAt}, func() error {
		l := approval.Launch{Server: server, Mark: mark(approvedBy, approvedAt)}
		err := fingerprint(&l.Fingerprint, approved)
		saved.Launches = append(saved.Launches, l)
		return err
	}, "SELECT server, fingerprint, approved_by, approved_at FROM launch ORDER BY server"); err != nil {
		return saved, err
	}
	var name string
	var proposed []byte
	if err := each(ctx, reads, into{&name, &proposed, &approvedBy, &approvedAt}, func() error {
		saved.Proposals = append(saved.Proposals, approval.Proposal{Name: name, Server: proposed, Mark: mark(approvedBy, approvedAt)})
		return nil
	}, "SELECT name, server, proposed_by, proposed_at FROM proposal ORDER BY id"); err != nil {
		return saved, err
	}
	var kind tool.DefinitionKind
	var since int64
	if err := each(ctx, reads, into{&server, &kind, &name, &approved, &since}, func() error {
		h := approval.Held{Kind: kind, Tool: name, Since: time.UnixMicro(since)}
		err := fingerprint(&h.Fingerprint, approved)
		if saved.Held == nil {
			saved.Held = map[string][]approval.Held{}
		}
		saved.Held[server] = append(saved.Held[server], h)
		return err
	}, "SELECT server, kind, name, fingerprint, since FROM held"); err != nil {
		return saved, err
	}
	err = each(ctx, reads, into{&server, &kind, &name, &approved, &hints, &approvedBy, &approvedAt,
		&blocked, &blockedBy, &blockedAt, &offBy, &offAt,
		&was, &wasHints, &wasBy, &wasAt, &wasBlocked, &wasBlockedBy, &wasBlockedAt}, func() (err error) {
		row := approval.Row{Kind: kind, Tool: name}
		if approved != nil {
			row.Pin = &approval.Pin{Hints: tool.ParseHints(json.RawMessage(hints.String)), Mark: mark(approvedBy, approvedAt)}
			row.Pin.Before, err = before(was, wasHints.String, mark(wasBy, wasAt), wasBlocked, mark(wasBlockedBy, wasBlockedAt))
			err = errors.Join(err, fingerprint(&row.Pin.Fingerprint, approved))
		}
		if blocked != nil {
			row.Block = &approval.Block{Mark: mark(blockedBy, blockedAt)}
			err = errors.Join(err, fingerprint(&row.Block.Fingerprint, blocked))
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

// before returns what an approval has replaced; nil when nothing was decided.
func before(approved []byte, hints string, by approval.Mark, blocked []byte, blockedBy approval.Mark) (was *approval.Before, err error) {
	if approved == nil && blocked == nil {
		return nil, nil
	}
	was = &approval.Before{}
	if approved != nil {
		was.Pin = &approval.Pin{Hints: tool.ParseHints(json.RawMessage(hints)), Mark: by}
		err = fingerprint(&was.Pin.Fingerprint, approved)
	}
	if blocked != nil {
		was.Block = &approval.Block{Mark: blockedBy}
		err = errors.Join(err, fingerprint(&was.Block.Fingerprint, blocked))
	}
	return was, err
}

func fingerprint(to *tool.Fingerprint, stored []byte) error {
	if copy(to[:], stored) != len(to) || len(stored) != len(to) {
		return fmt.Errorf("%w: a fingerprint has %d bytes", errDamaged, len(stored))
	}
	return nil
}

// ApprovedDefinition returns the approved definition of a tool or an offer, nil
// when there is none.
func (db *DB) ApprovedDefinition(ctx context.Context, kind tool.DefinitionKind, id tool.ID) (json.RawMessage, error) {
	e, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	var raw []byte
	_, err = first(ctx, e.reads, into{&raw}, "SELECT definition FROM approval WHERE server = ? AND kind = ? AND tool = ?", id.Server, string(kind), id.Tool)
	return raw, err
}
