package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

func testFilters(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var records []activity.Record
	for i := range severalChunks() {
		e.clock.Advance(time.Second)
		r := activity.Record{
			Type: types[i%2], ServerName: servers[i%5], ToolName: toolNames[i%3], SessionID: fmt.Sprint("session ", i%40),
			RequestID: fmt.Sprint(i), Actor: actors[i%4], ClientName: clients[i%3],
			Metadata: activity.Metadata{Intent: &activity.Intent{OperationType: intents[i%4], DataSensitivity: sensitivities[i%3]}},
		}
		switch i % 7 {
		case 0:
			r.Status = activity.Blocked
			r = e.appendRecord(r)
		case 1:
			r = e.beginRecord(r)
		default:
			r = e.beginRecord(r)
			r.Status = statuses[i%2]
			r.DurationMS = 1
			e.endRecord(r.ID, r.Status)
		}
		records = append(records, r)
	}
	begun := records[0].Timestamp
	for _, f := range []activity.Filter{
		{},
		{Limit: 1000},
		{Limit: 5000}, // more than the maximum
		{Limit: -1},
		{Types: []activity.Type{activity.PolicyDecision}},
		{Types: []activity.Type{activity.PolicyDecision, activity.ToolCall}},
		{Statuses: []activity.Status{activity.Pending}},
		{Statuses: []activity.Status{activity.Failed, activity.Blocked}},
		{Servers: []string{"github"}},
		{Servers: []string{"github", "weather", "nowhere"}},
		{Servers: []string{"Github"}},
		{Tools: []string{"create_issue"}},
		{SessionID: "session 17"},
		{SessionID: "session"},
		{RequestID: "1234"},
		{RequestID: "99999"},
		{IntentTypes: []string{"write"}},
		{IntentTypes: []string{"write", "destructive"}},
		{Sensitivities: []string{"private"}},
		{Actors: []string{"token:ci"}},
		{Clients: []string{"cursor"}},
		{Clients: []string{"cursor", "claude-code"}, Actors: []string{"admin"}},
		{Clients: []string{"Cursor"}},
		{Servers: []string{"notes"}, IntentTypes: []string{"destructive"}, Statuses: []activity.Status{activity.Success}},
		{Since: begun.Add(100 * time.Second)},
		{Until: begun.Add(100 * time.Second)},
		{Since: begun.Add(1000 * time.Second), Until: begun.Add(1010 * time.Second)},
		{Since: begun.Add(1000*time.Second + 1), Until: begun.Add(1010*time.Second + 1)},
		{Since: begun.Add(-time.Hour), Until: begun.Add(24 * time.Hour)},
		{Since: begun.Add(time.Second), Until: begun.Add(time.Second)},
		{Since: begun.Add(time.Hour), Until: begun},
		{Since: begun.Add(500 * time.Second), Servers: []string{"files"}, Actors: []string{"admin"}},
	} {
		checkList(e, f, records)
	}
}

// testClockJumps sets the clock forward and back. Records stay in the order of the log. The time filter uses the
// recorded times.
func testClockJumps(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	begun := e.clock.Now()
	var records []activity.Record
	for _, jump := range []time.Duration{0, -time.Hour, 24 * time.Hour, -48 * time.Hour, 26 * time.Hour} {
		e.clock.Advance(jump)
		for range 900 {
			e.clock.Advance(time.Millisecond)
			records = append(records, e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success}))
		}
	}
	filters := []activity.Filter{
		{},
		{Since: begun},
		{Until: begun},
		{Since: begun, Until: begun.Add(time.Second / 2)},
		{Since: begun.Add(-time.Hour), Until: begun},
		{Since: begun.Add(24 * time.Hour)},
		{Until: begun.Add(-24 * time.Hour)},
	}
	for _, i := range []int{0, 899, 900, 1799, 2699, 3599} { // the newest and oldest records of chunks
		filters = append(filters, activity.Filter{Since: records[i].Timestamp}, activity.Filter{Until: records[i].Timestamp})
	}
	for _, f := range filters {
		checkList(e, f, records)
	}
}

