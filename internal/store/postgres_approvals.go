package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// writeUnlessStale runs fn in a transaction if no other instance has changed the decisions since
// this one loaded them. Otherwise decisions based on them may be wrong, and the error is
// approval.ErrStale. always skips this check.
func (d *pgDecisionStore) writeUnlessStale(ctx context.Context, always bool, told string, fn func(ctx context.Context, b *pgBatch) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var version int64
	err := d.db.writeTx(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		if _, err := c.firstRow(ctx, scanTargets{&version}, "UPDATE decisions SET version = version + 1 RETURNING version"); err != nil {
			return err
		}
		if !always && d.loadedVersion != 0 && version != d.loadedVersion+1 {
			return approval.ErrStale
		}
		b := pgBatch{conn: c}
		if err := fn(ctx, &b); err != nil {
			return err
		}
		b.queue(ctx, "SELECT pg_notify($1, $2)", pgChannel, told)
		return b.send(ctx)
	})
	if err == nil {
		d.loadedVersion = version
	}
	return err
}

// SaveApprovals stores a change of the decisions, completely or not at all.
func (d *pgDecisionStore) SaveApprovals(ctx context.Context, c approval.ChangeSet) error {
	return d.writeUnlessStale(ctx, false, newServerNotification(c.Server, c.Launch != nil), func(ctx context.Context, b *pgBatch) error {
		if c.Settle != "" {
			b.queue(ctx, "DELETE FROM proposal WHERE name = $1", cleanPgText(c.Settle))
		}
		if p := c.Propose; p != nil {
			pgInsertProposal(ctx, b, p)
		}
		pgApplyServerChange(ctx, b, &c)
		return nil
	})
}

// pgApplyServerChange writes the decisions of a change about one server: what it forgets, the approved launch, and
// its tools and primitives.
func pgApplyServerChange(ctx context.Context, b *pgBatch, c *approval.ChangeSet) {
	if c.Forget {
		b.queue(ctx, "DELETE FROM approval WHERE server = $1", c.Server)
		b.queue(ctx, "DELETE FROM held WHERE server = $1", c.Server)
	}
	if c.Forget || c.Unpin {
		b.queue(ctx, "DELETE FROM launch WHERE server = $1", c.Server)
	}
	if l := c.Launch; l != nil {
		b.queue(ctx, `INSERT INTO launch (server, fingerprint, approved_by, approved_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (server) DO UPDATE SET fingerprint = excluded.fingerprint, approved_by = excluded.approved_by, approved_at = excluded.approved_at`,
			l.Server, l.Fingerprint[:], cleanPgText(l.By), l.At.UnixMicro())
	}
	for _, row := range c.Tools {
		pgUpsertDecision(ctx, b, c.Server, row)
	}
}

func pgInsertProposal(ctx context.Context, b *pgBatch, p *approval.ServerProposal) {
	b.queue(ctx, "INSERT INTO proposal (name, server, proposed_by, proposed_at) VALUES ($1, $2, $3, $4)",
		cleanPgText(p.Name), []byte(p.Server), cleanPgText(p.By), p.At.UnixMicro())
}

