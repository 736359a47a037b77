package store

import (
	"context"
	"errors"

	"mcpproxy/internal/gate/pause"
)

// LoadPause returns whether calls are paused on all instances.
func (db *Postgres) LoadPause(ctx context.Context) (s pause.State, err error) {
	err = db.view(ctx, func(ctx context.Context, r sqlReader) error {
		var at int64
		found, err := r.firstRow(ctx, scanTargets{&s.Paused, &s.Reason, &s.By, &s.Via, &at}, "SELECT paused, reason, decided_by, via, at FROM pause")
		if s.At = timeFromMicros(at); err == nil && !found {
			err = errors.New("the table pause is empty")
		}
		return err
	})
	return s, err
}

// SavePause stores whether calls are paused, and notifies the other instances.
func (db *Postgres) SavePause(ctx context.Context, s pause.State) error {
	return db.updateDurably(ctx, func(_ context.Context, t sqlTx) error {
		t.write("UPDATE pause SET paused = ?, reason = ?, decided_by = ?, via = ?, at = ?", s.Paused, s.Reason, s.By, s.Via, timeToMicros(s.At))
		t.notify(notifyPause)
		return nil
	})
}
