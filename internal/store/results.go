package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"mcpproxy/internal/problem"
)

// StoredResult is a large result that read_result gives in parts.
type StoredResult struct {
	Handle  string
	Actor   string
	Body    json.RawMessage
	Expires time.Time
}

// PutResult keeps a result until it expires.
func (db *DB) PutResult(ctx context.Context, r StoredResult) error {
	now := db.now()
	return db.write(ctx, func(c *rawConn) error {
		if err := dropExpired(c, now); err != nil {
			return err
		}
		return c.exec("INSERT OR REPLACE INTO result (handle, actor, expires, body) VALUES (?, ?, ?, ?)",
			r.Handle, r.Actor, r.Expires.UnixMicro(), []byte(r.Body))
	})
}

func dropExpired(c *rawConn, now time.Time) error {
	return c.exec("DELETE FROM result WHERE expires <= ?", now.UnixMicro())
}

// GetResult gives a stored result. One that is not there, or no longer, is a
// NOT_FOUND problem.
func (db *DB) GetResult(ctx context.Context, handle string) (StoredResult, error) {
	e, err := db.use(ctx)
	if err != nil {
		return StoredResult{}, err
	}
	r := StoredResult{Handle: handle}
	var body []byte
	var expires int64
	err = e.reads.QueryRowContext(ctx, "SELECT actor, expires, body FROM result WHERE handle = ?", handle).
		Scan(&r.Actor, &expires, &body)
	if errors.Is(err, sql.ErrNoRows) || err == nil && expires <= db.now().UnixMicro() {
		return StoredResult{}, problem.New(problem.NotFound, "There is no stored result with this handle.",
			"Handles live two hours; call the tool again.")
	}
	if err != nil {
		return StoredResult{}, err
	}
	r.Body, r.Expires = body, time.UnixMicro(expires)
	return r, nil
}
