package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpproxy/internal/config/auth"
)

// Tokens has the agent tokens in a database.
type Tokens struct{ db *DB }

// NewTokens makes Tokens.
func NewTokens(db *DB) *Tokens { return &Tokens{db} }

// SaveToken stores a new agent token. Another one of its name is an error.
func (t *Tokens) SaveToken(ctx context.Context, one auth.Token) error {
	return t.db.write(ctx, func(conn *rawConn) error { return saveToken(conn, &one) })
}

func saveToken(conn *rawConn, t *auth.Token) error {
	servers, err := listText(t.Servers)
	lanes, also := listText(t.Lanes)
	if err := errors.Join(err, also); err != nil {
		return err
	}
	conn.do("INSERT INTO token (id, name, hash, profile, servers, lanes, made_by, made_at, expires, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		t.ID, t.Name, t.Hash[:], t.Profile, servers, lanes, t.By, t.Created.UnixMicro(), timeOrNull(t.Expires), timeOrNull(t.Used))
	return nil
}

// listText is a list as JSON, NULL for nil.
func listText(list []string) (driver.Value, error) {
	if list == nil {
		return nil, nil
	}
	text, err := json.Marshal(list)
	return string(text), err
}

func timeOrNull(t time.Time) driver.Value {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// DropToken removes a token. One that is not there is no error.
func (t *Tokens) DropToken(ctx context.Context, id string) error {
	return t.db.write(ctx, func(conn *rawConn) error { return conn.exec("DELETE FROM token WHERE id = ?", id) })
}

// SetTokenUsed stores when a token was last used.
func (t *Tokens) SetTokenUsed(ctx context.Context, id string, at time.Time) error {
	return t.db.write(ctx, func(conn *rawConn) error {
		return conn.exec("UPDATE token SET used = ? WHERE id = ?", at.UnixMicro(), id)
	})
}

// ReplaceTokens makes the database have these tokens and no others.
func (t *Tokens) ReplaceTokens(ctx context.Context, all []auth.Token) error {
	return t.db.write(ctx, func(conn *rawConn) error {
		conn.do("DELETE FROM token")
		for i := range all {
			if err := saveToken(conn, &all[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// LoadTokens returns the tokens, by name. A database in which they cannot be right is
// put aside.
func (t *Tokens) LoadTokens(ctx context.Context) ([]auth.Token, error) {
	e, err := t.db.use(ctx)
	if err != nil {
		return nil, err
	}
	all, err := loadTokens(ctx, e.reads)
	return all, t.db.failed(e, e.blame(ctx, err))
}

func loadTokens(ctx context.Context, reads *sql.DB) (all []auth.Token, err error) {
	var t auth.Token
	var hash []byte
	var servers, lanes sql.NullString
	var made int64
	var expires, used sql.NullInt64
	err = each(ctx, reads, into{&t.ID, &t.Name, &hash, &t.Profile, &servers, &lanes, &t.By, &made, &expires, &used}, func() error {
		one := t
		if copy(one.Hash[:], hash) != len(one.Hash) || len(hash) != len(one.Hash) {
			return fmt.Errorf("%w: the hash of a token has %d bytes", errDamaged, len(hash))
		}
		one.Created, one.Expires, one.Used = time.UnixMicro(made).UTC(), timeIfSet(expires), timeIfSet(used)
		all = append(all, one)
		return errors.Join(readList(&all[len(all)-1].Servers, servers), readList(&all[len(all)-1].Lanes, lanes))
	}, "SELECT id, name, hash, profile, servers, lanes, made_by, made_at, expires, used FROM token ORDER BY name")
	return all, err
}

func readList(to *[]string, text sql.NullString) error {
	if !text.Valid {
		return nil
	}
	if err := json.Unmarshal([]byte(text.String), to); err != nil || *to == nil {
		return fmt.Errorf("%w: what a token may reach cannot be read", errDamaged)
	}
	return nil
}

func timeIfSet(at sql.NullInt64) time.Time {
	if !at.Valid {
		return time.Time{}
	}
	return time.UnixMicro(at.Int64).UTC()
}