func testPages(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var want []string
	for i := range severalChunks() {
		r := e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success, ServerName: servers[i%2]})
		if i%2 == 1 {
			want = append(want, r.ID)
		}
	}
	slices.Reverse(want)
	for _, limit := range []int{1000, 333} {
		f := activity.Filter{Servers: []string{"github"}, Limit: limit}
		var got []string
		for {
			p := e.listPage(f)
			if p.Total != int64(len(want)) {
				t.Fatalf("total = %d, want %d", p.Total, len(want))
			}
			got = append(got, recordIDs(p.Records)...)
			if f.Cursor = p.NextCursor; f.Cursor == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d gave %d records, want %d", limit, len(got), len(want))
		}
	}
	for _, offset := range []int{0, 1, 1700, len(want) - 1, len(want), len(want) + 5} {
		p := e.listPage(activity.Filter{Servers: []string{"github"}, Limit: 10, Offset: offset})
		from := min(offset, len(want))
		if !slices.Equal(recordIDs(p.Records), want[from:min(from+10, len(want))]) {
			t.Errorf("offset %d gave the records %v", offset, recordIDs(p.Records))
		}
		if (p.NextCursor == "") != (from+10 >= len(want)) {
			t.Errorf("offset %d gave the cursor %q", offset, p.NextCursor)
		}
	}
}

// testPagesUnderLoad reads pages while new records are written.
func testPagesUnderLoad(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var before []string
	for range severalChunks() {
		before = append(before, e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success}).ID)
	}
	slices.Reverse(before)
	var got []string
	for f := (activity.Filter{Limit: 173}); ; {
		var wg sync.WaitGroup
		for range 3 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 30 {
					if err := e.log.Append(&activity.Record{Type: activity.System, Status: activity.Success}); err != nil {
						t.Error(err)
					}
				}
			}()
		}
		p := e.listPage(f)
		wg.Wait()
		got = append(got, recordIDs(p.Records)...)
		if f.Cursor = p.NextCursor; f.Cursor == "" {
			break
		}
	}
	if len(got) < len(before) || !slices.Equal(got[len(got)-len(before):], before) {
		t.Errorf("got %d records, want the %d that were stored before", len(got), len(before))
	}
	if !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Error("records are out of order or repeated")
	}
}

func testCursor(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	e.appendRecord(activity.Record{Type: activity.System})
	for _, cursor := range []string{"x", "0", "AAAA", "!!", "YQ", "YYCAgICAgICAgIAB", "'; DROP TABLE activity"} {
		_, err := e.log.List(t.Context(), activity.Filter{Cursor: cursor})
		var p *problem.Problem
		if !errors.As(err, &p) || p.Code != problem.InvalidParameter || p.Detail("parameter") != "cursor" || p.Detail("value") != cursor {
			t.Errorf("cursor %q gave %v", cursor, err)
		}
	}
}

func testGet(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var records []activity.Record
	for range severalChunks() {
		e.clock.Advance(100 * time.Millisecond)
		records = append(records, e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success, ToolName: "x"}))
	}
	for _, i := range []int{0, 1, 1023, 1024, 2000, severalChunks() - 1} {
		id := records[i].ID
		for _, prefix := range []string{id, id[:25], id[:14]} {
			got, err := e.log.Get(t.Context(), prefix)
			if err != nil || got.ID != id || got.ToolName != "x" {
				t.Errorf("%s gave %s, %v", prefix, got.ID, err)
			}
		}
	}
	for prefix, want := range map[string]problem.Code{
		records[5].ID[:3]: problem.Ambiguous, "0": problem.Ambiguous, "7": problem.NotFound,
		"00000000000000000000000000": problem.NotFound, records[7].ID[:25] + "!": problem.NotFound,
	} {
		_, err := e.log.Get(t.Context(), prefix)
		var p *problem.Problem
		if !errors.As(err, &p) || p.Code != want {
			t.Errorf("%s gave %v, want %s", prefix, err, want)
		}
	}
}

