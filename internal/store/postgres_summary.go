package store

import (
	"context"
	"slices"

	"mcpproxy/internal/store/activity"
)

// Summary counts the records that in selects. It reads columns only.
func (db *Postgres) Summary(ctx context.Context, in activity.SummaryQuery) (activity.Summary, error) {
	if in.Search != "" {
		if err := db.indexTextOfAllChunks(ctx); err != nil {
			return activity.Summary{}, err
		}
	}
	by := groupFields[in.Group]
	s := newSummaryBuilder(&in, by)
	err := db.withSnapshotTx(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		v, err := newPgSnapshot(ctx, e, c, &in.Filter, slices.Concat(outcomeFields, []columnField{fieldIntent, fieldError, fieldDuration, fieldOwnTime}, by)...)
		if err != nil {
			return err
		}
		if s.repeats, err = v.repeatsByPosition(ctx, in.Times); err != nil {
			return err
		}
		if s.Cut, err = v.eachSelectedChunk(ctx, in.Most, s.addChunk); err != nil {
			return err
		}
		s.computePercentiles()
		s.Groups = []activity.Tally{}
		groups := s.topGroups()
		places := make([]int64, len(groups))
		for i, g := range groups {
			places[i] = g.key
		}
		return v.eachRecordAt(ctx, places, func(at int64, r *activity.Record) {
			s.Groups = append(s.Groups, groups[at].toTally(in.Group, r))
		})
	})
	return s.Summary, err
}

// eachRecordAt reads the records at positions of the snapshot and calls fn for each that exists,
// with its index in positions.
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

// repeatsByPosition returns how often each refused call was refused, by the position of its record; byID has the same
// by ID.
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

// Sessions returns the sessions that have records in a time range.
func (db *Postgres) Sessions(ctx context.Context, in activity.SessionQuery) (page activity.SessionPage, err error) {
	err = db.withSnapshotTx(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		v, err := newPgSnapshot(ctx, e, c, &activity.Filter{Since: in.Since, Until: in.Until}, append([]columnField{fieldSession}, outcomeFields...)...)
		if err != nil {
			return err
		}
		times, err := v.repeatsByPosition(ctx, in.Times)
		if err != nil {
			return err
		}
		t := sessionCounter{repeats: times, byID: map[uint64]*sessionCounts{}}
		if page.Cut, err = v.eachSelectedChunk(ctx, in.Most, t.addChunk); err != nil {
			return err
		}
		page.Total, page.Sessions = int64(len(t.all)), []activity.Session{}
		sessions := t.requestedPage(&in)
		places := make([]int64, len(sessions))
		for i, s := range sessions {
			places[i] = s.key
		}
		return v.eachRecordAt(ctx, places, func(at int64, r *activity.Record) {
			page.Sessions = append(page.Sessions, sessions[at].toSession(r))
		})
	})
	return page, err
}
