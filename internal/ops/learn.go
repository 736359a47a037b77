package ops

import (
	"context"
	"strings"
	"time"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/store/activity"
)

// How often the configuration is looked at, and what was learned made anew.
const (
	learnLook  = time.Minute
	learnAgain = 15 * time.Minute
	usePeriod  = 30 * 24 * time.Hour // how far back calls count
)

// Learn keeps up to date how often servers are called, and while the configuration
// asks for it what is learned from use, until ctx ends.
func (g *Gateway) Learn(ctx context.Context) {
	look := time.NewTicker(learnLook)
	defer look.Stop()
	var learned, counted time.Time
	for {
		if time.Since(counted) >= learnAgain {
			if calls, err := g.Log.Calls(ctx, time.Now().Add(-usePeriod)); err == nil {
				g.calls.Store(&calls)
				counted = time.Now()
			}
		}
		switch {
		case !g.Config().LearnFromUse:
			g.habits.Store(nil)
			learned = time.Time{}
		case time.Since(learned) >= learnAgain:
			err := g.learn(ctx)
			switch {
			case err == nil:
				learned = time.Now()
			case ctx.Err() == nil:
				g.Logger.Warn("nothing could be learned from the log", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// learn makes habits of the calls in the log that a search found. Calls that
// failed or were refused teach nothing.
func (g *Gateway) learn(ctx context.Context) error {
	uses := map[string][]search.Use{}
	seen := map[tallied]map[tool.ID]bool{}
	err := eachCall(ctx, g.Log, time.Time{}, func(r *activity.Record) {
		s := r.Metadata.Search
		if s == nil || s.Rank == 0 || r.Status != activity.Success {
			return
		}
		id := tool.ID{Server: r.ServerName, Tool: r.ToolName}
		key := tallied{r.SessionID, s.Query}
		if seen[key] == nil {
			seen[key] = map[tool.ID]bool{}
		}
		if !seen[key][id] { // called again and again is one use
			seen[key][id] = true
			of := learner(r.Actor)
			uses[of] = append(uses[of], search.Use{Query: s.Query, Tool: id})
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

// learner is whose uses an actor learns from: with a token, from those of that name
// alone; all others learn from one another.
func learner(actor string) string {
	if strings.HasPrefix(actor, "agent:") {
		return actor
	}
	return ""
}

// learned is the prior of a caller's search; nil when nothing is to be learned.
func (g *Gateway) learned(c Caller) *search.Habits {
	habits := g.habits.Load()
	if habits == nil || !g.Config().LearnFromUse {
		return nil
	}
	return (*habits)[learner(c.Actor.String())]
}
