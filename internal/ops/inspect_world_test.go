package ops

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/activitytest"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/gatetest"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/process"
)

// inspectorWorld is a test environment for an Inspector. It has an in-memory catalog, a real activity log with a real
// database, and server logs in a directory.
type inspectorWorld struct {
	*catalogtest.Harness
	gateway *Gateway
	inspect *Inspector
	log     *activity.Log
	clock   *activitytest.Clock
	dir     string // directory of the server logs
}

func (*inspectorWorld) StartProgress(string) upstream.StartProgress { return upstream.StartProgress{} }

func (*inspectorWorld) Deviations(string) []string               { return nil }
func (*inspectorWorld) SessionNeeds(string) []upstream.KnownNeed { return nil }

func (w *inspectorWorld) LogTail(server string, lines int) ([]process.LogLine, error) {
	return w.NewLogReader(server).ReadLast(lines)
}

func (w *inspectorWorld) NewLogReader(server string) *process.LogReader {
	return process.NewLogReader(w.dir, server)
}

func newInspectorWorld(t testing.TB, change func(*config.Config), definitions ...string) *inspectorWorld {
	t.Helper()
	dir := t.TempDir()
	w := &inspectorWorld{Harness: catalogtest.New(t, change, definitions...), clock: activitytest.NewClock(time.Now()), dir: filepath.Join(dir, "logs")}
	w.Catalog.StateChanged(upstream.State{Name: "s", Phase: upstream.Ready})
	w.Catalog.Publish()
	db := store.OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	var err error
	w.log, err = activity.Open(activity.Options{Dir: filepath.Join(dir, "spool"), Now: w.clock.Now}, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.log.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	w.gateway = NewGateway(GatewayDeps{Book: w.Book, Upstreams: w, Log: catalogtest.QueryableLog{Harness: w.Harness}, Gate: gate.New(gatetest.NewDeps(w.Harness))})
	w.inspect = NewInspector(w.gateway, w.log, w)
	return w
}

// called records n calls of a tool that begin now.
func (w *inspectorWorld) called(server, tool string, n int, status activity.Status, took time.Duration) {
	w.T.Helper()
	for range n {
		r := activity.Record{Type: activity.ToolCall, ServerName: server, ToolName: tool}
		if err := w.log.Begin(&r); err != nil {
			w.T.Fatal(err)
		}
		if err := w.log.End(r.ID, activity.Outcome{Status: status, Duration: took}); err != nil {
			w.T.Fatal(err)
		}
	}
	w.projected()
}

// projected waits until the database contains all records.
func (w *inspectorWorld) projected() {
	w.T.Helper()
	if _, err := w.log.List(context.Background(), activity.Filter{Limit: 1}); err != nil {
		w.T.Fatal(err)
	}
}

func (w *inspectorWorld) tools(q ToolQuery) ToolList {
	w.T.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	l, err := w.inspect.Tools(context.Background(), Caller{}, q)
	if err != nil {
		w.T.Fatal(err)
	}
	return l
}

// defined returns a tool definition with hints.
func defined(name, description, hints string) string {
	return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"},"annotations":{%s}}`, name, description, hints)
}

const (
	reads    = `"readOnlyHint":true`
	writes   = `"readOnlyHint":false,"destructiveHint":false`
	destroys = `"destructiveHint":true`
)
