package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
)

// decide runs fn in a transaction, when nobody has decided anything since the decisions
// were loaded: else what was decided by them may be wrong, and the error is
// approval.ErrStale.
func (d *pgDecisions) decide(ctx context.Context, always bool, told string, fn func(ctx context.Context, b *pgBatch) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var version int64
	err := d.db.write(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		if _, err := c.first(ctx, into{&version}, "UPDATE decisions SET version = version + 1 RETURNING version"); err != nil {
			return err
		}
		if !always && d.seen != 0 && version != d.seen+1 {
			return approval.ErrStale
		}
		b := pgBatch{conn: c}
		if err := fn(ctx, &b); err != nil {
			return err
		}
		b.do(ctx, "SELECT pg_notify($1, $2)", pgChannel, told)
		return b.run(ctx)
	})
	if err == nil {
		d.seen = version
	}
	return err
}

// SaveApprovals stores a change of what is decided, wholly or not at all.
func (d *pgDecisions) SaveApprovals(ctx context.Context, c approval.Change) error {
	return d.decide(ctx, false, toldServer(c.Server, c.Launch != nil), func(ctx context.Context, b *pgBatch) error {
		if c.Settle != "" {
			b.do(ctx, "DELETE FROM proposal WHERE name = $1", pgClean(c.Settle))
		}
		if p := c.Propose; p != nil {
			pgSaveProposal(ctx, b, p)
		}
		pgSaveServer(ctx, b, &c)
		return nil
	})
}

func pgSaveServer(ctx context.Context, b *pgBatch, c *approval.Change) {
	if c.Forget {
		b.do(ctx, "DELETE FROM approval WHERE server = $1", c.Server)
		b.do(ctx, "DELETE FROM held WHERE server = $1", c.Server)
	}
	if c.Forget || c.Unpin {
		b.do(ctx, "DELETE FROM launch WHERE server = $1", c.Server)
	}
	if l := c.Launch; l != nil {
		b.do(ctx, `INSERT INTO launch (server, fingerprint, approved_by, approved_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (server) DO UPDATE SET fingerprint = excluded.fingerprint, approved_by = excluded.approved_by, approved_at = excluded.approved_at`,
			l.Server, l.Fingerprint[:], pgClean(l.By), l.At.UnixMicro())
	}
	for _, row := range c.Tools {
		pgSaveTool(ctx, b, c.Server, row)
	}
}

func pgSaveProposal(ctx context.Context, b *pgBatch, p *approval.Proposal) {
	b.do(ctx, "INSERT INTO proposal (name, server, proposed_by, proposed_at) VALUES ($1, $2, $3, $4)",
		pgClean(p.Name), []byte(p.Server), pgClean(p.By), p.At.UnixMicro())
}

