package ops

import (
	"context"
	"strings"
	"time"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/store/activity"
)

// Intervals for checking the configuration and for learning again.
const (
	learnCheckInterval = time.Minute
	learnInterval      = 15 * time.Minute
	usePeriod          = 30 * 24 * time.Hour // calls in this period are counted
)

// RunLearning counts the calls of servers periodically and, if the configuration enables it, learns search habits from
// use. It returns when ctx ends.
func (g *Gateway) RunLearning(ctx context.Context) {
	look := time.NewTicker(learnCheckInterval)
	defer look.Stop()
	var learned, counted time.Time
	for {
		if time.Since(counted) >= learnInterval {
			if calls, err := g.Log.CallsByServer(ctx, time.Now().Add(-usePeriod)); err == nil {
				g.calls.Store(&calls)
				counted = time.Now()
			}
		}
		switch {
		case !g.Config().LearnFromUse:
			g.habits.Store(nil)
			learned = time.Time{}
		case time.Since(learned) >= learnInterval:
			err := g.learnSearchHabits(ctx)
			switch {
			case err == nil:
				learned = time.Now()
			case ctx.Err() == nil:
				g.Logger.Warn("could not learn from the log", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// learnSearchHabits computes search habits from successful calls after a search.
func (g *Gateway) learnSearchHabits(ctx context.Context) error {
	uses := map[string][]search.ToolCallAfterQuery{}
	seen := map[searchKey]map[tool.ID]bool{}
	err := forEachCall(ctx, g.Log, time.Time{}, func(r *activity.Record) {
		s := r.Metadata.Search
		if s == nil || s.Rank == 0 || r.Status != activity.Success {
			return
		}
		id := tool.ID{Server: r.ServerName, Tool: r.ToolName}
		key := searchKey{r.SessionID, s.Query}
		if seen[key] == nil {
			seen[key] = map[tool.ID]bool{}
		}
		if !seen[key][id] { // repeated calls count as one use
			seen[key][id] = true
			of := habitOwner(r.Actor)
			uses[of] = append(uses[of], search.ToolCallAfterQuery{Query: s.Query, Tool: id})
		}
	})
	if err != nil {
		return err
	}
	habits := make(map[string]*search.Habits, len(uses))
	for of, all := range uses {
		habits[of] = search.LearnHabits(all)
	}
	g.habits.Store(&habits)
	return nil
}

// habitOwner returns the key of the habits for an actor. Each token has its own habits. All other actors share the same
// habits.
func habitOwner(actor string) string {
	if strings.HasPrefix(actor, "agent:") {
		return actor
	}
	return ""
}

// searchHabitsFor returns the search habits for a caller, or nil if there are none.
func (g *Gateway) searchHabitsFor(c Caller) *search.Habits {
	habits := g.habits.Load()
	if habits == nil || !g.Config().LearnFromUse {
		return nil
	}
	return (*habits)[habitOwner(c.Actor.String())]
}
