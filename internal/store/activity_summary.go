package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/store/activity"
)

// Hashes of the column values that summaries compare.
var (
	toolCallHash        = hashText(string(activity.ToolCall))
	readLaneHash        = hashText("read")
	writeLaneHash       = hashText("write")
	destructiveLaneHash = hashText("destructive")
	successHash         = hashText(string(activity.Success))
	failedHash          = hashText(string(activity.Failed))
	interruptedHash     = hashText(string(activity.Interrupted))
	heldHash            = hashText(string(activity.Held))
)

// outcomeFields contains the columns that tell whether a call was refused or failed.
var outcomeFields = []columnField{fieldType, fieldStatus, fieldRepeats}

// Summary counts the records that in selects. It reads only columns.
func (s *commonStore) Summary(ctx context.Context, in activity.SummaryQuery) (activity.Summary, error) {
	by := groupFields[in.Group]
	b := newSummaryBuilder(&in, by)
	columns := slices.Concat(outcomeFields, []columnField{fieldIntent, fieldError, fieldDuration, fieldOwnTime}, by)
	incomplete, err := s.db.query(ctx, &in.Filter, columns, func(ctx context.Context, v *recordSnapshot) (err error) {
		if b.repeats, err = v.repeatsByPosition(ctx, in.Times); err != nil {
			return err
		}
		if b.Cut, err = v.eachSelectedChunk(ctx, in.Most, b.addChunk); err != nil {
			return err
		}
		b.computePercentiles()
		b.Groups = []activity.Tally{}
		groups := b.topGroups()
		places := make([]int64, len(groups))
		for i, g := range groups {
			places[i] = g.key
		}
		return v.eachRecordAt(ctx, places, func(at int64, r *activity.Record) {
			b.Groups = append(b.Groups, groups[at].toTally(in.Group, r))
		})
	})
	b.Incomplete = incomplete
	return b.Summary, err
}

// groupFields contains the columns that identify a group, for each grouping.
var groupFields = map[activity.GroupBy][]columnField{
	activity.ByLane: {fieldIntent}, activity.ByServer: {fieldServer}, activity.ByTool: {fieldServer, fieldTool}, activity.ByClient: {fieldClient},
}

// summaryBuilder counts records for a Summary.
type summaryBuilder struct {
	activity.Summary
	since, step         int64 // in microseconds
	groupBy             []columnField
	serverFailureHashes []uint64 // hashes of the codes in activity.ServerFailureCodes
	repeats             map[int64]int64
	groups              map[groupKey]*groupCounts // a single group if the query requests none
	recentGroups        [4096]struct {            // cache of recent groups, by the hash of their key
		key groupKey
		*groupCounts
	}
}

type groupKey [2]uint64

// groupCounts counts the records of one group.
type groupCounts struct {
	key                    int64 // key of the newest record
	calls, refused, failed int64
	last                   int64
	duration, own          histogram
}

func newSummaryBuilder(in *activity.SummaryQuery, by []columnField) *summaryBuilder {
	since := in.Since.UnixMicro()
	_, until := timeBounds(in.Since, in.Until)
	s := &summaryBuilder{step: in.Step.Microseconds(), groupBy: by, groups: map[groupKey]*groupCounts{}}
	s.since = since - since%s.step
	for at := s.since; at < until; at += s.step {
		s.Buckets = append(s.Buckets, activity.Bucket{Start: time.UnixMicro(at).UTC()})
	}
	for _, code := range activity.ServerFailureCodes() {
		s.serverFailureHashes = append(s.serverFailureHashes, hashText(string(code)))
	}
	return s
}

// addChunk counts the records of a chunk. Chunks must be added from the newest to the oldest.
func (s *summaryBuilder) addChunk(b *selectedChunk) {
	var bucket *activity.Bucket
	var from, until int64 // bounds of the bucket
	b.eachSelected(func(i int) {
		s.Records++
		t := int64(b.columns[fieldTime].value(i))
		if t < from || t >= until {
			at := (t - s.since) / s.step
			if t < s.since || at >= int64(len(s.Buckets)) {
				return // outside of the requested period
			}
			bucket, from, until = &s.Buckets[at], s.since+at*s.step, s.since+(at+1)*s.step
		}
		switch b.columns[fieldType].value(i) {
		case refusalHash:
			n := refusalCount(b, i, s.repeats)
			s.Refused += n
			bucket.Refused += n
			s.groupOfRecord(b, i, t).refused += n
		case toolCallHash:
			if b.columns[fieldStatus].value(i) != heldHash { // if a held call is made later, it has a separate record
				s.addCall(b, i, bucket, s.groupOfRecord(b, i, t))
			}
		}
	})
}

// refusalCount returns the number of times that a call was refused.
func refusalCount(b *selectedChunk, i int, now map[int64]int64) int64 {
	return max(1, int64(b.columns[fieldRepeats].value(i)), now[b.firstKey+int64(i)])
}

// addCall counts a call.
func (s *summaryBuilder) addCall(b *selectedChunk, i int, bucket *activity.Bucket, g *groupCounts) {
	s.Calls++
	g.calls++
	switch b.columns[fieldIntent].value(i) {
	case readLaneHash:
		bucket.Read++
	case writeLaneHash:
		bucket.Write++
	case destructiveLaneHash:
		bucket.Destructive++
	}
	status := b.columns[fieldStatus].value(i)
	if status == failedHash || status == interruptedHash {
		s.Failed++
		bucket.Failed++
		g.failed++
	}
	if status == failedHash {
		switch code := b.columns[fieldError].value(i); {
		case code == 0:
			s.FailedTool++
		case slices.Contains(s.serverFailureHashes, code):
			s.FailedServer++
		}
	}
	if status != successHash && status != failedHash {
		return
	}
	g.duration.add(int64(b.columns[fieldDuration].value(i)))
	if own := int64(b.columns[fieldOwnTime].value(i)); own > 0 { // 0 means that an older version did not measure it
		g.own.add(own)
	}
}

