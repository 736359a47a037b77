package storetest

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
)

// summarize counts in the plainest form: records is what the filter selects, the
// newest first.
func summarize(q activity.SummaryQuery, records []activity.Record) activity.Summary {
	s := activity.Summary{Records: int64(len(records)), Buckets: []activity.Bucket{}, Groups: []activity.Tally{}}
	if s.Records > q.Most {
		records, s.Records, s.Cut = records[:q.Most], q.Most, true
	}
	first := q.Since.Truncate(q.Step) // all steps divide the time since year 1, too
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
		key := plainKey(q.Group, r)
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
	s.P50, s.P95, s.OwnP50, s.OwnP95 = plainPercentile(all, 50), plainPercentile(all, 95), plainPercentile(allOwn, 50), plainPercentile(allOwn, 95)
	for key, g := range groups {
		g.P50, g.P95, g.OwnP50 = plainPercentile(durations[key], 50), plainPercentile(durations[key], 95), plainPercentile(own[key], 50)
		if q.Group != "" {
			s.Groups = append(s.Groups, *g)
		}
	}
	slices.SortFunc(s.Groups, func(a, b activity.Tally) int { return cmp.Compare(a.Key, b.Key) })
	return s
}

func plainKey(by activity.GroupBy, r activity.Record) string {
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

// plainPercentile is the least value that p of 100 do not exceed.
func plainPercentile(values []int64, p int) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)*p+99)/100-1]
}

// sameSummary takes percentiles for the same within 0.4 %.
var sameSummary = gocmp.Options{
	gocmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	gocmp.Transformer("list", func(in []activity.Bucket) []activity.Bucket { return append([]activity.Bucket{}, in...) }),
	gocmp.FilterPath(func(p gocmp.Path) bool {
		s := p.Last().String()
		return strings.HasSuffix(s, "P50") || strings.HasSuffix(s, "P95")
	},
		gocmp.Comparer(func(a, b int64) bool { return max(a, b) < 256 && a == b || 250*max(a, b) <= 251*min(a, b) })),
}

