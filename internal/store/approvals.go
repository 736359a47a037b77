package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mcpproxy/internal/approval"
	"mcpproxy/internal/tool"
)

// SaveApprovals stores a change of what is decided, wholly or not at all.
func (db *DB) SaveApprovals(ctx context.Context, c approval.Change) error {
	return db.write(ctx, func(conn *rawConn) error {
		if c.Settle != "" {
			if err := conn.exec("DELETE FROM proposal WHERE name = ?", c.Settle); err != nil {
				return err
			}
		}
		if p := c.Propose; p != nil {
			err := conn.exec("INSERT INTO proposal (name, server, proposed_by, proposed_at) VALUES (?, ?, ?, ?)",
				p.Name, []byte(p.Server), p.By, p.At.UnixMicro())
			if err != nil {
				return err
			}
		}
		return saveServer(conn, &c)
	})
}

func saveServer(conn *rawConn, c *approval.Change) error {
	if c.Forget {
		if err := conn.exec("DELETE FROM approval WHERE server = ?", c.Server); err != nil {
			return err
		}
	}
	if c.Forget || c.Unpin {
		if err := conn.exec("DELETE FROM launch WHERE server = ?", c.Server); err != nil {
			return err
		}
	}
	if l := c.Launch; l != nil {
		err := conn.exec("INSERT OR REPLACE INTO launch (server, fingerprint, approved_by, approved_at) VALUES (?, ?, ?, ?)",
			l.Server, l.Fingerprint[:], l.By, l.At.UnixMicro())
		if err != nil {
			return err
		}
	}
	for _, row := range c.Tools {
		if err := saveTool(conn, c.Server, row); err != nil {
			return err
		}
	}
	return nil
}