// groupOfRecord returns the group of a record and updates the time of its last record.
func (s *summaryBuilder) groupOfRecord(b *selectedChunk, i int, t int64) *groupCounts {
	var key groupKey
	for n, f := range s.groupBy {
		key[n] = b.columns[f].value(i)
	}
	// The values are already hashes. Most records belong to a group that was used recently.
	known := &s.recentGroups[(key[0]^key[1])%uint64(len(s.recentGroups))]
	if known.groupCounts == nil || known.key != key {
		known.key, known.groupCounts = key, s.groups[key]
		if known.groupCounts == nil {
			known.groupCounts = &groupCounts{key: b.firstKey + int64(i)}
			s.groups[key] = known.groupCounts
		}
	}
	known.last = max(known.last, t)
	return known.groupCounts
}

// computePercentiles computes the percentiles of all records. It drops the groups if the query requests none.
func (s *summaryBuilder) computePercentiles() {
	var duration, own histogram
	for _, g := range s.groups {
		duration.merge(&g.duration)
		own.merge(&g.own)
	}
	s.P50, s.P95 = duration.percentile(50), duration.percentile(95)
	s.OwnP50, s.OwnP95 = own.percentile(50), own.percentile(95)
	if s.groupBy == nil {
		clear(s.groups)
	}
}

// topGroups returns the groups with the most calls.
func (s *summaryBuilder) topGroups() []*groupCounts {
	all := make([]*groupCounts, 0, len(s.groups))
	for _, g := range s.groups {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *groupCounts) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(b.refused, a.refused), cmp.Compare(b.key, a.key))
	})
	return all[:min(len(all), activity.MaxGroups)]
}

// toTally converts the counts of a group. r is a record of the group, from which it takes the name.
func (g *groupCounts) toTally(by activity.GroupBy, r *activity.Record) activity.Tally {
	return activity.Tally{
		Key: groupName(by, r), Calls: g.calls, Refused: g.refused, Failed: g.failed, Last: time.UnixMicro(g.last).UTC(),
		P50: g.duration.percentile(50), P95: g.duration.percentile(95), OwnP50: g.own.percentile(50),
	}
}

// groupName returns the name of the group of a record.
func groupName(by activity.GroupBy, r *activity.Record) string {
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

// Sessions returns the sessions that have records in a period.
func (s *commonStore) Sessions(ctx context.Context, in activity.SessionQuery) (page activity.SessionPage, err error) {
	columns := append([]columnField{fieldSession}, outcomeFields...)
	incomplete, err := s.db.query(ctx, &activity.Filter{Since: in.Since, Until: in.Until}, columns, func(ctx context.Context, v *recordSnapshot) error {
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
	page.Incomplete = incomplete
	return page, err
}

// sessionCounter counts the records of each session.
type sessionCounter struct {
	repeats map[int64]int64
	byID    map[uint64]*sessionCounts
	all     []*sessionCounts
}

// sessionCounts counts the records of one session.
type sessionCounts struct {
	groupCounts
	first int64
}

// addChunk counts the records of a chunk. Chunks must be added from the newest to the oldest.
func (t *sessionCounter) addChunk(b *selectedChunk) {
	sessions := &b.columns[fieldSession]
	known := make([]*sessionCounts, len(sessions.distinct))
	b.eachSelected(func(i int) {
		id, at := sessions.value(i), int64(b.columns[fieldTime].value(i))
		if id == 0 {
			return
		}
		k := &known[sessions.indexes[i]]
		if *k == nil {
			if *k = t.byID[id]; *k == nil {
				*k = &sessionCounts{groupCounts{key: b.firstKey + int64(i)}, at}
				t.byID[id], t.all = *k, append(t.all, *k)
			}
		}
		s := *k
		s.first, s.last = min(s.first, at), max(s.last, at)
		switch b.columns[fieldType].value(i) {
		case refusalHash:
			s.refused += refusalCount(b, i, t.repeats)
		case toolCallHash:
			status := b.columns[fieldStatus].value(i)
			if status == heldHash {
				return
			}
			if s.calls++; status == failedHash || status == interruptedHash {
				s.failed++
			}
		}
	})
}

// requestedPage returns the requested page of sessions, newest first.
func (t *sessionCounter) requestedPage(in *activity.SessionQuery) []*sessionCounts {
	slices.SortStableFunc(t.all, func(a, b *sessionCounts) int { return cmp.Compare(b.last, a.last) })
	from := min(max(0, in.Offset), len(t.all))
	return t.all[from:min(from+max(0, in.Limit), len(t.all))]
}

// toSession converts the counts of a session. r is a record of the session, from which it takes the names.
func (s *sessionCounts) toSession(r *activity.Record) activity.Session {
	return activity.Session{
		ID: r.SessionID, ClientName: r.ClientName, ClientVersion: r.ClientVersion, Actor: r.Actor, Source: r.Source,
		First: time.UnixMicro(s.first).UTC(), Last: time.UnixMicro(s.last).UTC(), Calls: s.calls, Refused: s.refused, Failed: s.failed,
	}
}
