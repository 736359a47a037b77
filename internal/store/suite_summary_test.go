package store_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// expectedSummary is a simple reference implementation of summaries. records are the selected records, newest first.
func expectedSummary(q activity.SummaryQuery, records []activity.Record) activity.Summary {
	s := activity.Summary{Records: int64(len(records)), Buckets: []activity.Bucket{}, Groups: []activity.Tally{}}
	if s.Records > q.Most {
		records, s.Records, s.Cut = records[:q.Most], q.Most, true
	}
	first := q.Since.Truncate(q.Step) // every step also divides the time since year 1
	for at := first; at.Before(q.Until); at = at.Add(q.Step) {
		s.Buckets = append(s.Buckets, activity.Bucket{Start: at})
	}
	groups, durations, own := map[string]*activity.Tally{}, map[string][]int64{}, map[string][]int64{}
	var all, allOwn []int64
	for _, r := range records {
		if r.Type != activity.ToolCall && r.Type != activity.PolicyDecision || r.Type == activity.ToolCall && r.Status == activity.Held {
			continue
		}
		bucket := &s.Buckets[r.Timestamp.Sub(first)/q.Step]
		key := expectedGroupKey(q.Group, r)
		g := groups[key]
		if g == nil {
			g = &activity.Tally{Key: key}
			groups[key] = g
		}
		if r.Timestamp.After(g.Last) {
			g.Last = r.Timestamp
		}
		if r.Type == activity.PolicyDecision {
			n := max(1, r.Repeated)
			s.Refused, bucket.Refused, g.Refused = s.Refused+n, bucket.Refused+n, g.Refused+n
			continue
		}
		s.Calls++
		g.Calls++
		if in := r.Metadata.Intent; in != nil {
			*map[string]*int64{"read": &bucket.Read, "write": &bucket.Write, "destructive": &bucket.Destructive}[in.OperationType]++
		}
		if r.Status == activity.Failed || r.Status == activity.Interrupted {
			s.Failed, bucket.Failed, g.Failed = s.Failed+1, bucket.Failed+1, g.Failed+1
		}
		if r.Status == activity.Failed {
			switch r.Metadata.ErrorCode {
			case "":
				s.FailedTool++
			case "UPSTREAM_ERROR", "TIMEOUT":
				s.FailedServer++
			}
		}
		if r.Status == activity.Success || r.Status == activity.Failed {
			all = append(all, r.DurationMS)
			durations[key] = append(durations[key], r.DurationMS)
			if r.OwnUS > 0 {
				allOwn, own[key] = append(allOwn, r.OwnUS), append(own[key], r.OwnUS)
			}
		}
	}
	s.P50, s.P95, s.OwnP50, s.OwnP95 = exactPercentile(all, 50), exactPercentile(all, 95), exactPercentile(allOwn, 50), exactPercentile(allOwn, 95)
	for key, g := range groups {
		g.P50, g.P95, g.OwnP50 = exactPercentile(durations[key], 50), exactPercentile(durations[key], 95), exactPercentile(own[key], 50)
		if q.Group != "" {
			s.Groups = append(s.Groups, *g)
		}
	}
	slices.SortFunc(s.Groups, func(a, b activity.Tally) int { return cmp.Compare(a.Key, b.Key) })
	return s
}

func expectedGroupKey(by activity.GroupBy, r activity.Record) string {
	lane := ""
	if r.Metadata.Intent != nil {
		lane = r.Metadata.Intent.OperationType
	}
	name := r.ServerName
	if by == activity.ByTool && r.ToolName != "" {
		name = r.ToolName
		if r.ServerName != "" {
			name = r.ServerName + ":" + r.ToolName
		}
	}
	return map[activity.GroupBy]string{activity.ByLane: lane, activity.ByClient: r.ClientName, activity.ByServer: r.ServerName, activity.ByTool: name}[by]
}

// exactPercentile returns the smallest of the values that is greater than or equal to at least p percent of them.
func exactPercentile(values []int64, p int) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)*p+99)/100-1]
}