// sessionsOf is what sessions come to in the plainest form, the newest first.
func sessionsOf(q activity.SessionQuery, records []activity.Record) (out []activity.Session) {
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

// refuse has a call refused some times, and returns the record.
func (e *env) refuse(d draw) activity.Record {
	e.t.Helper()
	e.clock.Advance(time.Millisecond)
	var first activity.Record
	times := pick(d, []int64{1, 2, 50})
	for i := range times {
		r := activity.Record{ServerName: pick(d, servers), Actor: "agent", ErrorMessage: e.clock.Now().String(), SessionID: pick(d, sessions),
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

// testSummaries compares summaries and sessions with the model, over records in
// every place where a store may keep them; then of those that are left when fields were
// erased and others pruned.
func testSummaries(t *testing.T, open Opener) {
	e := start(t, open)
	var records []activity.Record
	rounds := 0
	from := e.clock.Now()
	run := func(rt *rapid.T) {
		d := draw{rt}
		if rounds++; rounds <= 12 {
			records = append(records, e.fill(d, open.Volume(300, 100))...)
			records = append(records, e.refuse(d), e.refuse(d))
		}
		if rounds == 6 {
			e.down()
			e.up()
			for i := range records {
				if records[i].Status == activity.Pending {
					records[i].Status = activity.Interrupted
				}
			}
		}
		if rounds == 25 { // from here on of what is left
			there, erased := len(records), 0
			for _, r := range records[there-300:] {
				if r.Type != activity.ToolCall || r.Arguments == nil || r.Status == activity.Pending {
					continue
				}
				if _, err := e.log.Redact(t.Context(), activity.Record{Actor: "admin"}, r.ID, []activity.ErasableField{activity.FieldArguments}); err != nil {
					t.Fatal(err)
				}
				erased++
			}
			e.tidy(activity.Retention{MaxRecords: int64(there / 3)})
			if records = e.all(); erased == 0 || len(records) > there*3/4 {
				t.Errorf("%d are erased; %d of %d are left", erased, len(records), there)
			}
		}
		for range 4 {
			f := d.filter(from, e.clock.Now())
			if f.Since.IsZero() {
				f.Since = from.Add(-time.Minute)
			}
			if f.Until.IsZero() {
				f.Until = e.clock.Now().Add(time.Minute)
			}
			checkSummary(e, activity.SummaryQuery{
				Filter: f, Step: pick(d, []time.Duration{time.Second, 15 * time.Second, time.Minute, time.Hour, 24 * time.Hour}),
				Group: pick(d, []activity.GroupBy{"", activity.ByLane, activity.ByServer, activity.ByTool, activity.ByClient}),
				Most:  pick(d, []int64{1 << 40, 1 << 40, 1000, 10}),
			}, records)
			checkSessions(e, activity.SessionQuery{Since: f.Since, Until: f.Until, Limit: pick(d, []int{1, 2, 50}), Offset: pick(d, []int{0, 0, 1, 5}), Most: 1 << 40}, records)
		}
	}
	// The examples of one seed: the store grows with them.
	gen := rapid.Custom(func(rt *rapid.T) bool { run(rt); return true })
	for i := 0; i < open.Volume(40, 20) && !t.Failed(); i++ {
		gen.Example(i)
	}
}

func checkSummary(e *env, q activity.SummaryQuery, records []activity.Record) {
	e.t.Helper()
	got, err := e.log.Summary(e.t.Context(), q)
	if err != nil {
		e.t.Fatalf("%+v: %v", q, err)
	}
	byCalls := slices.IsSortedFunc(got.Groups, func(a, b activity.Tally) int { return cmp.Compare(b.Calls, a.Calls) })
	slices.SortFunc(got.Groups, func(a, b activity.Tally) int { return cmp.Compare(a.Key, b.Key) })
	if d := gocmp.Diff(summarize(q, expected(q.Filter, records)), got, sameSummary); d != "" || !byCalls {
		e.t.Errorf("%+v: by calls: %v, (-want +got)\n%s", q, byCalls, d)
	}
}

func checkSessions(e *env, q activity.SessionQuery, records []activity.Record) {
	e.t.Helper()
	got, err := e.log.Sessions(e.t.Context(), q)
	if err != nil {
		e.t.Fatalf("%+v: %v", q, err)
	}
	all := sessionsOf(q, expected(activity.Filter{Since: q.Since, Until: q.Until}, records))
	from := min(q.Offset, len(all))
	want := activity.SessionPage{Sessions: all[from:min(from+q.Limit, len(all))], Total: int64(len(all))}
	if want.Sessions == nil {
		want.Sessions = []activity.Session{}
	}
	if d := gocmp.Diff(want, got, sameSummary, gocmp.Transformer("list", func(in []activity.Session) []activity.Session { return append([]activity.Session{}, in...) })); d != "" {
		e.t.Errorf("%+v: (-want +got)\n%s", q, d)
	}
}

// testEach goes through everything while more comes in.
func testEach(t *testing.T, open Opener) {
	e := start(t, open)
	var records []activity.Record
	for i := range open.aBit() {
		e.clock.Advance(time.Second)
		records = append(records, e.put(activity.Record{Type: activity.System, Status: activity.Success, ServerName: servers[i%3], RequestID: fmt.Sprint(i)}))
	}
	for _, f := range []activity.Filter{{}, {Servers: []string{"github"}, Limit: 1}, {Since: records[100].Timestamp, Until: records[200].Timestamp}} {
		want := expected(f, records)
		var got []activity.Record
		err := e.log.EachRecord(t.Context(), f, func(r *activity.Record) error {
			if len(got)%500 == 0 {
				e.clock.Advance(time.Second)
				records = append(records, e.put(activity.Record{Type: activity.System, Status: activity.Success, ServerName: "github"}))
			}
			got = append(got, *r)
			return nil
		})
		if d := gocmp.Diff(want, got, sameRecord); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", show(f), err, d)
		}
	}
	enough := errors.New("enough")
	n := 0
	if err := e.log.EachRecord(t.Context(), activity.Filter{}, func(*activity.Record) error { n++; return enough }); err != enough || n != 1 {
		t.Errorf("%d records, %v", n, err)
	}
}
