package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/store"
	"mcpproxy/internal/upstream"
)

// needTable is a needStore in memory.
type needTable struct {
	rows []store.LearnedSession
	err  error
}

func (m *needTable) LearnedSessions(context.Context) ([]store.LearnedSession, error) {
	return m.rows, m.err
}

func (m *needTable) SaveLearnedSession(_ context.Context, l store.LearnedSession) error {
	m.rows = append(m.rows, l)
	return nil
}

// TestLearnedNeeds checks that needs are known again in the next run, for the same launch only, and after a database that
// could not be read at first.
func TestLearnedNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &needTable{}
		first, other := tool.Fingerprint{1}, tool.Fingerprint{2}
		n := newLearnedNeeds(db, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		go n.run(ctx)
		n.load()
		wants := func(n *learnedNeeds, launch tool.Fingerprint, want ...upstream.KnownNeed) {
			t.Helper()
			if got := n.needsOf("s", launch); !slices.Equal(got, want) {
				t.Errorf("the needs are %v, want %v", got, want)
			}
		}
		wants(n, first)
		k := upstream.KnownNeed{Need: upstream.NeedElicitation, Since: time.Now()}
		n.learn("s", k)
		synctest.Wait()
		wants(n, other)
		wants(n, first, k)
		cancel()
		synctest.Wait()

		db.err = errors.New("away")
		n = newLearnedNeeds(db, slog.New(slog.DiscardHandler))
		n.load()
		wants(n, first)
		db.err = nil
		n.load()
		n.load()
		wants(n, first, k)
		wants(n, other)
	})
}