func testRestart(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var records []activity.Record
	for round := range 4 {
		for i := range volume.FullOrQuick(1500, 500) {
			r := e.beginRecord(activity.Record{Type: activity.ToolCall, ServerName: servers[i%5]})
			r.Status, r.DurationMS = activity.Success, 1
			e.endRecord(r.ID, r.Status)
			records = append(records, r)
		}
		if round == 2 {
			e.tidyFully(activity.Retention{})
		}
		e.closeAll()
		e.openAll()
		checkList(e, activity.Filter{}, records)
		checkList(e, activity.Filter{Servers: []string{"notes"}}, records)
	}
}

// testLateEnds ends records long after their beginnings were stored.
func testLateEnds(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var records []activity.Record
	for i := range severalChunks() {
		records = append(records, e.beginRecord(activity.Record{Type: activity.ToolCall, RequestID: fmt.Sprint(i)}))
	}
	checkList(e, activity.Filter{Statuses: []activity.Status{activity.Pending}}, records)
	for i := 0; i < severalChunks(); i += 3 {
		records[i].Status, records[i].DurationMS = activity.Failed, 1
		e.endRecord(records[i].ID, activity.Failed)
	}
	for _, f := range []activity.Filter{
		{},
		{Statuses: []activity.Status{activity.Pending}},
		{Statuses: []activity.Status{activity.Failed}},
		{RequestID: "3"},
	} {
		checkList(e, f, records)
	}
}

func testInterruptedCalls(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var running []string
	for range severalChunks() {
		running = append(running, e.beginRecord(activity.Record{Type: activity.ToolCall}).ID)
	}
	e.listPage(activity.Filter{Limit: 1})
	e.closeAll()
	e.openAll()
	now := e.beginRecord(activity.Record{Type: activity.ToolCall})
	interrupted := e.listPage(activity.Filter{Statuses: []activity.Status{activity.Interrupted}, Limit: 1})
	pending := e.listPage(activity.Filter{Statuses: []activity.Status{activity.Pending}})
	if interrupted.Total != int64(len(running)) || pending.Total != 1 || pending.Records[0].ID != now.ID {
		t.Errorf("%d records are interrupted and %d are pending", interrupted.Total, pending.Total)
	}
}

// testLostBeginnings stores the end of a record whose beginning was pruned.
func testLostBeginnings(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	for range 100 {
		e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success})
	}
	r := e.beginRecord(activity.Record{Type: activity.ToolCall, ServerName: "notes"})
	for range 1000 {
		e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success})
	}
	e.tidyFully(activity.Retention{MaxRecords: 10}) // prunes the beginning
	e.endRecord(r.ID, activity.Success)
	got, err := e.log.Get(t.Context(), r.ID)
	if err != nil || got.Status != activity.Success || got.Metadata.Detail == "" {
		t.Errorf("got %+v, %v", got, err)
	}
	if p := e.listPage(activity.Filter{Statuses: []activity.Status{activity.Success}}); p.Total != 11 {
		t.Errorf("got %d records, want 11", p.Total)
	}
	last := e.appendRecord(activity.Record{Type: activity.System})
	if got, err := e.log.Get(t.Context(), last.ID); err != nil || got.ID != last.ID {
		t.Errorf("got %+v, %v", got, err)
	}
}

