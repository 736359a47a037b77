//go:build unix

package store_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/pgtest"
)

// breakableLog is a log with a database server that the test can break.
type breakableLog struct {
	t      *testing.T
	server *pgtest.Server
	log    *activity.Log
	added  int64
}

func startBreakable(t *testing.T) *breakableLog {
	server, dir := pgtest.StartServer(t), t.TempDir()
	db, err := store.OpenPatient(server.CreateDatabase(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool")}, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	b := &breakableLog{t: t, server: server, log: l}
	b.addRecord()
	b.checkAllListed("before anything breaks")
	return b
}

func (b *breakableLog) runSQL(statements string) {
	b.t.Helper()
	if out, err := b.server.Query(statements); err != nil {
		b.t.Fatalf("%v: %s", err, out)
	}
}

func (b *breakableLog) addRecord() {
	b.t.Helper()
	if err := b.log.Append(&activity.Record{Type: activity.System, Status: activity.Success}); err != nil {
		b.t.Error(err)
	}
	b.added++
}

// checkAllListed fails unless all added records are listed.
func (b *breakableLog) checkAllListed(when string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), store.Patience)
	defer cancel()
	p, err := b.log.List(ctx, activity.Filter{Limit: 1})
	if err != nil || p.Total != b.added {
		b.t.Errorf("%s: got %d of %d records, %v", when, p.Total, b.added, err)
	}
}

const endConnections = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'd1'"

// TestAQueryWaitsForConnections closes all connections on the server, which accepts new ones immediately.
func TestAQueryWaitsForConnections(t *testing.T) {
	t.Parallel()
	b := startBreakable(t)
	for range 3 {
		b.runSQL(endConnections)
		b.checkAllListed("the connections have ended")
		b.runSQL(endConnections)
		b.addRecord()
		b.checkAllListed("the connections have ended before something was added")
	}
}

// TestAQueryWaitsForTheServer restarts the server while a query waits for it.
func TestAQueryWaitsForTheServer(t *testing.T) {
	t.Parallel()
	b := startBreakable(t)
	b.server.Kill()
	b.addRecord()
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		b.checkAllListed("the server is started again")
	}()
	if err := b.server.StartProcess(); err != nil {
		t.Fatal(err)
	}
	<-listed
}

// TestQueriesShareConnections limits the server to the connections that are open.
func TestQueriesShareConnections(t *testing.T) {
	t.Parallel()
	b := startBreakable(t)
	b.runSQL("ALTER ROLE d1 CONNECTION LIMIT 3") // one writes, one listens, and one reads
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				b.checkAllListed("with one connection that reads")
			}
		})
	}
	all.Wait()
}

// TestHealthOfAStoppedServer checks that a stopped server is reported even if nothing is written. The projector would
// report it too, but only after store.Patience.
func TestHealthOfAStoppedServer(t *testing.T) {
	t.Parallel()
	b := startBreakable(t)
	if h := b.log.Health(); h.Degraded {
		t.Fatalf("the log is degraded before the server stops: %s", h.Message)
	}
	b.server.Kill()
	for until := time.Now().Add(store.Patience / 2); !strings.Contains(b.log.Health().Message, "the database is not available"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the log does not report the stopped server: %+v", b.log.Health())
		}
	}
}