// saveTool stores what is decided about a tool. An approved definition that is
// not given is the one that is stored.
func saveTool(conn *rawConn, server string, row approval.Row) error {
	values := make([]driver.Value, 12)
	values[0], values[1] = server, row.Tool
	if p := row.Pin; p != nil {
		values[2], values[3] = p.Fingerprint[:], string(p.Hints.AppendJSON(nil))
		values[5], values[6] = p.By, p.At.UnixMicro()
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
	return conn.exec(`INSERT INTO approval (server, tool, approved, hints, definition, approved_by, approved_at,
			blocked, blocked_by, blocked_at, off_by, off_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (server, tool) DO UPDATE SET
			approved = excluded.approved, hints = excluded.hints,
			definition = CASE WHEN excluded.approved IS NULL THEN NULL ELSE coalesce(excluded.definition, definition) END,
			approved_by = excluded.approved_by, approved_at = excluded.approved_at,
			blocked = excluded.blocked, blocked_by = excluded.blocked_by, blocked_at = excluded.blocked_at,
			off_by = excluded.off_by, off_at = excluded.off_at`, values...)
}

// LoadApprovals gives everything that is decided, without the definitions. A
// database in which that cannot be right is put aside.
func (db *DB) LoadApprovals(ctx context.Context) (approval.Saved, error) {
	e, err := db.use(ctx)
	if err != nil {
		return approval.Saved{}, err
	}
	saved, err := loadApprovals(ctx, e.reads)
	return saved, db.failed(e, err)
}

func loadApprovals(ctx context.Context, reads *sql.DB) (approval.Saved, error) {
	saved := approval.Saved{Tools: map[string][]approval.Row{}}
	err := reads.QueryRowContext(ctx, "SELECT lost FROM approval_origin").Scan(&saved.Lost)
	if errors.Is(err, sql.ErrNoRows) {
		return saved, fmt.Errorf("%w: it does not say how it began", errDamaged)
	}
	if err != nil {
		return saved, err
	}
	if err := each(ctx, reads, "SELECT server, fingerprint, approved_by, approved_at FROM launch ORDER BY server", func(rows *sql.Rows) error {
		var l approval.Launch
		var f []byte
		var at int64
		if err := rows.Scan(&l.Server, &f, &l.By, &at); err != nil {
			return err
		}
		l.At = time.UnixMicro(at)
		saved.Launches = append(saved.Launches, l)
		return fingerprint(&saved.Launches[len(saved.Launches)-1].Fingerprint, f)
	}); err != nil {
		return saved, err
	}
	if err := each(ctx, reads, "SELECT name, server, proposed_by, proposed_at FROM proposal ORDER BY id", func(rows *sql.Rows) error {
		var p approval.Proposal
		var server []byte
		var at int64
		if err := rows.Scan(&p.Name, &server, &p.By, &at); err != nil {
			return err
		}
		p.Server, p.At = server, time.UnixMicro(at)
		saved.Proposals = append(saved.Proposals, p)
		return nil
	}); err != nil {
		return saved, err
	}
	err = each(ctx, reads, `SELECT server, tool, approved, hints, approved_by, approved_at,
		blocked, blocked_by, blocked_at, off_by, off_at FROM approval`, func(rows *sql.Rows) error {
		server, row, err := readTool(rows)
		if err == nil {
			saved.Tools[server] = append(saved.Tools[server], row)
		}
		return err
	})
	return saved, err
}

func each(ctx context.Context, reads *sql.DB, query string, fn func(*sql.Rows) error) error {
	rows, err := reads.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func readTool(rows *sql.Rows) (server string, row approval.Row, err error) {
	var approved, blocked []byte
	var hints, approvedBy, blockedBy, offBy sql.NullString
	var approvedAt, blockedAt, offAt sql.NullInt64
	if err := rows.Scan(&server, &row.Tool, &approved, &hints, &approvedBy, &approvedAt,
		&blocked, &blockedBy, &blockedAt, &offBy, &offAt); err != nil {
		return "", row, err
	}
	mark := func(by sql.NullString, at sql.NullInt64) approval.Mark {
		return approval.Mark{By: by.String, At: time.UnixMicro(at.Int64)}
	}
	if approved != nil {
		row.Pin = &approval.Pin{Hints: tool.ParseHints(json.RawMessage(hints.String)), Mark: mark(approvedBy, approvedAt)}
		err = fingerprint(&row.Pin.Fingerprint, approved)
	}
	if blocked != nil {
		row.Block = &approval.Block{Mark: mark(blockedBy, blockedAt)}
		err = errors.Join(err, fingerprint(&row.Block.Fingerprint, blocked))
	}
	if offBy.Valid {
		m := mark(offBy, offAt)
		row.Off = &m
	}
	return server, row, err
}

func fingerprint(to *tool.Fingerprint, stored []byte) error {
	if copy(to[:], stored) != len(to) || len(stored) != len(to) {
		return fmt.Errorf("%w: a fingerprint has %d bytes", errDamaged, len(stored))
	}
	return nil
}

// ApprovedDefinition gives the approved definition of a tool, nil when there is
// none.
func (db *DB) ApprovedDefinition(ctx context.Context, id tool.ID) (json.RawMessage, error) {
	e, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	var raw []byte
	err = e.reads.QueryRowContext(ctx, "SELECT definition FROM approval WHERE server = ? AND tool = ?", id.Server, id.Tool).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return raw, err
}

// begunMark is the file beside the database that says that one was begun here.
// Its name has nothing of the database's: who removes mcpproxy.db* does not mean
// it.
const begunMark = "approvals.begun"

// noteOrigin writes, once in the life of a database, whether there was one
// before it. A file beside it tells, whatever became of the other database: it
// was put aside, truncated or removed.
func noteOrigin(ctx context.Context, db *sql.DB, path string) error {
	mark := filepath.Join(filepath.Dir(path), begunMark)
	_, err := os.Stat(mark)
	before := err == nil
	if !before && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for an earlier database: %w", err)
	}
	if _, err := db.ExecContext(ctx, "INSERT OR IGNORE INTO approval_origin (id, lost) VALUES (1, ?)", before); err != nil {
		return err
	}
	if before {
		return nil
	}
	return prepareFile(mark)
}
