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

// AgentTokenStore stores agent tokens in SQLite.
type AgentTokenStore struct{ db *SQLite }

// NewAgentTokenStore returns the store of agent tokens in db.
func NewAgentTokenStore(db *SQLite) *AgentTokenStore { return &AgentTokenStore{db} }

// SaveToken stores a new agent token. A second token with the same name is an error.
func (t *AgentTokenStore) SaveToken(ctx context.Context, one auth.Token) error {
	return t.db.writeTx(ctx, func(conn *sqliteWriteConn) error { return insertToken(conn, &one) })
}

func insertToken(conn *sqliteWriteConn, t *auth.Token) error {
	servers, err := listToJSON(t.Servers)
	lanes, also := listToJSON(t.Lanes)
	if err := errors.Join(err, also); err != nil {
		return err
	}
	conn.execInTx("INSERT INTO token (id, name, hash, profile, servers, lanes, made_by, made_at, expires, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		t.ID, t.Name, t.Hash[:], t.Profile, servers, lanes, t.By, t.Created.UnixMicro(), timeToSQL(t.Expires), timeToSQL(t.Used))
	return nil
}

// listToJSON encodes a list as JSON, NULL for nil.
func listToJSON(list []string) (driver.Value, error) {
	if list == nil {
		return nil, nil
	}
	text, err := json.Marshal(list)
	return string(text), err
}

func timeToSQL(t time.Time) driver.Value {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// DropToken deletes a token. A missing token is no error.
func (t *AgentTokenStore) DropToken(ctx context.Context, id string) error {
	return t.db.writeTx(ctx, func(conn *sqliteWriteConn) error { return conn.exec("DELETE FROM token WHERE id = ?", id) })
}

// SetTokenUsed stores when a token was last used.
func (t *AgentTokenStore) SetTokenUsed(ctx context.Context, id string, at time.Time) error {
	return t.db.writeTx(ctx, func(conn *sqliteWriteConn) error {
		return conn.exec("UPDATE token SET used = ? WHERE id = ?", at.UnixMicro(), id)
	})
}

// ReplaceTokens replaces all tokens.
func (t *AgentTokenStore) ReplaceTokens(ctx context.Context, all []auth.Token) error {
	return t.db.writeTx(ctx, func(conn *sqliteWriteConn) error {
		conn.execInTx("DELETE FROM token")
		for i := range all {
			if err := insertToken(conn, &all[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// LoadTokens returns the tokens in the order of their names. A database with impossible tokens is
// put aside.
func (t *AgentTokenStore) LoadTokens(ctx context.Context) ([]auth.Token, error) {
	e, err := t.db.waitOpen(ctx)
	if err != nil {
		return nil, err
	}
	all, err := readTokens(ctx, e.reads)
	return all, t.db.blockWritesOnDamage(e, e.addDamageIfSchemaDiffers(ctx, err))
}

func readTokens(ctx context.Context, reads *sql.DB) (all []auth.Token, err error) {
	var t auth.Token
	var hash []byte
	var servers, lanes sql.NullString
	var made int64
	var expires, used sql.NullInt64
	err = eachRow(ctx, reads, scanTargets{&t.ID, &t.Name, &hash, &t.Profile, &servers, &lanes, &t.By, &made, &expires, &used}, func() error {
		one := t
		if copy(one.Hash[:], hash) != len(one.Hash) || len(hash) != len(one.Hash) {
			return fmt.Errorf("%w: the hash of a token has %d bytes", errDamaged, len(hash))
		}
		one.Created, one.Expires, one.Used = time.UnixMicro(made).UTC(), timeFromSQL(expires), timeFromSQL(used)
		all = append(all, one)
		return errors.Join(listFromJSON(&all[len(all)-1].Servers, servers), listFromJSON(&all[len(all)-1].Lanes, lanes))
	}, "SELECT id, name, hash, profile, servers, lanes, made_by, made_at, expires, used FROM token ORDER BY name")
	return all, err
}

func listFromJSON(to *[]string, text sql.NullString) error {
	if !text.Valid {
		return nil
	}
	if err := json.Unmarshal([]byte(text.String), to); err != nil || *to == nil {
		return fmt.Errorf("%w: what a token may reach cannot be read", errDamaged)
	}
	return nil
}

func timeFromSQL(at sql.NullInt64) time.Time {
	if !at.Valid {
		return time.Time{}
	}
	return time.UnixMicro(at.Int64).UTC()
}
