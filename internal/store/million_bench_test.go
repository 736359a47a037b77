package store

import (
	"fmt"
	"testing"
	"time"

	"mcpproxy/internal/store/activity"
)

// BenchmarkFirstPage reads the first page of every filter over a million records, with its exact total. Run it alone,
// because filling the database takes a minute.
func BenchmarkFirstPage(b *testing.B) {
	const records = 1_000_000
	l, db := openBench(b)
	began, used := time.Now(), processTime()
	for i := range records {
		if err := l.Append(mixedRecord(i)); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := l.List(b.Context(), activity.Filter{Limit: 1}); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d records in %v, %v of CPU time", records, time.Since(began).Round(time.Millisecond), (processTime() - used).Round(time.Millisecond))
	e, err := db.waitOpen(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	began, used = time.Now(), processTime()
	if err := repeatWhileMore(b.Context(), e.indexTextOfNextChunk); err != nil {
		b.Fatal(err)
	}
	var size int64
	err = e.reads.QueryRowContext(b.Context(), recordBytesQuery).Scan(&size)
	b.Logf("text index in %v, %v of CPU time; %d MB in the database (%v)",
		time.Since(began).Round(time.Millisecond), (processTime() - used).Round(time.Millisecond), size>>20, err)
	first, err := l.List(b.Context(), activity.Filter{Limit: 1})
	if err != nil {
		b.Fatal(err)
	}
	last := first.Records[0].Timestamp
	for _, f := range millionFilters(last) {
		b.Run(f.name, func(b *testing.B) {
			var p activity.RecordPage
			for range b.N {
				if p, err = l.List(b.Context(), f.filter); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(p.Total), "matches")
		})
	}
	b.Run("get", func(b *testing.B) {
		for range b.N {
			if _, err := l.Get(b.Context(), first.Records[0].ID[:25]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// namedFilter is a filter in the benchmarks, with its name.
type namedFilter struct {
	name   string
	filter activity.Filter
}

// millionFilters returns filters of all kinds. last is the time of the newest record.
func millionFilters(last time.Time) []namedFilter {
	return []namedFilter{
		{"none", activity.Filter{}},
		{"type", activity.Filter{Types: []activity.Type{activity.PolicyDecision}}},
		{"status", activity.Filter{Statuses: []activity.Status{activity.Failed}}},
		{"server", activity.Filter{Servers: []string{"server-7"}}},
		{"tool", activity.Filter{Tools: []string{"tool-333"}}},
		{"session", activity.Filter{SessionID: "session-4711"}},
		{"request", activity.Filter{RequestID: "123456"}},
		{"intent", activity.Filter{IntentTypes: []string{"destructive"}}},
		{"sensitivity", activity.Filter{Sensitivities: []string{"private"}}},
		{"actor", activity.Filter{Actors: []string{"token:3"}}},
		{"server+intent+status", activity.Filter{Servers: []string{"server-7"}, IntentTypes: []string{"write"}, Statuses: []activity.Status{activity.Success}}},
		{"time", activity.Filter{Since: last.Add(-2 * time.Second), Until: last.Add(-time.Second)}},
		{"search rare", activity.Filter{Search: "number-777777"}},
		{"search common", activity.Filter{Search: "does not start"}},
		{"search prefix rare", activity.Filter{Search: "number-7777*"}},
		{"search prefix of some", activity.Filter{Search: "number-7*"}},
		{"search prefix of all", activity.Filter{Search: "n*"}},
		{"search prefix of none", activity.Filter{Search: "x*"}},
		{"search+server", activity.Filter{Search: "hello-world", Servers: []string{"server-7"}}},
		{"no match", activity.Filter{Servers: []string{"nowhere"}}},
		{"limit 1000", activity.Filter{Limit: 1000}},
		{"offset 900000", activity.Filter{Offset: 900_000}},
	}
}

// BenchmarkWholeMillion runs the queries that read all of a million records from 90 days. Run it alone, because filling
// the database takes a minute.
func BenchmarkWholeMillion(b *testing.B) {
	const records = 1_000_000
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := begun
	l, db := openBenchAt(b, func() time.Time { return clock })
	for i := range records {
		clock = begun.Add(time.Duration(i) * (90 * 24 * time.Hour / records))
		r := mixedRecord(i)
		r.DurationMS, r.OwnUS = int64(i%400), int64(60+i%300)
		if err := l.Append(r); err != nil {
			b.Fatal(err)
		}
		if i%50_000 == 0 {
			if _, err := l.List(b.Context(), activity.Filter{Limit: 1}); err != nil {
				b.Fatal(err)
			}
		}
	}
	if _, err := l.List(b.Context(), activity.Filter{Limit: 1}); err != nil {
		b.Fatal(err)
	}
	if err := repeatWhileMore(b.Context(), db.engine.indexTextOfNextChunk); err != nil { // otherwise it would run during the benchmark
		b.Fatal(err)
	}
	one := activity.Filter{Servers: []string{"server-7"}, IntentTypes: []string{"write"}}
	for _, bb := range []struct {
		name   string
		days   int
		filter activity.Filter
		step   time.Duration
	}{
		{"24 h", 1, activity.Filter{}, 30 * time.Minute},
		{"24 h filtered", 1, one, 30 * time.Minute},
		{"90 days", 90, activity.Filter{}, 24 * time.Hour},
		{"90 days filtered", 90, one, 24 * time.Hour},
	} {
		for _, group := range []activity.GroupBy{"", activity.ByTool} {
			b.Run(bb.name+" "+string(group), func(b *testing.B) {
				f := bb.filter
				f.Since, f.Until = clock.AddDate(0, 0, -bb.days), clock.Add(time.Second)
				for range b.N {
					s, err := l.Summary(b.Context(), activity.SummaryQuery{Filter: f, Step: bb.step, Group: group, Most: 2_000_000})
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(s.Records), "records")
				}
			})
		}
	}
	b.Run("sessions of 24 h", func(b *testing.B) {
		for range b.N {
			if _, err := l.Sessions(b.Context(), activity.SessionQuery{Since: clock.AddDate(0, 0, -1), Limit: 50, Most: 2_000_000}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("each", func(b *testing.B) {
		for range b.N {
			if err := l.EachRecord(b.Context(), activity.Filter{}, func(*activity.Record) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		for range b.N {
			if v, err := l.Verify(b.Context()); err != nil || !v.OK || v.Records != records {
				b.Fatalf("%+v, %v, %v", v, v.FirstBreak, err)
			}
		}
	})
}

func mixedRecord(i int) *activity.Record {
	pick := func(from ...string) string { return from[i%len(from)] }
	return &activity.Record{
		Type:       activity.Type(pick("tool_call", "tool_call", "tool_call", "tool_call", "policy_decision")),
		Status:     activity.Status(pick("success", "success", "error")),
		ServerName: fmt.Sprintf("server-%d", i%20), ToolName: fmt.Sprintf("tool-%d", i%500),
		SessionID: fmt.Sprintf("session-%d", i%10_000), RequestID: fmt.Sprint(i), Actor: fmt.Sprintf("token:%d", i%7),
		Arguments: fmt.Appendf(nil, `{"owner":"octo-org","repo":"hello-world","title":"It does not start","n":"number-%d"}`, i),
		Response:  []byte(`{"content":[{"type":"text","text":"Created issue in octo-org/hello-world: https://example.com/octo-org/hello-world/issues"}]}`),
		Metadata: activity.Metadata{Intent: &activity.Intent{
			OperationType: pick("read", "write", "destructive"), DataSensitivity: pick("", "public", "private", "internal", "", ""),
			Reason: "The user asked to file what they found",
		}},
	}
}