// sameSummary compares summaries, and accepts percentiles that differ by at most 0.4 %.
var sameSummary = gocmp.Options{
	gocmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	gocmp.Transformer("list", func(in []activity.Bucket) []activity.Bucket { return append([]activity.Bucket{}, in...) }),
	gocmp.FilterPath(func(p gocmp.Path) bool {
		s := p.Last().String()
		return strings.HasSuffix(s, "P50") || strings.HasSuffix(s, "P95")
	},
		gocmp.Comparer(func(a, b int64) bool { return max(a, b) < 256 && a == b || 250*max(a, b) <= 251*min(a, b) })),
}

// expectedSessions is the reference implementation of sessions, newest first.
func expectedSessions(q activity.SessionQuery, records []activity.Record) (out []activity.Session) {
	byID := map[string]*activity.Session{}
	for _, r := range records {
		if r.SessionID == "" {
			continue
		}
		s := byID[r.SessionID]
		if s == nil {
			s = &activity.Session{ID: r.SessionID, ClientName: r.ClientName, Actor: r.Actor, First: r.Timestamp}
			byID[r.SessionID] = s
		}
		if r.Timestamp.Before(s.First) {
			s.First = r.Timestamp
		}
		if r.Timestamp.After(s.Last) {
			s.Last = r.Timestamp
		}
		switch r.Type {
		case activity.PolicyDecision:
			s.Refused += max(1, r.Repeated)
		case activity.ToolCall:
			if r.Status == activity.Held {
				continue
			}
			s.Calls++
			if r.Status == activity.Failed || r.Status == activity.Interrupted {
				s.Failed++
			}
		}
	}
	for _, s := range byID {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b activity.Session) int { return b.Last.Compare(a.Last) })
	return out
}

// refuseRandomCall records one or more refusals of a random call, and returns the record.
func (e *testEnv) refuseRandomCall(d randomSource) activity.Record {
	e.t.Helper()
	e.clock.Advance(time.Millisecond)
	var first activity.Record
	times := pickOne(d, []int64{1, 2, 50})
	for i := range times {
		r := activity.Record{ServerName: pickOne(d, servers), Actor: "agent", ErrorMessage: e.clock.Now().String(), SessionID: pickOne(d, sessions),
			Metadata: activity.Metadata{Intent: &activity.Intent{OperationType: "write"}}}
		if i > 0 {
			r = first
		}
		if err := e.log.AppendRefusal(&r); err != nil {
			e.t.Fatal(err)
		}
		if i == 0 {
			first = r
		}
	}
	first.Repeated = times
	return first
}

// testSummaries compares summaries and sessions with the reference implementations, for records in each part of a
// store. Then it compares them again for the records that remain after erasing fields and pruning records.
func testSummaries(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var records []activity.Record
	rounds := 0
	from := e.clock.Now()
	run := func(rt *rapid.T) {
		d := randomSource{rt}
		if rounds++; rounds <= 12 {
			records = append(records, e.addRandomRecords(d, volume.FullOrQuick(300, 100))...)
			records = append(records, e.refuseRandomCall(d), e.refuseRandomCall(d))
		}
		if rounds == 6 {
			e.closeAll()
			e.openAll()
			for i := range records {
				if records[i].Status == activity.Pending {
					records[i].Status = activity.Interrupted
				}
			}
		}
		if rounds == 25 { // later rounds use only the remaining records
			there, erased := len(records), 0
			for _, r := range records[there-300:] {
				if r.Type != activity.ToolCall || r.Arguments == nil || r.Status == activity.Pending {
					continue
				}
				if _, err := e.log.EraseFields(t.Context(), activity.Record{Actor: "admin"}, r.ID, []activity.ErasableField{activity.FieldArguments}); err != nil {
					t.Fatal(err)
				}
				erased++
			}
			e.tidyFully(activity.Retention{MaxRecords: int64(there / 3)})
			if records = e.allRecords(); erased == 0 || len(records) > there*3/4 {
				t.Errorf("%d records were erased, %d of %d remain", erased, len(records), there)
			}
		}
		for range 4 {
			f := d.randomFilter(from, e.clock.Now())
			if f.Since.IsZero() {
				f.Since = from.Add(-time.Minute)
			}
			if f.Until.IsZero() {
				f.Until = e.clock.Now().Add(time.Minute)
			}
			checkSummary(e, activity.SummaryQuery{
				Filter: f, Step: pickOne(d, []time.Duration{time.Second, 15 * time.Second, time.Minute, time.Hour, 24 * time.Hour}),
				Group: pickOne(d, []activity.GroupBy{"", activity.ByLane, activity.ByServer, activity.ByTool, activity.ByClient}),
				Most:  pickOne(d, []int64{1 << 40, 1 << 40, 1000, 10}),
			}, records)
			checkSessions(e, activity.SessionQuery{Since: f.Since, Until: f.Until, Limit: pickOne(d, []int{1, 2, 50}), Offset: pickOne(d, []int{0, 0, 1, 5}), Most: 1 << 40}, records)
		}
	}
	// All examples of a seed use the same store, and each adds records to it.
	gen := rapid.Custom(func(rt *rapid.T) bool { run(rt); return true })
	for i := 0; i < volume.FullOrQuick(40, 20) && !t.Failed(); i++ {
		gen.Example(i)
	}
}