func testRetention(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var records []activity.Record
	add := func(n int) {
		for i := range n {
			e.clock.Advance(time.Minute)
			records = append(records, e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success,
				ServerName: servers[i%3], ErrorMessage: searches[i%4]}))
		}
	}
	keep := func(what string, r activity.Retention, want int) {
		t.Helper()
		e.tidyFully(r)
		records = records[len(records)-want:]
		for _, f := range []activity.Filter{{}, {Servers: []string{"github"}}, {Search: "banana"}, {Since: records[want/2].Timestamp}} {
			checkList(e, f, records)
		}
		if p := e.listPage(activity.Filter{}); p.Total != int64(want) {
			t.Errorf("%s: %d records remain, want %d", what, p.Total, want)
		}
	}
	add(severalChunks())
	keep("nothing to do", activity.Retention{}, severalChunks())
	keep("enough room", activity.Retention{Days: 90, MaxRecords: int64(severalChunks()), MaxBytes: 1 << 30}, severalChunks())
	keep("records", activity.Retention{MaxRecords: 2000}, 2000)
	keep("days", activity.Retention{Days: 1}, 24*60+1)
	e.closeAll()
	e.openAll()
	keep("after a restart", activity.Retention{MaxRecords: 1000}, 1000)
	add(volume.FullOrQuick(3000, 1200))
	keep("records again", activity.Retention{MaxRecords: 1500}, 1500)
	before := int64(len(records))
	e.clock.Advance(10 * 365 * 24 * time.Hour) // the clock is wrong
	e.tidyFully(activity.Retention{Days: 1})
	if p := e.listPage(activity.Filter{}); p.Total < before/2 || p.Total == before {
		t.Errorf("one Tidy left %d of %d records, want at least half of them, but not all", p.Total, before)
	}
	e.tidyFully(activity.Retention{MaxBytes: 1})
	if p := e.listPage(activity.Filter{}); p.Total != 0 || len(p.Records) != 0 {
		t.Errorf("%d records remain with a limit of one byte", p.Total)
	}
	records = nil
	e.closeAll()
	e.openAll()
	add(5)
	checkList(e, activity.Filter{}, records)
}

// testRetentionWhileCallsRun prunes the beginnings of calls that are still running.
func testRetentionWhileCallsRun(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	var open2 []activity.Record
	for range 200 {
		open2 = append(open2, e.beginRecord(activity.Record{Type: activity.ToolCall}))
		e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success})
	}
	e.tidyFully(activity.Retention{MaxRecords: 300})
	for _, r := range open2 {
		e.endRecord(r.ID, activity.Success)
	}
	p := e.listPage(activity.Filter{Types: []activity.Type{activity.ToolCall}, Statuses: []activity.Status{activity.Success}, Limit: 1000})
	if p.Total != int64(len(open2)) {
		t.Errorf("%d of %d outcomes are stored", p.Total, len(open2))
	}
}

// testRetentionOfSize stores large records, which count against the size limit, and a large result, which does not.
func testRetentionOfSize(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	const limit = 8 << 20
	err := e.store.PutResult(t.Context(), store.StoredResult{
		Handle: "h", Body: []byte(`"` + strings.Repeat("x", limit) + `"`), Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`"` + strings.Repeat("some text ", 1000) + `"`)
	for range 400 {
		e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success, Arguments: body})
	}
	e.tidyFully(activity.Retention{MaxBytes: limit})
	if p := e.listPage(activity.Filter{}); p.Total != 400 {
		t.Errorf("%d of 400 records remain, but all are within the limit", p.Total)
	}
	for range 2000 {
		e.appendRecord(activity.Record{Type: activity.System, Status: activity.Success, Arguments: body})
	}
	e.tidyFully(activity.Retention{MaxBytes: limit})
	if p := e.listPage(activity.Filter{}); p.Total < 200 || p.Total > 1000 {
		t.Errorf("%d records of 10 KB remain with a limit of %d MB", p.Total, limit>>20)
	}
}