// pgSaveTool stores what is decided about a tool or an offer. An approved definition that
// is not given is the one that is stored.
func pgSaveTool(ctx context.Context, b *pgBatch, server string, row approval.Row) {
	values := make([]any, 20)
	values[0], values[1], values[12] = server, pgClean(row.Tool), string(row.Kind)
	if p := row.Pin; p != nil {
		values[2], values[3] = p.Fingerprint[:], pgClean(string(p.Hints.AppendJSON(nil)))
		values[5], values[6] = pgClean(p.By), p.At.UnixMicro()
		if was := p.Before; was != nil {
			if p := was.Pin; p != nil {
				values[13], values[14] = p.Fingerprint[:], pgClean(string(p.Hints.AppendJSON(nil)))
				values[15], values[16] = pgClean(p.By), p.At.UnixMicro()
			}
			if block := was.Block; block != nil {
				values[17], values[18], values[19] = block.Fingerprint[:], pgClean(block.By), block.At.UnixMicro()
			}
		}
		if row.Definition != nil {
			values[4] = []byte(row.Definition)
		}
	}
	if block := row.Block; block != nil {
		values[7], values[8], values[9] = block.Fingerprint[:], pgClean(block.By), block.At.UnixMicro()
	}
	if off := row.Off; off != nil {
		values[10], values[11] = pgClean(off.By), off.At.UnixMicro()
	}
	b.do(ctx, `INSERT INTO approval (server, tool, approved, hints, definition, approved_by, approved_at,
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

// RestoreApprovals makes the database have these decisions and no others. Approved
// definitions that are not given stay.
func (d *pgDecisions) RestoreApprovals(ctx context.Context, s approval.Saved) error {
	return d.decide(ctx, true, "", func(ctx context.Context, b *pgBatch) error {
		keep := map[decidedAbout]bool{}
		for server, rows := range s.Tools {
			for _, row := range rows {
				keep[decidedAbout{row.Kind, tool.ID{Server: server, Tool: row.Tool}}] = row.Decided()
			}
		}
		var kind, server, name string
		var gone []decidedAbout
		if err := b.conn.each(ctx, into{&server, &kind, &name}, func() error {
			if id := (decidedAbout{tool.DefinitionKind(kind), tool.ID{Server: server, Tool: name}}); !keep[id] {
				gone = append(gone, id)
			}
			return nil
		}, "SELECT server, kind, tool FROM approval"); err != nil {
			return err
		}
		for _, id := range gone {
			b.do(ctx, "DELETE FROM approval WHERE server = $1 AND kind = $2 AND tool = $3", id.Server, string(id.kind), id.Tool)
		}
		for _, table := range []string{"launch", "proposal", "held"} {
			b.do(ctx, "DELETE FROM "+table)
		}
		for server, rows := range s.Tools {
			for _, row := range rows {
				if row.Decided() {
					pgSaveTool(ctx, b, server, row)
				}
			}
		}
		for _, l := range s.Launches {
			pgSaveServer(ctx, b, &approval.Change{Server: l.Server, Launch: &l})
		}
		for _, p := range s.Proposals {
			pgSaveProposal(ctx, b, &p)
		}
		for server, all := range s.Held {
			pgSaveHeld(ctx, b, server, all)
		}
		lost := int64(0)
		if s.Lost {
			lost = 1
		}
		b.do(ctx, "UPDATE decisions SET lost = $1", lost)
		return nil
	})
}

// SaveHeld stores since when definitions of a server wait, of each tool and offer the
// last one.
func (d *pgDecisions) SaveHeld(ctx context.Context, server string, all []approval.Held) error {
	return d.db.write(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		b := pgBatch{conn: c}
		pgSaveHeld(ctx, &b, server, all)
		return b.run(ctx)
	})
}

func pgSaveHeld(ctx context.Context, b *pgBatch, server string, all []approval.Held) {
	for _, h := range all {
		b.do(ctx, `INSERT INTO held (server, kind, name, fingerprint, since) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (server, kind, name) DO UPDATE SET fingerprint = excluded.fingerprint, since = excluded.since`,
			server, string(h.Kind), pgClean(h.Tool), h.Fingerprint[:], h.Since.UnixMicro())
	}
}

// LoadApprovals returns everything that is decided, without the definitions.
func (d *pgDecisions) LoadApprovals(ctx context.Context) (saved approval.Saved, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var version int64
	err = d.db.view(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		version, saved, err = pgLoadApprovals(ctx, c)
		return err
	})
	if err == nil {
		d.seen = version
	}
	return saved, err
}

func pgLoadApprovals(ctx context.Context, c *pgConn) (version int64, saved approval.Saved, err error) {
	saved.Tools = map[string][]approval.Row{}
	var lost int64
	if _, err := c.first(ctx, into{&version, &lost}, "SELECT version, lost FROM decisions"); err != nil {
		return 0, saved, err
	}
	saved.Lost = lost != 0
	var server, kind, name, by, blockedBy string
	var approved, blocked, hints, offBy []byte
	var at, blockedAt, offAt nullable
	var was, wasHints, wasBlocked []byte
	var wasBy, wasBlockedBy string
	var wasAt, wasBlockedAt nullable
	mark := func(by string, at nullable) approval.Mark { return approval.Mark{By: by, At: time.UnixMicro(at.int64)} }
	err = c.each(ctx, into{&server, &approved, &by, &at}, func() error {
		l := approval.Launch{Server: server, Mark: mark(by, at)}
		err := fingerprint(&l.Fingerprint, approved)
		saved.Launches = append(saved.Launches, l)
		return err
	}, "SELECT server, fingerprint, approved_by, approved_at FROM launch ORDER BY server")
	if err != nil {
		return 0, saved, err
	}
	var proposed []byte
	err = c.each(ctx, into{&name, &proposed, &by, &at}, func() error {
		saved.Proposals = append(saved.Proposals, approval.Proposal{Name: name, Server: proposed, Mark: mark(by, at)})
		return nil
	}, "SELECT name, server, proposed_by, proposed_at FROM proposal ORDER BY id")
	if err != nil {
		return 0, saved, err
	}
	err = c.each(ctx, into{&server, &kind, &name, &approved, &at}, func() error {
		h := approval.Held{Kind: tool.DefinitionKind(kind), Tool: name, Since: time.UnixMicro(at.int64)}
		err := fingerprint(&h.Fingerprint, approved)
		if saved.Held == nil {
			saved.Held = map[string][]approval.Held{}
		}
		saved.Held[server] = append(saved.Held[server], h)
		return err
	}, "SELECT server, kind, name, fingerprint, since FROM held ORDER BY server, kind, name")
	if err != nil {
		return 0, saved, err
	}
	err = c.each(ctx, into{&server, &kind, &name, &approved, &hints, &by, &at, &blocked, &blockedBy, &blockedAt, &offBy, &offAt,
		&was, &wasHints, &wasBy, &wasAt, &wasBlocked, &wasBlockedBy, &wasBlockedAt}, func() (err error) {
		row := approval.Row{Kind: tool.DefinitionKind(kind), Tool: name}
		if approved != nil {
			row.Pin = &approval.Pin{Hints: tool.ParseHints(json.RawMessage(hints)), Mark: mark(by, at)}
			row.Pin.Before, err = before(was, string(wasHints), mark(wasBy, wasAt), wasBlocked, mark(wasBlockedBy, wasBlockedAt))
			err = errors.Join(err, fingerprint(&row.Pin.Fingerprint, approved))
		}
		if blocked != nil {
			row.Block = &approval.Block{Mark: mark(blockedBy, blockedAt)}
			err = errors.Join(err, fingerprint(&row.Block.Fingerprint, blocked))
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

// ApprovedDefinition returns the approved definition of a tool or an offer, nil when
// there is none.
func (d *pgDecisions) ApprovedDefinition(ctx context.Context, kind tool.DefinitionKind, id tool.ID) (raw json.RawMessage, err error) {
	var text []byte
	err = d.db.read(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		_, err := c.first(ctx, into{&text}, "SELECT definition FROM approval WHERE server = $1 AND kind = $2 AND tool = $3", id.Server, string(kind), pgClean(id.Tool))
		return err
	})
	return text, err
}

// SaveToken stores a new agent token. Another one of its name is an error.
func (d *pgDecisions) SaveToken(ctx context.Context, one auth.Token) error {
	return d.tokens(ctx, func(ctx context.Context, b *pgBatch) error { return pgSaveToken(ctx, b, &one) })
}

// tokens changes the tokens, and tells the other instances.
func (d *pgDecisions) tokens(ctx context.Context, fn func(ctx context.Context, b *pgBatch) error) error {
	return d.db.write(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		b := pgBatch{conn: c}
		if err := fn(ctx, &b); err != nil {
			return err
		}
		b.do(ctx, "SELECT pg_notify($1, $2)", pgChannel, pgToldTokens)
		return b.run(ctx)
	})
}

func pgSaveToken(ctx context.Context, b *pgBatch, t *auth.Token) error {
	servers, err := listText(t.Servers)
	lanes, also := listText(t.Lanes)
	if err := errors.Join(err, also); err != nil {
		return err
	}
	b.do(ctx, "INSERT INTO token (id, name, hash, profile, servers, lanes, made_by, made_at, expires, used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
		t.ID, t.Name, t.Hash[:], t.Profile, servers, lanes, pgClean(t.By), t.Created.UnixMicro(), timeOrNull(t.Expires), timeOrNull(t.Used))
	return nil
}

// DropToken removes a token. One that is not there is no error.
func (d *pgDecisions) DropToken(ctx context.Context, id string) error {
	return d.tokens(ctx, func(ctx context.Context, b *pgBatch) error {
		b.do(ctx, "DELETE FROM token WHERE id = $1", id)
		return nil
	})
}

// SetTokenUsed stores when a token was last used.
func (d *pgDecisions) SetTokenUsed(ctx context.Context, id string, at time.Time) error {
	return d.db.write(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		_, err := c.exec(ctx, "UPDATE token SET used = greatest(used, $1) WHERE id = $2", at.UnixMicro(), id)
		return err
	})
}

// ReplaceTokens makes the database have these tokens and no others.
func (d *pgDecisions) ReplaceTokens(ctx context.Context, all []auth.Token) error {
	return d.tokens(ctx, func(ctx context.Context, b *pgBatch) error {
		b.do(ctx, "DELETE FROM token")
		for i := range all {
			if err := pgSaveToken(ctx, b, &all[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// LoadTokens returns the tokens, by name.
func (d *pgDecisions) LoadTokens(ctx context.Context) (all []auth.Token, err error) {
	err = d.db.read(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		var t auth.Token
		var hash, servers, lanes []byte
		var made int64
		var expires, used nullable
		return c.each(ctx, into{&t.ID, &t.Name, &hash, &t.Profile, &servers, &lanes, &t.By, &made, &expires, &used}, func() error {
			one := t
			if copy(one.Hash[:], hash) != len(one.Hash) || len(hash) != len(one.Hash) {
				return errDamaged
			}
			one.Created, one.Expires, one.Used = time.UnixMicro(made).UTC(), timeIfSet(expires.sql()), timeIfSet(used.sql())
			err := errors.Join(readList(&one.Servers, sql.NullString{String: string(servers), Valid: servers != nil}),
				readList(&one.Lanes, sql.NullString{String: string(lanes), Valid: lanes != nil}))
			all = append(all, one)
			return err
		}, "SELECT id, name, hash, profile, servers, lanes, made_by, made_at, expires, used FROM token ORDER BY name")
	})
	return all, err
}

func (n nullable) sql() sql.NullInt64 { return sql.NullInt64{Int64: n.int64, Valid: n.valid} }
