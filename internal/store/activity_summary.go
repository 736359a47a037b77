package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/store/activity"
)

// What columns hold for what is counted.
var (
	callType        = hashValue(string(activity.ToolCall))
	laneRead        = hashValue("read")
	laneWrite       = hashValue("write")
	laneDestructive = hashValue("destructive")
	success         = hashValue(string(activity.Success))
	failed          = hashValue(string(activity.Failed))
	interrupted     = hashValue(string(activity.Interrupted))
	held            = hashValue(string(activity.Held))
)

// counted are the columns that say whether a call was refused or failed.
var counted = []field{fieldType, fieldStatus, fieldTimes}

// Summary counts what q selects, by columns alone.
func (db *DB) Summary(ctx context.Context, in activity.SummaryQuery) (activity.Summary, error) {
	by := groupFields[in.Group]
	q, err := db.query(ctx, &in.Filter, slices.Concat(counted, []field{fieldIntent, fieldError, fieldDuration, fieldOwn}, by)...)
	if err != nil {
		return activity.Summary{}, err
	}
	s := newSummary(&in, by)
	s.Incomplete = q.incomplete
	err = q.within(ctx, func(ctx context.Context) (err error) {
		if s.times, err = q.times(ctx, in.Times); err != nil {
			return err
		}
		if s.Cut, err = q.eachBlock(ctx, in.Most, s.add); err != nil {
			return err
		}
		s.finish()
		s.Groups, err = q.tallies(ctx, &in, s)
		return err
	})
	return s.Summary, err
}

// groupFields are the columns that have the key of a group.
var groupFields = map[activity.GroupBy][]field{
	activity.ByLane: {fieldIntent}, activity.ByServer: {fieldServer}, activity.ByTool: {fieldServer, fieldTool}, activity.ByClient: {fieldClient},
}

// summary is a Summary that comes about.
type summary struct {
	activity.Summary
	since, step int64 // microseconds
	by          []field
	server      []uint64 // the codes of activity.ServerFailures
	times       map[int64]int64
	groups      map[groupKey]*group // one, when none are asked for
	known       [4096]struct {      // some of them, by their key
		key groupKey
		*group
	}
}

type groupKey [2]uint64

// group is what is counted of one group.
type group struct {
	key                    int64 // of its newest record
	calls, refused, failed int64
	last                   int64
	duration, own          histogram
}

func newSummary(in *activity.SummaryQuery, by []field) *summary {
	since := in.Since.UnixMicro()
	_, until := bounds(in.Since, in.Until)
	s := &summary{step: in.Step.Microseconds(), by: by, groups: map[groupKey]*group{}}
	s.since = since - since%s.step
	for at := s.since; at < until; at += s.step {
		s.Buckets = append(s.Buckets, activity.Bucket{Start: time.UnixMicro(at).UTC()})
	}
	for _, code := range activity.ServerFailures() {
		s.server = append(s.server, hashValue(string(code)))
	}
	return s
}

// add counts the records of a chunk. It is called for the newest first.
func (s *summary) add(b *block) {
	var bucket *activity.Bucket
	var from, until int64 // of the bucket
	b.each(func(i int) {
		s.Records++
		t := int64(b.columns[fieldTime].of(i))
		if t < from || t >= until {
			at := (t - s.since) / s.step
			if t < s.since || at >= int64(len(s.Buckets)) {
				return // no such time was selected
			}
			bucket, from, until = &s.Buckets[at], s.since+at*s.step, s.since+(at+1)*s.step
		}
		switch b.columns[fieldType].of(i) {
		case refusedType:
			n := refusedTimes(b, i, s.times)
			s.Refused += n
			bucket.Refused += n
			s.groupOf(b, i, t).refused += n
		case callType:
			if b.columns[fieldStatus].of(i) != held { // if it is made, that is another record
				s.addCall(b, i, bucket, s.groupOf(b, i, t))
			}
		}
	})
}