// pgUpsertDecision stores the decision about a tool or primitive. If no definition is given, the
// stored one stays.
func pgUpsertDecision(ctx context.Context, b *pgBatch, server string, row approval.DecisionRow) {
	values := make([]any, 20)
	values[0], values[1], values[12] = server, cleanPgText(row.Tool), string(row.Kind)
	if p := row.Pin; p != nil {
		values[2], values[3] = p.Fingerprint[:], cleanPgText(string(p.Hints.AppendJSON(nil)))
		values[5], values[6] = cleanPgText(p.By), p.At.UnixMicro()
		if was := p.Before; was != nil {
			if p := was.Pin; p != nil {
				values[13], values[14] = p.Fingerprint[:], cleanPgText(string(p.Hints.AppendJSON(nil)))
				values[15], values[16] = cleanPgText(p.By), p.At.UnixMicro()
			}
			if block := was.Block; block != nil {
				values[17], values[18], values[19] = block.Fingerprint[:], cleanPgText(block.By), block.At.UnixMicro()
			}
		}
		if row.Definition != nil {
			values[4] = []byte(row.Definition)
		}
	}
	if block := row.Block; block != nil {
		values[7], values[8], values[9] = block.Fingerprint[:], cleanPgText(block.By), block.At.UnixMicro()
	}
	if off := row.Off; off != nil {
		values[10], values[11] = cleanPgText(off.By), off.At.UnixMicro()
	}
	b.queue(ctx, `INSERT INTO approval (server, tool, approved, hints, definition, approved_by, approved_at,
			blocked, blocked_by, blocked_at, off_by, off_at, kind,
			before, before_hints, before_by, before_at, before_blocked, before_blocked_by, before_blocked_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
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

// ReplaceApprovals replaces all decisions. It keeps stored definitions that s approves without
// giving them.
func (d *pgDecisionStore) ReplaceApprovals(ctx context.Context, s approval.StoredDecisions) error {
	return d.writeUnlessStale(ctx, true, "", func(ctx context.Context, b *pgBatch) error {
		keep := map[decisionKey]bool{}
		for server, rows := range s.Tools {
			for _, row := range rows {
				keep[decisionKey{row.Kind, tool.ID{Server: server, Tool: row.Tool}}] = row.HasDecision()
			}
		}
		var kind, server, name string
		var gone []decisionKey
		if err := b.conn.eachRow(ctx, scanTargets{&server, &kind, &name}, func() error {
			if id := (decisionKey{tool.DefinitionKind(kind), tool.ID{Server: server, Tool: name}}); !keep[id] {
				gone = append(gone, id)
			}
			return nil
		}, "SELECT server, kind, tool FROM approval"); err != nil {
			return err
		}
		for _, id := range gone {
			b.queue(ctx, "DELETE FROM approval WHERE server = $1 AND kind = $2 AND tool = $3", id.Server, string(id.kind), id.Tool)
		}
		for _, table := range []string{"launch", "proposal", "held"} {
			b.queue(ctx, "DELETE FROM "+table)
		}
		for server, rows := range s.Tools {
			for _, row := range rows {
				if row.HasDecision() {
					pgUpsertDecision(ctx, b, server, row)
				}
			}
		}
		for _, l := range s.Launches {
			pgApplyServerChange(ctx, b, &approval.ChangeSet{Server: l.Server, Launch: &l})
		}
		for _, p := range s.Proposals {
			pgInsertProposal(ctx, b, &p)
		}
		for server, all := range s.Held {
			pgUpsertHeld(ctx, b, server, all)
		}
		lost := int64(0)
		if s.Lost {
			lost = 1
		}
		b.queue(ctx, "UPDATE decisions SET lost = $1", lost)
		return nil
	})
}

// SaveHeld stores since when definitions of a server wait for review: for each tool or primitive
// the last one.
func (d *pgDecisionStore) SaveHeld(ctx context.Context, server string, all []approval.HeldDefinition) error {
	return d.db.writeTx(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		b := pgBatch{conn: c}
		pgUpsertHeld(ctx, &b, server, all)
		return b.send(ctx)
	})
}

func pgUpsertHeld(ctx context.Context, b *pgBatch, server string, all []approval.HeldDefinition) {
	for _, h := range all {
		b.queue(ctx, `INSERT INTO held (server, kind, name, fingerprint, since) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (server, kind, name) DO UPDATE SET fingerprint = excluded.fingerprint, since = excluded.since`,
			server, string(h.Kind), cleanPgText(h.Tool), h.Fingerprint[:], h.Since.UnixMicro())
	}
}

// LoadApprovals returns all decisions, without the definitions.
func (d *pgDecisionStore) LoadApprovals(ctx context.Context) (saved approval.StoredDecisions, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var version int64
	err = d.db.withSnapshotTx(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		version, saved, err = pgReadApprovals(ctx, c)
		return err
	})
	if err == nil {
		d.loadedVersion = version
	}
	return saved, err
}

func pgReadApprovals(ctx context.Context, c *pgConn) (version int64, saved approval.StoredDecisions, err error) {
	saved.Tools = map[string][]approval.DecisionRow{}
	var lost int64
	if _, err := c.firstRow(ctx, scanTargets{&version, &lost}, "SELECT version, lost FROM decisions"); err != nil {
		return 0, saved, err
	}
	saved.Lost = lost != 0
	var server, kind, name, by, blockedBy string
	var approved, blocked, hints, offBy []byte
	var at, blockedAt, offAt nullInt
	var was, wasHints, wasBlocked []byte
	var wasBy, wasBlockedBy string
	var wasAt, wasBlockedAt nullInt
	mark := func(by string, at nullInt) approval.AuthorAndTime {
		return approval.AuthorAndTime{By: by, At: time.UnixMicro(at.int64)}
	}
	err = c.eachRow(ctx, scanTargets{&server, &approved, &by, &at}, func() error {
		l := approval.ApprovedLaunch{Server: server, AuthorAndTime: mark(by, at)}
		err := parseFingerprint(&l.Fingerprint, approved)
		saved.Launches = append(saved.Launches, l)
		return err
	}, "SELECT server, fingerprint, approved_by, approved_at FROM launch ORDER BY server")
	if err != nil {
		return 0, saved, err
	}
	var proposed []byte
	err = c.eachRow(ctx, scanTargets{&name, &proposed, &by, &at}, func() error {
		saved.Proposals = append(saved.Proposals, approval.ServerProposal{Name: name, Server: proposed, AuthorAndTime: mark(by, at)})
		return nil
	}, "SELECT name, server, proposed_by, proposed_at FROM proposal ORDER BY id")
	if err != nil {
		return 0, saved, err
	}
	err = c.eachRow(ctx, scanTargets{&server, &kind, &name, &approved, &at}, func() error {
		h := approval.HeldDefinition{Kind: tool.DefinitionKind(kind), Tool: name, Since: time.UnixMicro(at.int64)}
		err := parseFingerprint(&h.Fingerprint, approved)
		if saved.Held == nil {
			saved.Held = map[string][]approval.HeldDefinition{}
		}
		saved.Held[server] = append(saved.Held[server], h)
		return err
	}, "SELECT server, kind, name, fingerprint, since FROM held ORDER BY server, kind, name")
	if err != nil {
		return 0, saved, err
	}
	err = c.eachRow(ctx, scanTargets{&server, &kind, &name, &approved, &hints, &by, &at, &blocked, &blockedBy, &blockedAt, &offBy, &offAt,
		&was, &wasHints, &wasBy, &wasAt, &wasBlocked, &wasBlockedBy, &wasBlockedAt}, func() (err error) {
		row := approval.DecisionRow{Kind: tool.DefinitionKind(kind), Tool: name}
		if approved != nil {
			row.Pin = &approval.Pin{Hints: tool.ParseHints(json.RawMessage(hints)), AuthorAndTime: mark(by, at)}
			row.Pin.Before, err = newReplacedDecision(was, string(wasHints), mark(wasBy, wasAt), wasBlocked, mark(wasBlockedBy, wasBlockedAt))
			err = errors.Join(err, parseFingerprint(&row.Pin.Fingerprint, approved))
		}
		if blocked != nil {
			row.Block = &approval.Block{AuthorAndTime: mark(blockedBy, blockedAt)}
			err = errors.Join(err, parseFingerprint(&row.Block.Fingerprint, blocked))
		}
		if offBy != nil {
			m := mark(string(offBy), offAt)
			row.Off = &m
		}
		saved.Tools[server] = append(saved.Tools[server], row)
		return err
	}, `SELECT server, kind, tool, approved, hints, approved_by, approved_at,
		blocked, blocked_by, blocked_at, off_by, off_at,
		before, before_hints, before_by, before_at, before_blocked, before_blocked_by, before_blocked_at FROM approval`)
	return version, saved, err
}

// ApprovedDefinition returns the approved definition of a tool or primitive, nil if there is none.
func (d *pgDecisionStore) ApprovedDefinition(ctx context.Context, kind tool.DefinitionKind, id tool.ID) (raw json.RawMessage, err error) {
	var text []byte
	err = d.db.withReadConn(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		_, err := c.firstRow(ctx, scanTargets{&text}, "SELECT definition FROM approval WHERE server = $1 AND kind = $2 AND tool = $3", id.Server, string(kind), cleanPgText(id.Tool))
		return err
	})
	return text, err
}
