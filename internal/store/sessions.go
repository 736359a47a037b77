package store

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// SessionKey returns the stored key of session IDs. Without one it stores key and returns it, so that all
// instances get the same.
func (s *commonStore) SessionKey(ctx context.Context, key []byte) (stored []byte, err error) {
	err = s.db.update(ctx, func(ctx context.Context, t sqlTx) error {
		t.write("INSERT INTO session_key (id, key) VALUES (1, ?) ON CONFLICT (id) DO NOTHING", key)
		var row []byte
		found, err := t.firstRow(ctx, scanTargets{&row}, "SELECT key FROM session_key WHERE id = 1")
		if err == nil && (!found || len(row) == 0) {
			err = fmt.Errorf("%w: there is no session key", errDamaged)
		}
		stored = bytes.Clone(row)
		return err
	})
	return stored, err
}

// SaveEndedSessions stores the record IDs of sessions that have ended, each until its time, and deletes those whose
// time is over.
func (s *commonStore) SaveEndedSessions(ctx context.Context, until map[string]time.Time) error {
	return s.db.update(ctx, func(_ context.Context, t sqlTx) error {
		t.write("DELETE FROM ended_session WHERE expires < ?", time.Now().UnixMicro())
		for record, end := range until {
			t.write("INSERT INTO ended_session (record, expires) VALUES (?, ?) ON CONFLICT (record) DO NOTHING", record, end.UnixMicro())
		}
		return nil
	})
}

// IsSessionEnded reports whether a session was stored as ended.
func (s *commonStore) IsSessionEnded(ctx context.Context, record string) (bool, error) {
	return viewed(ctx, s.db, func(ctx context.Context, r sqlReader) (bool, error) {
		return r.firstRow(ctx, scanTargets{new(string)}, "SELECT record FROM ended_session WHERE record = ?", record)
	})
}
