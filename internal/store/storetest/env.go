package storetest

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/store/activity/activitytest"
)

// Opener is what the suite is run with.
type Opener struct {
	// Open opens the store in a folder of the test; the same folder has the same store again.
	Open func(t *testing.T, dir string) Store
	// Volume returns how much of something a test does: all of it, or what is enough.
	Volume func(all, enough int) int
	// Serial skips a subtest of a single goroutine where that proves nothing.
	Serial func(t *testing.T)
}

// aBit is more records than any store keeps in one place.
func (o Opener) aBit() int { return o.Volume(3500, 2100) }

// Store is what the suite checks.
type Store interface {
	activity.Store
	approval.Store
	auth.TokenStore
	SaveTools(ctx context.Context, server string, raws []json.RawMessage) error
	LoadTools(ctx context.Context) (map[string][]json.RawMessage, error)
	ForgetTools(ctx context.Context, server string) error
	PutResult(ctx context.Context, r store.StoredResult) error
	GetResult(ctx context.Context, handle string) (store.StoredResult, error)
	// Asks are what people are asked about.
	Asks() *store.Asks
	Close() error
}

// env is a log over a store, both in a folder.
type env struct {
	t     *testing.T
	open  Opener
	dir   string
	clock *activitytest.Clock
	log   *activity.Log
	store Store
}

func start(t *testing.T, open Opener) *env {
	e := &env{t: t, open: open, dir: t.TempDir(), clock: activitytest.NewClock(time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC))}
	e.up()
	t.Cleanup(func() {
		if e.log != nil {
			e.down()
		}
	})
	return e
}

// up opens the log and the store.
func (e *env) up() {
	e.t.Helper()
	e.store = e.open.Open(e.t, e.dir)
	log, err := activity.Open(activity.Options{Dir: filepath.Join(e.dir, "spool"), Now: e.clock.Now}, e.store)
	if err != nil {
		e.t.Fatal(err)
	}
	e.log = log
}

func (e *env) down() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := e.log.Close(ctx); err != nil {
		e.t.Errorf("close the log: %v", err)
	}
	if err := e.store.Close(); err != nil {
		e.t.Errorf("close the store: %v", err)
	}
	e.log = nil
}

func (e *env) begin(r activity.Record) activity.Record {
	e.t.Helper()
	if err := e.log.Begin(&r); err != nil {
		e.t.Fatal(err)
	}
	return r
}

func (e *env) end(id string, s activity.Status) {
	e.t.Helper()
	if err := e.log.End(id, activity.Outcome{Status: s, Duration: time.Millisecond}); err != nil {
		e.t.Fatal(err)
	}
}

// put makes a complete record.
func (e *env) put(r activity.Record) activity.Record {
	e.t.Helper()
	if err := e.log.Append(&r); err != nil {
		e.t.Fatal(err)
	}
	return r
}

func (e *env) list(f activity.Filter) activity.RecordPage {
	e.t.Helper()
	p, err := e.log.List(e.t.Context(), f)
	if err != nil {
		e.t.Fatalf("list %+v: %v", f, err)
	}
	return p
}

// all lists everything, the oldest first.
func (e *env) all() (out []activity.Record) {
	e.t.Helper()
	for f := (activity.Filter{Limit: 1000}); ; {
		p := e.list(f)
		out = append(out, p.Records...)
		if f.Cursor = p.NextCursor; f.Cursor != "" {
			continue
		}
		if p.Incomplete || p.Total != int64(len(out)) {
			e.t.Fatalf("the pages have %d of %d records; incomplete: %v", len(out), p.Total, p.Incomplete)
		}
		slices.Reverse(out)
		return out
	}
}

// tidy tidies until there is nothing more to do.
func (e *env) tidy(keep activity.Retention) {
	e.t.Helper()
	e.list(activity.Filter{Limit: 1}) // everything is projected
	for {
		more, err := e.store.Tidy(e.t.Context(), e.clock.Now(), keep, true)
		if err != nil {
			e.t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

func ids(records []activity.Record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = r.ID
	}
	return out
}
