package store

import (
	"context"

	"mcpproxy/internal/store/activity"
)

// query is a transactor's.
func (db *Postgres) query(ctx context.Context, f *activity.Filter, columns []columnField, fn func(ctx context.Context, q recordQuery) error) (incomplete bool, err error) {
	if f.Search != "" {
		if err := db.indexTextOfAllChunks(ctx); err != nil {
			return false, err
		}
	}
	return false, db.withSnapshotTx(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		v, err := newPgSnapshot(ctx, e, c, f, columns...)
		if err != nil {
			return err
		}
		return fn(ctx, v)
	})
}

func (v *pgSnapshot) eachRecordAt(ctx context.Context, places []int64, fn func(at int64, r *activity.Record)) error {
	keys := make([]pgRecordKey, len(places))
	for i, place := range places {
		keys[i].instance, keys[i].key = v.keyAt(place)
	}
	return v.c.eachStoredRecord(ctx, keys, func(at int64, s *activity.StoredRecord) error {
		r := activity.DecodeForDisplay(s.Entry, s.Outcome)
		fn(at, &r)
		return nil
	})
}

func (v *pgSnapshot) repeatsByPosition(ctx context.Context, byID map[string]int64) (map[int64]int64, error) {
	times := map[int64]int64{}
	var ids []string
	for id := range byID {
		ids = append(ids, id)
	}
	var id string
	var instance, key int64
	return times, v.c.eachRow(ctx, scanTargets{&id, &instance, &key}, func() error {
		if place, ok := v.positionOf(instance, key); ok {
			times[place] = byID[id]
		}
		return nil
	}, "SELECT id, instance, key FROM activity WHERE id = ANY($1::text[])", pgTextArray(ids))
}
