package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

// SaveApprovals stores a change of the decisions in one transaction.
func (s *commonStore) SaveApprovals(ctx context.Context, c approval.ChangeSet) error {
	return s.db.updateDecisions(ctx, false, newServerNotification(c.Server, c.Launch != nil), func(_ context.Context, t sqlTx) error {
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
	return s.db.updateDecisions(ctx, true, "", func(ctx context.Context, t sqlTx) error {
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

// pinColumns returns the values of the columns fingerprint, hints, author and time.
func pinColumns(p *approval.Pin) []any {
	if p == nil {
		return make([]any, 4)
	}
	return []any{p.Fingerprint[:], string(p.Hints.AppendJSON(nil)), p.By, p.At.UnixMicro()}
}

// blockColumns returns the values of the columns fingerprint, author and time.
func blockColumns(b *approval.Block) []any {
	if b == nil {
		return make([]any, 3)
	}
	return []any{b.Fingerprint[:], b.By, b.At.UnixMicro()}
}

// upsertDecision stores the decision about a tool or primitive. If row has no definition, the stored one is kept.
func upsertDecision(t sqlTx, server string, row approval.DecisionRow) {
	off, before, definition := make([]any, 2), approval.ReplacedDecision{}, []byte(nil)
	if row.Off != nil {
		off = []any{row.Off.By, row.Off.At.UnixMicro()}
	}
	if row.Pin != nil {
		definition = row.Definition
		if row.Pin.Before != nil {
			before = *row.Pin.Before
		}
	}
	values := slices.Concat([]any{server, row.Tool, string(row.Kind), bytesOrNull(definition)}, pinColumns(row.Pin), blockColumns(row.Block), off,
		pinColumns(before.Pin), blockColumns(before.Block))
	t.write(`INSERT INTO approval (server, tool, kind, definition, approved, hints, approved_by, approved_at, blocked, blocked_by, blocked_at, off_by, off_at,
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

func readApprovals(ctx context.Context, r sqlReader) (saved approval.StoredDecisions, err error) {
	saved.Tools = map[string][]approval.DecisionRow{}
	var lost int64
	found, err := r.firstRow(ctx, scanTargets{&lost}, "SELECT lost FROM {decisions|approval_origin}")
	if err == nil && !found {
		err = fmt.Errorf("%w: its origin is missing", errDamaged)
	}
	if saved.Lost = lost != 0; err != nil {
		return saved, err
	}
	for _, read := range []func(context.Context, sqlReader, *approval.StoredDecisions) error{readLaunches, readProposals, readHeld, readDecisions} {
		if err := read(ctx, r, &saved); err != nil {
			return saved, err
		}
	}
	return saved, nil
}

func readLaunches(ctx context.Context, r sqlReader, saved *approval.StoredDecisions) error {
	var server string
	var s storedDecision
	return r.eachRow(ctx, append(scanTargets{&server}, s.blockTargets()...), func() error {
		l := approval.ApprovedLaunch{Server: server, AuthorAndTime: s.authorAndTime()}
		err := parseFingerprint(&l.Fingerprint, s.fingerprint)
		saved.Launches = append(saved.Launches, l)
		return err
	}, "SELECT server, fingerprint, approved_by, approved_at FROM launch ORDER BY server")
}

func readProposals(ctx context.Context, r sqlReader, saved *approval.StoredDecisions) error {
	var name string
	var server []byte
	var s storedDecision
	return r.eachRow(ctx, scanTargets{&name, &server, &s.by, &s.at}, func() error {
		saved.Proposals = append(saved.Proposals, approval.ServerProposal{Name: name, Server: server, AuthorAndTime: s.authorAndTime()})
		return nil
	}, "SELECT name, server, proposed_by, proposed_at FROM proposal ORDER BY id")
}

func readHeld(ctx context.Context, r sqlReader, saved *approval.StoredDecisions) error {
	var server, kind, name string
	var fingerprint []byte
	var since int64
	return r.eachRow(ctx, scanTargets{&server, &kind, &name, &fingerprint, &since}, func() error {
		h := approval.HeldDefinition{Kind: tool.DefinitionKind(kind), Tool: name, Since: time.UnixMicro(since)}
		err := parseFingerprint(&h.Fingerprint, fingerprint)
		if saved.Held == nil {
			saved.Held = map[string][]approval.HeldDefinition{}
		}
		saved.Held[server] = append(saved.Held[server], h)
		return err
	}, "SELECT server, kind, name, fingerprint, since FROM held ORDER BY server, kind, name")
}

func readDecisions(ctx context.Context, r sqlReader, saved *approval.StoredDecisions) error {
	var server, kind, name string
	var pin, block, off, before, blockBefore storedDecision
	to := slices.Concat(scanTargets{&server, &kind, &name}, pin.pinTargets(), block.blockTargets(), scanTargets{&off.by, &off.at}, before.pinTargets(), blockBefore.blockTargets())
	return r.eachRow(ctx, to, func() error {
		row := approval.DecisionRow{Kind: tool.DefinitionKind(kind), Tool: name}
		var errs [4]error
		row.Pin, errs[0] = pin.toPin()
		row.Block, errs[1] = block.toBlock()
		if off.by.Valid {
			m := off.authorAndTime()
			row.Off = &m
		}
		if row.Pin != nil && (before.fingerprint != nil || blockBefore.fingerprint != nil) {
			row.Pin.Before = &approval.ReplacedDecision{}
			row.Pin.Before.Pin, errs[2] = before.toPin()
			row.Pin.Before.Block, errs[3] = blockBefore.toBlock()
		}
		saved.Tools[server] = append(saved.Tools[server], row)
		return errors.Join(errs[:]...)
	}, `SELECT server, kind, tool, approved, hints, approved_by, approved_at, blocked, blocked_by, blocked_at, off_by, off_at,
		before, before_hints, before_by, before_at, before_blocked, before_blocked_by, before_blocked_at FROM approval`)
}

// storedDecision contains the columns of an approval or a block. If there is none, the fingerprint is nil.
type storedDecision struct {
	fingerprint []byte
	hints       sql.NullString // only of an approval
	by          sql.NullString
	at          sql.NullInt64
}

func (s *storedDecision) pinTargets() scanTargets {
	return scanTargets{&s.fingerprint, &s.hints, &s.by, &s.at}
}

func (s *storedDecision) blockTargets() scanTargets { return scanTargets{&s.fingerprint, &s.by, &s.at} }

func (s *storedDecision) authorAndTime() approval.AuthorAndTime {
	return approval.AuthorAndTime{By: s.by.String, At: time.UnixMicro(s.at.Int64)}
}

func (s *storedDecision) toPin() (*approval.Pin, error) {
	if s.fingerprint == nil {
		return nil, nil
	}
	p := &approval.Pin{Hints: tool.ParseHints(json.RawMessage(s.hints.String)), AuthorAndTime: s.authorAndTime()}
	return p, parseFingerprint(&p.Fingerprint, s.fingerprint)
}

func (s *storedDecision) toBlock() (*approval.Block, error) {
	if s.fingerprint == nil {
		return nil, nil
	}
	b := &approval.Block{AuthorAndTime: s.authorAndTime()}
	return b, parseFingerprint(&b.Fingerprint, s.fingerprint)
}

func parseFingerprint(to *tool.Fingerprint, stored []byte) error {
	if copy(to[:], stored) != len(to) || len(stored) != len(to) {
		return fmt.Errorf("%w: a fingerprint has %d bytes", errDamaged, len(stored))
	}
	return nil
}

// ApprovedDefinition returns the approved definition of a tool or primitive, or nil if there is none.
func (s *commonStore) ApprovedDefinition(ctx context.Context, kind tool.DefinitionKind, id tool.ID) (json.RawMessage, error) {
	return viewed(ctx, s.db, func(ctx context.Context, r sqlReader) (raw json.RawMessage, err error) {
		_, err = r.firstRow(ctx, scanTargets{(*[]byte)(&raw)}, "SELECT definition FROM approval WHERE server = ? AND kind = ? AND tool = ?", id.Server, string(kind), id.Tool)
		return raw, err
	})
}
