//go:build unix

package store

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/activitytest"
	"mcpproxy/internal/testutil/pgtest"
)

// BenchmarkPostgresMillion measures a million records from 90 days in PostgreSQL: the write rate, the first page of
// every filter with its exact total, and summaries. Run it alone, with -benchtime 50x, because p95 is computed over the
// runs.
func BenchmarkPostgresMillion(b *testing.B) {
	const records = 1_000_000
	dir := b.TempDir()
	db, err := OpenPostgres(pgtest.StartServer(b, "shared_buffers=512MB", "max_wal_size=4GB").CreateDatabase(b), dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := activitytest.NewClock(begun)
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), MaxSpool: 8 << 30, Now: clock.Now}, db)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			b.Error(err)
		}
		db.Close()
	})
	list := func(f activity.Filter) activity.RecordPage {
		p, err := l.List(b.Context(), f)
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	list(activity.Filter{Limit: 1})
	began, used := time.Now(), processTime()
	for i := range records {
		clock.Set(begun.Add(time.Duration(i) * (90 * 24 * time.Hour / records)))
		r := mixedRecord(i)
		r.DurationMS, r.OwnUS = int64(i%400), int64(60+i%300)
		if err := l.Append(r); err != nil {
			b.Fatal(err)
		}
	}
	first := list(activity.Filter{Limit: 1})
	took := time.Since(began)
	b.Logf("%d records in %v: %.0f/s, %v of MCPProxy's CPU time", records, took.Round(time.Millisecond), records/took.Seconds(), (processTime() - used).Round(time.Millisecond))
	began = time.Now()
	if err := repeatWhileMore(b.Context(), db.indexTextOfNextChunk); err != nil {
		b.Fatal(err)
	}
	b.Logf("text index in %v", time.Since(began).Round(time.Millisecond))
	run := func(name string, fn func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			var all []time.Duration
			for range b.N {
				began := time.Now()
				fn(b)
				all = append(all, time.Since(began))
			}
			slices.Sort(all)
			b.ReportMetric(float64(all[(len(all)*95+99)/100-1].Microseconds())/1e3, "p95-ms")
		})
	}
	for _, f := range millionFilters(first.Records[0].Timestamp) {
		run(f.name, func(b *testing.B) { list(f.filter) })
	}
	run("get", func(b *testing.B) {
		if _, err := l.Get(b.Context(), first.Records[0].ID[:25]); err != nil {
			b.Fatal(err)
		}
	})
	one := activity.Filter{Servers: []string{"server-7"}, IntentTypes: []string{"write"}}
	for _, s := range []struct {
		name   string
		days   int
		filter activity.Filter
		group  activity.GroupBy
	}{
		{"summary 24 h", 1, activity.Filter{}, activity.ByTool}, {"summary 90 days", 90, activity.Filter{}, ""}, {"summary 90 days by tool", 90, activity.Filter{}, activity.ByTool},
		{"summary 90 days filtered", 90, one, activity.ByServer},
	} {
		run(s.name, func(b *testing.B) {
			s.filter.Since, s.filter.Until = clock.Now().AddDate(0, 0, -s.days), clock.Now().Add(time.Second)
			if _, err := l.Summary(b.Context(), activity.SummaryQuery{Filter: s.filter, Step: 24 * time.Hour, Group: s.group, Most: 2_000_000}); err != nil {
				b.Fatal(err)
			}
		})
	}
	run("sessions of 24 h", func(b *testing.B) {
		if _, err := l.Sessions(b.Context(), activity.SessionQuery{Since: clock.Now().AddDate(0, 0, -1), Until: clock.Now().Add(time.Hour), Limit: 50, Most: 2_000_000}); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("verify", func(b *testing.B) {
		if v, err := l.Verify(b.Context()); err != nil || !v.OK || v.Records != records {
			b.Fatalf("%+v, %v, %v", v, v.FirstBreak, err)
		}
	})
}
