package storetest

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
)

// selects reports whether a filter selects a record: the meaning of a filter, in
// its plainest form. Search is for one plain word here.
func selects(f activity.Filter, r activity.Record) bool {
	intent := activity.Intent{}
	if r.Metadata.Intent != nil {
		intent = *r.Metadata.Intent
	}
	one := func(want, have string) bool { return want == "" || want == have }
	text := strings.ToLower(string(r.Arguments) + " " + string(r.Response) + " " + r.ErrorMessage + " " + intent.Reason)
	words := strings.FieldsFunc(text, func(c rune) bool { return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9') })
	return anyOf(f.Types, r.Type) && anyOf(f.Statuses, r.Status) && anyOf(f.Servers, r.ServerName) &&
		anyOf(f.Tools, r.ToolName) && anyOf(f.IntentTypes, intent.OperationType) &&
		anyOf(f.Sensitivities, intent.DataSensitivity) && anyOf(f.Actors, r.Actor) && anyOf(f.Clients, r.ClientName) &&
		one(f.SessionID, r.SessionID) && one(f.RequestID, r.RequestID) &&
		(f.Since.IsZero() || !r.Timestamp.Before(f.Since)) && (f.Until.IsZero() || r.Timestamp.Before(f.Until)) &&
		(f.Search == "" || slices.Contains(words, strings.ToLower(f.Search)))
}

func anyOf[T comparable](want []T, have T) bool { return len(want) == 0 || slices.Contains(want, have) }

// expected returns what a filter selects of records, which are in their order.
func expected(f activity.Filter, records []activity.Record) []activity.Record {
	var out []activity.Record
	for _, r := range slices.Backward(records) {
		if selects(f, r) {
			out = append(out, r)
		}
	}
	return out
}

// check compares an answer with what is expected: the total and the first page.
func check(e *env, f activity.Filter, records []activity.Record) {
	e.t.Helper()
	want := expected(f, records)
	total := int64(len(want))
	got := e.list(f)
	if limit := f.BoundedLimit(); len(want) > limit {
		want = want[:limit]
	}
	if got.Total != total {
		e.t.Errorf("%s: total %d, want %d", show(f), got.Total, total)
	}
	if d := cmp.Diff(want, got.Records, sameRecord); d != "" {
		e.t.Errorf("%s: (-want +got)\n%s", show(f), d)
	}
}

// sameRecord compares records by what they say: JSON without its white space.
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

func show(f activity.Filter) string { return fmt.Sprintf("%+v", f) }

// The values that random records and filters have: few, so that they meet.
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

// draw makes a source of random choices of a seed.
type draw struct{ t *rapid.T }

func pick[T any](d draw, from []T) T { return rapid.SampledFrom(from).Draw(d.t, "pick") }

func (d draw) record() activity.Record {
	r := activity.Record{
		Type: pick(d, types), ServerName: pick(d, servers), ToolName: pick(d, toolNames),
		SessionID: pick(d, sessions), RequestID: pick(d, requests), Actor: pick(d, actors), ClientName: pick(d, clients),
		Arguments: []byte(`{"q":"` + pick(d, searches) + `"}`),
	}
	if in := pick(d, intents); in != "" {
		r.Metadata.Intent = &activity.Intent{OperationType: in, DataSensitivity: pick(d, sensitivities), Reason: pick(d, searches)}
	}
	return r
}

// some returns up to two values, mostly none.
func some[T any](d draw, from []T) []T {
	n := pick(d, []int{0, 0, 0, 1, 1, 2})
	out := []T{}
	for range n {
		out = append(out, pick(d, from))
	}
	return out
}

func (d draw) filter(from, to time.Time) activity.Filter {
	f := activity.Filter{
		Types: some(d, types), Statuses: some(d, statuses), Servers: some(d, servers[1:]), Tools: some(d, toolNames[1:]),
		IntentTypes: some(d, intents[1:]), Sensitivities: some(d, sensitivities[1:]), Actors: some(d, actors[1:]), Clients: some(d, clients[1:]),
		SessionID: pick(d, append(sessions, "", "", "")), RequestID: pick(d, append(requests, "", "", "", "", "", "")),
		Limit: pick(d, []int{0, 1, 7, 1000}),
	}
	span := int64(to.Sub(from))
	at := func() time.Time { return from.Add(time.Duration(rapid.Int64Range(-10, span+10).Draw(d.t, "time"))) }
	switch pick(d, []int{0, 0, 1, 2, 3}) {
	case 1:
		f.Since = at()
	case 2:
		f.Until = at()
	case 3:
		f.Since, f.Until = at(), at()
	}
	if pick(d, []int{0, 0, 0, 1}) == 1 {
		f.Search = pick(d, searches)
	}
	return f
}

// testRandomFilters compares the store with the model, over records in every
// place where a store may keep them.
func testRandomFilters(t *testing.T, open Opener) {
	e := start(t, open)
	var records []activity.Record
	rounds := 0
	from := e.clock.Now()
	run := func(rt *rapid.T) {
		d := draw{rt}
		if rounds++; rounds <= 12 {
			records = append(records, e.fill(d, open.Volume(300, 100))...)
		}
		if rounds == 6 {
			e.down()
			e.up()
			for i := range records {
				if records[i].Status == activity.Pending {
					records[i].Status = activity.Interrupted
					records[i].ErrorMessage = "MCPProxy ended before the answer came."
				}
			}
		}
		for range 4 {
			check(e, d.filter(from, e.clock.Now()), records)
		}
	}
	// The examples of one seed: the store grows with them.
	gen := rapid.Custom(func(rt *rapid.T) bool { run(rt); return true })
	for i := 0; i < open.Volume(40, 20) && !t.Failed(); i++ {
		gen.Example(i)
	}
}

// fill makes n random records, some of them open, and returns them as they
// must come back.
func (e *env) fill(d draw, n int) []activity.Record {
	var out []activity.Record
	for range n {
		e.clock.Advance(time.Duration(rapid.Int64Range(-2000, 100_000).Draw(d.t, "wait")) * time.Microsecond)
		r := d.record()
		switch s := pick(d, statuses); s {
		case activity.Blocked:
			r.Status = s
			r = e.put(r)
		case activity.Pending:
			r = e.begin(r)
		default:
			r = e.begin(r)
			r.Response = []byte(`{"r":"` + pick(d, searches) + `"}`)
			r.Status, r.DurationMS = s, pick(d, durations)
			if s == activity.Failed {
				r.Metadata.ErrorCode = pick(d, errorCodes)
			}
			r.OwnUS = pick(d, durations)
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
