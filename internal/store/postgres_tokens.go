package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"mcpproxy/internal/config/auth"
)

// SaveToken stores a new agent token. A second token with the same name is an error.
func (d *pgDecisionStore) SaveToken(ctx context.Context, one auth.Token) error {
	return d.writeTokens(ctx, func(ctx context.Context, b *pgBatch) error { return pgInsertToken(ctx, b, &one) })
}

// writeTokens changes the tokens and notifies the other instances.
func (d *pgDecisionStore) writeTokens(ctx context.Context, fn func(ctx context.Context, b *pgBatch) error) error {
	return d.db.writeTx(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		b := pgBatch{conn: c}
		if err := fn(ctx, &b); err != nil {
			return err
		}
		b.queue(ctx, "SELECT pg_notify($1, $2)", pgChannel, notifyTokens)
		return b.send(ctx)
	})
}

func pgInsertToken(ctx context.Context, b *pgBatch, t *auth.Token) error {
	servers, err := listToJSON(t.Servers)
	lanes, also := listToJSON(t.Lanes)
	if err := errors.Join(err, also); err != nil {
		return err
	}
	b.queue(ctx, "INSERT INTO token (id, name, hash, profile, servers, lanes, made_by, made_at, expires, used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
		t.ID, t.Name, t.Hash[:], t.Profile, servers, lanes, cleanPgText(t.By), t.Created.UnixMicro(), timeToSQL(t.Expires), timeToSQL(t.Used))
	return nil
}

// DropToken deletes a token. A missing token is no error.
func (d *pgDecisionStore) DropToken(ctx context.Context, id string) error {
	return d.writeTokens(ctx, func(ctx context.Context, b *pgBatch) error {
		b.queue(ctx, "DELETE FROM token WHERE id = $1", id)
		return nil
	})
}

// SetTokenUsed stores when a token was last used.
func (d *pgDecisionStore) SetTokenUsed(ctx context.Context, id string, at time.Time) error {
	return d.db.writeTx(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		_, err := c.exec(ctx, "UPDATE token SET used = greatest(used, $1) WHERE id = $2", at.UnixMicro(), id)
		return err
	})
}

// ReplaceTokens replaces all tokens.
func (d *pgDecisionStore) ReplaceTokens(ctx context.Context, all []auth.Token) error {
	return d.writeTokens(ctx, func(ctx context.Context, b *pgBatch) error {
		b.queue(ctx, "DELETE FROM token")
		for i := range all {
			if err := pgInsertToken(ctx, b, &all[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// LoadTokens returns the tokens in the order of their names.
func (d *pgDecisionStore) LoadTokens(ctx context.Context) (all []auth.Token, err error) {
	err = d.db.withReadConn(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		var t auth.Token
		var hash, servers, lanes []byte
		var made int64
		var expires, used nullInt
		return c.eachRow(ctx, scanTargets{&t.ID, &t.Name, &hash, &t.Profile, &servers, &lanes, &t.By, &made, &expires, &used}, func() error {
			one := t
			if copy(one.Hash[:], hash) != len(one.Hash) || len(hash) != len(one.Hash) {
				return errDamaged
			}
			one.Created, one.Expires, one.Used = time.UnixMicro(made).UTC(), timeFromSQL(expires.toSQLNullInt64()), timeFromSQL(used.toSQLNullInt64())
			err := errors.Join(listFromJSON(&one.Servers, sql.NullString{String: string(servers), Valid: servers != nil}),
				listFromJSON(&one.Lanes, sql.NullString{String: string(lanes), Valid: lanes != nil}))
			all = append(all, one)
			return err
		}, "SELECT id, name, hash, profile, servers, lanes, made_by, made_at, expires, used FROM token ORDER BY name")
	})
	return all, err
}

func (n nullInt) toSQLNullInt64() sql.NullInt64 { return sql.NullInt64{Int64: n.int64, Valid: n.valid} }