// refusedTimes is how often a call was refused.
func refusedTimes(b *block, i int, now map[int64]int64) int64 {
	return max(1, int64(b.columns[fieldTimes].of(i)), now[b.first+int64(i)])
}

// addCall counts a call.
func (s *summary) addCall(b *block, i int, bucket *activity.Bucket, g *group) {
	s.Calls++
	g.calls++
	switch b.columns[fieldIntent].of(i) {
	case laneRead:
		bucket.Read++
	case laneWrite:
		bucket.Write++
	case laneDestructive:
		bucket.Destructive++
	}
	status := b.columns[fieldStatus].of(i)
	if status == failed || status == interrupted {
		s.Failed++
		bucket.Failed++
		g.failed++
	}
	if status == failed {
		switch code := b.columns[fieldError].of(i); {
		case code == 0:
			s.FailedTool++
		case slices.Contains(s.server, code):
			s.FailedServer++
		}
	}
	if status != success && status != failed {
		return
	}
	g.duration.add(int64(b.columns[fieldDuration].of(i)))
	if own := int64(b.columns[fieldOwn].of(i)); own > 0 { // else it is from before that was measured
		g.own.add(own)
	}
}

// groupOf returns the group of a record of a time.
func (s *summary) groupOf(b *block, i int, t int64) *group {
	var key groupKey
	for n, f := range s.by {
		key[n] = b.columns[f].of(i)
	}
	// Values are hashes already. A group is mostly one that was there a moment ago.
	known := &s.known[(key[0]^key[1])%uint64(len(s.known))]
	if known.group == nil || known.key != key {
		known.key, known.group = key, s.groups[key]
		if known.group == nil {
			known.group = &group{key: b.first + int64(i)}
			s.groups[key] = known.group
		}
	}
	known.last = max(known.last, t)
	return known.group
}

// finish counts what follows from all records.
func (s *summary) finish() {
	var duration, own histogram
	for _, g := range s.groups {
		duration.merge(&g.duration)
		own.merge(&g.own)
	}
	s.P50, s.P95 = duration.percentile(50), duration.percentile(95)
	s.OwnP50, s.OwnP95 = own.percentile(50), own.percentile(95)
	if s.by == nil {
		clear(s.groups)
	}
}

// most returns the groups with the most calls.
func (s *summary) most() []*group {
	all := make([]*group, 0, len(s.groups))
	for _, g := range s.groups {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(b.refused, a.refused), cmp.Compare(b.key, a.key))
	})
	return all[:min(len(all), activity.MaxGroups)]
}

// tally is what is counted of a group, one of whose records is r.
func (g *group) tally(by activity.GroupBy, r *activity.Record) activity.Tally {
	return activity.Tally{
		Key: keyOf(by, r), Calls: g.calls, Refused: g.refused, Failed: g.failed, Last: time.UnixMicro(g.last).UTC(),
		P50: g.duration.percentile(50), P95: g.duration.percentile(95), OwnP50: g.own.percentile(50),
	}
}

// tallies names the groups with the most calls. One whose records are pruned
// meanwhile is left out.
func (q *query) tallies(ctx context.Context, in *activity.SummaryQuery, s *summary) ([]activity.Tally, error) {
	out := []activity.Tally{}
	for _, g := range s.most() {
		r, err := readRecord(q.tx.QueryRowContext(ctx, selectRecord, g.key))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, g.tally(in.Group, &r))
	}
	return out, nil
}

// keyOf is the key of a record's group.
func keyOf(by activity.GroupBy, r *activity.Record) string {
	f := activity.NewRecordFacts(r)
	switch {
	case by == activity.ByLane:
		return f.Intent
	case by == activity.ByClient:
		return f.Client
	case by == activity.ByServer || f.Tool == "":
		return f.Server
	case f.Server == "":
		return f.Tool
	}
	return tool.ID{Server: f.Server, Tool: f.Tool}.String()
}