func checkSummary(e *testEnv, q activity.SummaryQuery, records []activity.Record) {
	e.t.Helper()
	got, err := e.log.Summary(e.t.Context(), q)
	if err != nil {
		e.t.Fatalf("%+v: %v", q, err)
	}
	byCalls := slices.IsSortedFunc(got.Groups, func(a, b activity.Tally) int { return cmp.Compare(b.Calls, a.Calls) })
	slices.SortFunc(got.Groups, func(a, b activity.Tally) int { return cmp.Compare(a.Key, b.Key) })
	if d := gocmp.Diff(expectedSummary(q, expectedRecords(q.Filter, records)), got, sameSummary); d != "" || !byCalls {
		e.t.Errorf("%+v: by calls = %v (-want +got)\n%s", q, byCalls, d)
	}
}

func checkSessions(e *testEnv, q activity.SessionQuery, records []activity.Record) {
	e.t.Helper()
	got, err := e.log.Sessions(e.t.Context(), q)
	if err != nil {
		e.t.Fatalf("%+v: %v", q, err)
	}
	all := expectedSessions(q, expectedRecords(activity.Filter{Since: q.Since, Until: q.Until}, records))
	from := min(q.Offset, len(all))
	want := activity.SessionPage{Sessions: all[from:min(from+q.Limit, len(all))], Total: int64(len(all))}
	if want.Sessions == nil {
		want.Sessions = []activity.Session{}
	}
	if d := gocmp.Diff(want, got, sameSummary, gocmp.Transformer("list", func(in []activity.Session) []activity.Session { return append([]activity.Session{}, in...) })); d != "" {
		e.t.Errorf("%+v: (-want +got)\n%s", q, d)
	}
}

// testEach checks that EachRecord reads all records while new ones are written.
func testEach(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var records []activity.Record
	for i := range severalChunks() {
		e.clock.Advance(time.Second)
		records = append(records, e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success, ServerName: servers[i%3], RequestID: fmt.Sprint(i)}))
	}
	for _, f := range []activity.Filter{{}, {Servers: []string{"github"}, Limit: 1}, {Since: records[100].Timestamp, Until: records[200].Timestamp}} {
		want := expectedRecords(f, records)
		var got []activity.Record
		err := e.log.EachRecord(t.Context(), f, func(r *activity.Record) error {
			if len(got)%500 == 0 {
				e.clock.Advance(time.Second)
				records = append(records, e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success, ServerName: "github"}))
			}
			got = append(got, *r)
			return nil
		})
		if d := gocmp.Diff(want, got, sameRecord); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", filterString(f), err, d)
		}
	}
	enough := errors.New("enough")
	n := 0
	if err := e.log.EachRecord(t.Context(), activity.Filter{}, func(*activity.Record) error { n++; return enough }); err != enough || n != 1 {
		t.Errorf("got %d records, %v", n, err)
	}
}