func testSearch(t *testing.T, open storeOpener) {
	e := startEnv(t, open)
	add := func(r activity.Record) string { return e.appendRecord(r).ID }
	names := map[string]string{
		add(activity.Record{Type: activity.System, Arguments: []byte(`{"title":"It does not start","repo":"octo-org/hello-world"}`)}):             "issue",
		add(activity.Record{Type: activity.System, Arguments: []byte(`{"id":"needle-7","n":70}`)}):                                                "needle-7",
		add(activity.Record{Type: activity.System, Arguments: []byte(`{"id":"needle-70","n":7}`)}):                                                "needle-70",
		add(activity.Record{Type: activity.System, Response: []byte(`{"text":"first\nsecond \"quoted\" caf\u00e9 Übung 日志文件"}`)}):                 "escapes",
		add(activity.Record{Type: activity.System, Response: []byte(`{"text":"{\"inner\":\"alpha\\nbeta\",\"path\":\"C:\\\\new\"}"}`)}):           "inner",
		add(activity.Record{Type: activity.System, Metadata: activity.Metadata{Intent: &activity.Intent{Reason: "Because the USER asked"}}}):      "reason",
		add(activity.Record{Type: activity.System, ErrorMessage: "file src/main.go:12 not found; mail a.b@example.com"}):                          "error",
		add(activity.Record{Type: activity.System, Metadata: activity.Metadata{Detail: "tools listed"}, ServerName: "github"}):                    "detail",
		add(activity.Record{Type: activity.System, Arguments: []byte(`{"uuid":"123e4567-e89b-12d3-a456-426614174000","at":"2026-01-15T10:30"}`)}): "uuid",
	}
	tests := map[string][]string{
		"start": {"issue"}, "START": {"issue"}, "star": nil, "star*": {"issue"}, "does not start": {"issue"}, "not": {"issue", "error"},
		"not start missing": nil, "hello-world": {"issue"}, "octo-org/hello-world": {"issue"}, "octo": {"issue"}, "org-octo": nil,
		"octo-org hello": {"issue"}, "title": {"issue"},
		"needle-7": {"needle-7"}, "needle-70": {"needle-70"}, "needle": {"needle-7", "needle-70"}, "needle 7": {"needle-7", "needle-70"},
		"needle-7*": {"needle-7", "needle-70"},
		"second":    {"escapes"}, "nsecond": nil, "quoted": {"escapes"}, "café": {"escapes"}, "CAFÉ": {"escapes"}, "übung": {"escapes"},
		"日志": {"escapes"}, "文件": {"escapes"}, "志日": nil, "件": {"escapes"},
		"alpha": {"inner"}, "beta": {"inner"}, "inner": {"inner"}, `c:\new`: {"inner"},
		"user": {"reason"}, "because the": {"reason"}, "src/main.go:12": {"error"}, "main.go": {"error"}, "a.b@example.com": {"error"},
		"example.com": {"error"}, "tools": {"detail"}, "github": nil, "123e4567-e89b-12d3-a456-426614174000": {"uuid"}, "2026-01-15": nil, "2026-01-15*": {"uuid"},
		"!?": nil, "😀": nil, "*": nil,
		"": {"issue", "needle-7", "needle-70", "escapes", "inner", "reason", "error", "detail", "uuid"},
	}
	look := func(when string) {
		for search, want := range tests {
			var got []string
			for _, r := range e.listPage(activity.Filter{Search: search, Types: []activity.Type{activity.System}}).Records {
				got = append(got, names[r.ID])
			}
			slices.Sort(got)
			want = slices.Sorted(slices.Values(want))
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q gave %v, want %v", when, search, got, want)
			}
		}
	}
	look("fresh")
	for range severalChunks() {
		e.appendRecord(activity.Record{Type: activity.ToolCall, Arguments: []byte(`{"needle":"7 start"}`)})
	}
	look("after newer records") // now the records are in the text index
	if p := e.listPage(activity.Filter{Search: "needle 7 start"}); p.Total != int64(severalChunks()) {
		t.Errorf("the search found %d of the later records, want all", p.Total)
	}
	e.closeAll()
	e.openAll()
	look("after a restart")
}