// times finds the keys of records by their id.
func (q *query) times(ctx context.Context, byID map[string]int64) (map[int64]int64, error) {
	times := map[int64]int64{}
	for id, n := range byID {
		keys, err := find(ctx, q.tx, id, id, q.sel.base, q.sel.base+64*int64(len(q.sel.words)))
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			times[key] = n
		}
	}
	return times, nil
}

// Sessions returns the sessions that have records in a time.
func (db *DB) Sessions(ctx context.Context, in activity.SessionQuery) (activity.SessionPage, error) {
	q, err := db.query(ctx, &activity.Filter{Since: in.Since, Until: in.Until}, append([]field{fieldSession}, counted...)...)
	if err != nil {
		return activity.SessionPage{}, err
	}
	page := activity.SessionPage{Incomplete: q.incomplete}
	err = q.within(ctx, func(ctx context.Context) error {
		times, err := q.times(ctx, in.Times)
		if err != nil {
			return err
		}
		t := sessionTally{times: times, byID: map[uint64]*sessionCount{}}
		if page.Cut, err = q.eachBlock(ctx, in.Most, t.add); err != nil {
			return err
		}
		page.Total = int64(len(t.all))
		page.Sessions, err = q.sessions(ctx, t.page(&in))
		return err
	})
	return page, err
}

// sessionTally counts by session.
type sessionTally struct {
	times map[int64]int64
	byID  map[uint64]*sessionCount
	all   []*sessionCount
}

// sessionCount is what is counted of one session.
type sessionCount struct {
	group
	first int64
}

// add counts the records of a chunk. It is called for the newest first.
func (t *sessionTally) add(b *block) {
	sessions := &b.columns[fieldSession]
	known := make([]*sessionCount, len(sessions.list))
	b.each(func(i int) {
		id, at := sessions.of(i), int64(b.columns[fieldTime].of(i))
		if id == 0 {
			return
		}
		k := &known[sessions.at[i]]
		if *k == nil {
			if *k = t.byID[id]; *k == nil {
				*k = &sessionCount{group{key: b.first + int64(i)}, at}
				t.byID[id], t.all = *k, append(t.all, *k)
			}
		}
		s := *k
		s.first, s.last = min(s.first, at), max(s.last, at)
		switch b.columns[fieldType].of(i) {
		case refusedType:
			s.refused += refusedTimes(b, i, t.times)
		case callType:
			status := b.columns[fieldStatus].of(i)
			if status == held {
				return
			}
			if s.calls++; status == failed || status == interrupted {
				s.failed++
			}
		}
	})
}

// page returns the sessions that are asked for, the newest first.
func (t *sessionTally) page(in *activity.SessionQuery) []*sessionCount {
	slices.SortStableFunc(t.all, func(a, b *sessionCount) int { return cmp.Compare(b.last, a.last) })
	from := min(max(0, in.Offset), len(t.all))
	return t.all[from:min(from+max(0, in.Limit), len(t.all))]
}

// session is what is counted of a session, one of whose records is r.
func (s *sessionCount) session(r *activity.Record) activity.Session {
	return activity.Session{
		ID: r.SessionID, ClientName: r.ClientName, ClientVersion: r.ClientVersion, Actor: r.Actor, Source: r.Source,
		First: time.UnixMicro(s.first).UTC(), Last: time.UnixMicro(s.last).UTC(), Calls: s.calls, Refused: s.refused, Failed: s.failed,
	}
}

// sessions names sessions. One whose records are pruned meanwhile is left out.
func (q *query) sessions(ctx context.Context, counts []*sessionCount) ([]activity.Session, error) {
	out := []activity.Session{}
	for _, s := range counts {
		r, err := readRecord(q.tx.QueryRowContext(ctx, selectRecord, s.key))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, s.session(&r))
	}
	return out, nil
}
