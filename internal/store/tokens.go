package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpproxy/internal/config/auth"
)

// SaveToken stores a new agent token. A second token with the same name is an error.
func (s *commonStore) SaveToken(ctx context.Context, one auth.Token) error {
	return s.updateTokens(ctx, func(t sqlTx) error { return insertToken(t, &one) })
}

// updateTokens changes the tokens and notifies the other instances.
func (s *commonStore) updateTokens(ctx context.Context, fn func(t sqlTx) error) error {
	return s.db.update(ctx, func(_ context.Context, t sqlTx) error {
		t.notify(notifyTokens)
		return fn(t)
	})
}

func insertToken(t sqlTx, one *auth.Token) error {
	servers, err := listToJSON(one.Servers)
	lanes, also := listToJSON(one.Lanes)
	if err := errors.Join(err, also); err != nil {
		return err
	}
	t.write("INSERT INTO token (id, name, hash, profile, servers, lanes, made_by, made_at, expires, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		one.ID, one.Name, one.Hash[:], one.Profile, servers, lanes, one.By, one.Created.UnixMicro(), timeToSQL(one.Expires), timeToSQL(one.Used))
	return nil
}

// listToJSON encodes a list as JSON, or returns nil (SQL NULL) for a nil list.
func listToJSON(list []string) (any, error) {
	if list == nil {
		return nil, nil
	}
	text, err := json.Marshal(list)
	return string(text), err
}

func timeToSQL(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// DropToken deletes a token. A missing token is not an error.
func (s *commonStore) DropToken(ctx context.Context, id string) error {
	return s.updateTokens(ctx, func(t sqlTx) error {
		t.write("DELETE FROM token WHERE id = ?", id)
		return nil
	})
}

// SetTokenUsed stores the time at which a token was last used.
func (s *commonStore) SetTokenUsed(ctx context.Context, id string, at time.Time) error {
	return s.db.update(ctx, func(_ context.Context, t sqlTx) error {
		t.write("UPDATE token SET used = {greatest(used, }?{)} WHERE id = ?", at.UnixMicro(), id)
		return nil
	})
}

// ReplaceTokens replaces all tokens.
func (s *commonStore) ReplaceTokens(ctx context.Context, all []auth.Token) error {
	return s.updateTokens(ctx, func(t sqlTx) error {
		t.write("DELETE FROM token")
		for i := range all {
			if err := insertToken(t, &all[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// LoadTokens returns the tokens, sorted by name. If an SQLite file contains invalid tokens, the file is renamed and
// replaced.
func (s *commonStore) LoadTokens(ctx context.Context) (all []auth.Token, err error) {
	err = s.db.load(ctx, func(ctx context.Context, r sqlReader) error {
		all, err = readTokens(ctx, r)
		return err
	})
	return all, err
}

func readTokens(ctx context.Context, r sqlReader) ([]auth.Token, error) {
	var t auth.Token
	var hash []byte
	var servers, lanes sql.NullString
	var made int64
	var expires, used sql.NullInt64
	return collectRows(ctx, r, scanTargets{&t.ID, &t.Name, &hash, &t.Profile, &servers, &lanes, &t.By, &made, &expires, &used}, func() (auth.Token, error) {
		one := t
		if copy(one.Hash[:], hash) != len(one.Hash) || len(hash) != len(one.Hash) {
			return one, fmt.Errorf("%w: the hash of a token has %d bytes", errDamaged, len(hash))
		}
		one.Created, one.Expires, one.Used = time.UnixMicro(made).UTC(), timeFromSQL(expires), timeFromSQL(used)
		err := errors.Join(listFromJSON(&one.Servers, servers), listFromJSON(&one.Lanes, lanes))
		return one, err
	}, "SELECT id, name, hash, profile, servers, lanes, made_by, made_at, expires, used FROM token ORDER BY name")
}

func listFromJSON(to *[]string, text sql.NullString) error {
	if !text.Valid {
		return nil
	}
	if err := json.Unmarshal([]byte(text.String), to); err != nil || *to == nil {
		return fmt.Errorf("%w: the scope of a token cannot be read", errDamaged)
	}
	return nil
}

func timeFromSQL(at sql.NullInt64) time.Time {
	if !at.Valid {
		return time.Time{}
	}
	return time.UnixMicro(at.Int64).UTC()
}
