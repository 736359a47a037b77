package store_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// matchesFilter reports whether a filter selects a record. It is a simple reference implementation. It supports only
// searches for one plain word.
func matchesFilter(f activity.Filter, r activity.Record) bool {
	intent := activity.Intent{}
	if r.Metadata.Intent != nil {
		intent = *r.Metadata.Intent
	}
	one := func(want, have string) bool { return want == "" || want == have }
	text := strings.ToLower(string(r.Arguments) + " " + string(r.Response) + " " + r.ErrorMessage + " " + intent.Reason)
	words := strings.FieldsFunc(text, func(c rune) bool { return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9') })
	return isAnyOf(f.Types, r.Type) && isAnyOf(f.Statuses, r.Status) && isAnyOf(f.Servers, r.ServerName) &&
		isAnyOf(f.Tools, r.ToolName) && isAnyOf(f.IntentTypes, intent.OperationType) &&
		isAnyOf(f.Sensitivities, intent.DataSensitivity) && isAnyOf(f.Actors, r.Actor) && isAnyOf(f.Clients, r.ClientName) &&
		one(f.SessionID, r.SessionID) && one(f.RequestID, r.RequestID) &&
		(f.Since.IsZero() || !r.Timestamp.Before(f.Since)) && (f.Until.IsZero() || r.Timestamp.Before(f.Until)) &&
		(f.Search == "" || slices.Contains(words, strings.ToLower(f.Search)))
}

func isAnyOf[T comparable](want []T, have T) bool {
	return len(want) == 0 || slices.Contains(want, have)
}

// expectedRecords returns the records that a filter selects, newest first. records must be in the order of the log.
func expectedRecords(f activity.Filter, records []activity.Record) []activity.Record {
	var out []activity.Record
	for _, r := range slices.Backward(records) {
		if matchesFilter(f, r) {
			out = append(out, r)
		}
	}
	return out
}

// checkList compares a page with the expected total and the expected first page.
func checkList(e *testEnv, f activity.Filter, records []activity.Record) {
	e.t.Helper()
	want := expectedRecords(f, records)
	total := int64(len(want))
	got := e.listPage(f)
	if limit := f.BoundedLimit(); len(want) > limit {
		want = want[:limit]
	}
	if got.Total != total {
		e.t.Errorf("%s: total = %d, want %d", filterString(f), got.Total, total)
	}
	if d := cmp.Diff(want, got.Records, sameRecord); d != "" {
		e.t.Errorf("%s: (-want +got)\n%s", filterString(f), d)
	}
}

// sameRecord compares records by their contents.
var sameRecord = cmp.Options{
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) }),
	cmp.Comparer(func(a, b []string) bool { return slices.Equal(a, b) }),
	cmp.Transformer("list", func(in []activity.Record) []activity.Record {
		if len(in) == 0 {
			return nil
		}
		return in
	}),
}

func filterString(f activity.Filter) string { return fmt.Sprintf("%+v", f) }

// Random records and filters use few values, so that filters often match.
var (
	types         = []activity.Type{activity.ToolCall, activity.PolicyDecision, activity.System}
	statuses      = []activity.Status{activity.Success, activity.Failed, activity.Blocked, activity.Pending, activity.Held}
	servers       = []string{"", "github", "notes", "weather", "files"}
	toolNames     = []string{"", "create_issue", "read", "delete_repo", "list:all"}
	sessions      = []string{"", "s1", "s2", "s3"}
	requests      = []string{"", "1", "2", "3", "4", "5", "6"}
	intents       = []string{"", "read", "write", "destructive"}
	sensitivities = []string{"", "public", "private"}
	actors        = []string{"", "admin", "agent", "token:ci"}
	clients       = []string{"", "claude-code", "cursor"}
	searches      = []string{"apple", "banana", "cherry", "date"}
	errorCodes    = []string{"", "UPSTREAM_ERROR", "TIMEOUT", "INTERRUPTED"}
	durations     = []int64{0, 2, 255, 256, 300, 4096, 70_001}
)

// randomSource makes random choices from a seed.
type randomSource struct{ t *rapid.T }

func pickOne[T any](d randomSource, from []T) T { return rapid.SampledFrom(from).Draw(d.t, "pick") }

