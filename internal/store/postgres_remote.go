package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"mcpproxy/internal/store/activity"
)

// ReadRemoteCallEvents reads the beginnings and ends of calls in other instances that the notifications announce. The
// events have no positions in the chain. missed reports whether there were more.
func (db *Postgres) ReadRemoteCallEvents(ctx context.Context, told []string) (steps []activity.EntryEvent, missed bool, err error) {
	err = db.withReadConn(ctx, func(ctx context.Context, c *pgConn) error {
		for _, payload := range told {
			var numbers []int64
			for _, text := range strings.Fields(strings.TrimPrefix(payload, notifyLog)) {
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					break
				}
				numbers = append(numbers, n)
			}
			if len(numbers) < 3 {
				missed = true
				continue
			}
			if err := c.eachCallEvent(ctx, numbers[0], numbers[1], numbers[2], numbers[3:], func(s activity.EntryEvent) { steps = append(steps, s) }); err != nil {
				return err
			}
		}
		return nil
	})
	return steps, missed, err
}

// eachCallEvent calls fn for the beginnings and ends of the records with keys in [from, next), and for the ends of the
// records with the keys in ended.
func (c *pgConn) eachCallEvent(ctx context.Context, instance, from, next int64, ended []int64, fn func(activity.EntryEvent)) error {
	var s activity.EntryEvent
	f := &s.Facts
	var kind, status string
	var key, seq int64
	var endSeq sql.NullInt64
	return c.eachRow(ctx, scanTargets{&key, &seq, &endSeq, &s.ID, &f.Time, &kind, &status, &f.Server, &f.Tool, &f.Session, &f.Request, &f.Intent, &f.Sensitivity,
		&f.Actor, &f.Client, &f.ErrorCode, &f.Duration, &f.OwnTime, &f.Repeats}, func() error {
		f.Type, f.Status = activity.Type(kind), activity.Status(status)
		s.Kind = activity.KindWhole
		if endSeq.Valid && endSeq.Int64 == seq || f.Type == activity.PolicyDecision {
			fn(s)
			return nil
		}
		if key >= from {
			begun := s
			begun.Kind, begun.Facts.Status, begun.Facts.Duration = activity.KindBegin, activity.Pending, 0
			fn(begun)
		}
		if s.Kind = activity.KindEnd; endSeq.Valid {
			fn(s)
		}
		return nil
	}, `SELECT key, seq, end_seq, id, time, type, status, server, tool, session, request, intent, sensitivity, actor, client, error_code, duration, own, times
		FROM activity WHERE instance = $1 AND (key >= $2 AND key < $3 OR key = ANY($4::bigint[])) ORDER BY key`, instance, from, next, pgIntArray(ended))
}