func (d randomSource) randomRecord() activity.Record {
	r := activity.Record{
		Type: pickOne(d, types), ServerName: pickOne(d, servers), ToolName: pickOne(d, toolNames),
		SessionID: pickOne(d, sessions), RequestID: pickOne(d, requests), Actor: pickOne(d, actors), ClientName: pickOne(d, clients),
		Arguments: []byte(`{"q":"` + pickOne(d, searches) + `"}`),
	}
	if in := pickOne(d, intents); in != "" {
		r.Metadata.Intent = &activity.Intent{OperationType: in, DataSensitivity: pickOne(d, sensitivities), Reason: pickOne(d, searches)}
	}
	return r
}

// pickUpToTwo returns up to two values, and most often none.
func pickUpToTwo[T any](d randomSource, from []T) []T {
	n := pickOne(d, []int{0, 0, 0, 1, 1, 2})
	out := []T{}
	for range n {
		out = append(out, pickOne(d, from))
	}
	return out
}

func (d randomSource) randomFilter(from, to time.Time) activity.Filter {
	f := activity.Filter{
		Types: pickUpToTwo(d, types), Statuses: pickUpToTwo(d, statuses), Servers: pickUpToTwo(d, servers[1:]), Tools: pickUpToTwo(d, toolNames[1:]),
		IntentTypes: pickUpToTwo(d, intents[1:]), Sensitivities: pickUpToTwo(d, sensitivities[1:]), Actors: pickUpToTwo(d, actors[1:]), Clients: pickUpToTwo(d, clients[1:]),
		SessionID: pickOne(d, append(sessions, "", "", "")), RequestID: pickOne(d, append(requests, "", "", "", "", "", "")),
		Limit: pickOne(d, []int{0, 1, 7, 1000}),
	}
	span := int64(to.Sub(from))
	at := func() time.Time { return from.Add(time.Duration(rapid.Int64Range(-10, span+10).Draw(d.t, "time"))) }
	switch pickOne(d, []int{0, 0, 1, 2, 3}) {
	case 1:
		f.Since = at()
	case 2:
		f.Until = at()
	case 3:
		f.Since, f.Until = at(), at()
	}
	if pickOne(d, []int{0, 0, 0, 1}) == 1 {
		f.Search = pickOne(d, searches)
	}
	return f
}

// testRandomFilters compares the store with matchesFilter for records in each part of a store: tail, chunks, text
// index.
func testRandomFilters(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var records []activity.Record
	rounds := 0
	from := e.clock.Now()
	run := func(rt *rapid.T) {
		d := randomSource{rt}
		if rounds++; rounds <= 12 {
			records = append(records, e.addRandomRecords(d, volume.FullOrQuick(300, 100))...)
		}
		if rounds == 6 {
			e.closeAll()
			e.openAll()
			for i := range records {
				if records[i].Status == activity.Pending {
					records[i].Status = activity.Interrupted
					records[i].ErrorMessage = "MCPProxy stopped before the response arrived."
				}
			}
		}
		for range 4 {
			checkList(e, d.randomFilter(from, e.clock.Now()), records)
		}
	}
	// All examples of a seed use the same store, and each adds records to it.
	gen := rapid.Custom(func(rt *rapid.T) bool { run(rt); return true })
	for i := 0; i < volume.FullOrQuick(40, 20) && !t.Failed(); i++ {
		gen.Example(i)
	}
}

// addRandomRecords writes n random records, some of them unfinished. It returns them as the store must list them.
func (e *testEnv) addRandomRecords(d randomSource, n int) []activity.Record {
	var out []activity.Record
	for range n {
		e.clock.Advance(time.Duration(rapid.Int64Range(-2000, 100_000).Draw(d.t, "wait")) * time.Microsecond)
		r := d.randomRecord()
		switch s := pickOne(d, statuses); s {
		case activity.Blocked:
			r.Status = s
			r = e.appendRecord(r)
		case activity.Pending:
			r = e.beginRecord(r)
		default:
			r = e.beginRecord(r)
			r.Response = []byte(`{"r":"` + pickOne(d, searches) + `"}`)
			r.Status, r.DurationMS = s, pickOne(d, durations)
			if s == activity.Failed {
				r.Metadata.ErrorCode = pickOne(d, errorCodes)
			}
			r.OwnUS = pickOne(d, durations)
			o := activity.Outcome{Status: s, Response: r.Response, ErrorCode: r.Metadata.ErrorCode,
				Duration: time.Duration(r.DurationMS) * time.Millisecond, Own: time.Duration(r.OwnUS) * time.Microsecond}
			if err := e.log.End(r.ID, o); err != nil {
				e.t.Fatal(err)
			}
		}
		out = append(out, r)
	}
	return out
}
