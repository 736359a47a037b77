package ops

import (
	"context"
	"math"
	"testing"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/store/activity"
)

// The record of a call after a search contains the query and the rank of the tool.
func TestRecordsContainTheSearch(t *testing.T) {
	w := newWorld(t, nil, readsTool, destroysTool)
	w.retrieve(RetrieveRequest{Query: "destroy it, my key is ghp_0123456789abcdefghijABCDEFGHIJ012345"})
	w.retrieve(RetrieveRequest{Query: "read a thing"})
	caller := anAgent
	for _, name := range []string{"s:reads", "s:destroys", "s:nowhere"} {
		_, _ = w.gate.Call(context.Background(), gate.LaneCall{CallTool: policy.CallToolDestructive, Name: name, Args: []byte(`{"n":1}`), Caller: caller})
	}
	records := append(w.Begun, w.Appended...)
	for i, want := range []activity.Search{
		{Query: "read a thing", Rank: 1}, {Query: "read a thing", Rank: 2}, {Query: "read a thing"},
	} {
		if got := records[i].Metadata.Search; got == nil || *got != want {
			t.Errorf("call %d records %+v, want %+v", i, got, want)
		}
	}
	other := anAgent
	other.SessionID = "another"
	_, _ = w.gate.Call(context.Background(), gate.LaneCall{CallTool: policy.CallToolDestructive, Name: "s:reads", Args: []byte(`{"n":1}`), Caller: other})
	if got := w.Begun[len(w.Begun)-1].Metadata.Search; got != nil {
		t.Errorf("a client that did not search found the tool by %+v", got)
	}
}

func TestTally(t *testing.T) {
	at := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	tl := newCallStats()
	for i, c := range []struct {
		session, tool, query string
		rank                 int
	}{
		{"a", "x", "one", 1}, {"a", "x", "one", 1}, {"a", "y", "one", 4}, // one search: ranks 1 and 4
		{"b", "x", "one", 2},                           // another session
		{"b", "z", "two", 0},                           // not found
		{"b", "z", "three", 0}, {"b", "z", "three", 7}, // not found, then found
		{"c", "w", "", 0}, // no search before the call
	} {
		r := activity.Record{Timestamp: at.Add(-time.Duration(i) * time.Minute), SessionID: c.session, ServerName: "s", ToolName: c.tool}
		if c.query != "" {
			r.Metadata.Search = &activity.Search{Query: c.query, Rank: c.rank}
		}
		tl.addCall(&r)
	}
	s := tl.toToolStats()
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	near("recall 1", s.Recall1, 0.5/4)
	near("recall 3", s.Recall3, 1.5/4)
	near("recall 5", s.Recall5, 2.0/4)
	near("recall 10", s.Recall10, 3.0/4)
	near("MRR", s.MRR, (1+1.0/2+0+1.0/7)/4)
	if s.Calls != 8 || s.Searches != 4 || s.Missed != 1 || s.Cut || !s.Since.Equal(at.Add(-7*time.Minute)) {
		t.Errorf("stats %+v", s)
	}
	want := ToolUse{Name: "s:x", Calls: 3, Found: 2, Rank: 1.5, Last: at}
	if len(s.Tools) != 4 || s.Tools[0] != want && s.Tools[1] != want {
		t.Errorf("tools %+v, want %+v among them", s.Tools, want)
	}
}

// A tool that was called after a search is found by the words of that search, but only if the configuration enables
// learning.
func TestLearnFromUse(t *testing.T) {
	w := newWorld(t, nil, readsTool, destroysTool)
	record := activity.Record{Type: activity.ToolCall, Status: activity.Success, ServerName: "s", ToolName: "destroys",
		Metadata: activity.Metadata{Search: &activity.Search{Query: "settle the accounts", Rank: 3}}}
	failed := record
	failed.Status, failed.ToolName = activity.Failed, "reads"
	w.Logged = []activity.Record{failed, failed, failed, record, record}
	if err := w.gateway.learnSearchHabits(context.Background()); err != nil {
		t.Fatal(err)
	}
	if a := w.retrieve(RetrieveRequest{Query: "accounts"}); a.Total != 0 {
		t.Errorf("a habit was learned, although learning is off: %+v", a)
	}
	w.Config().LearnFromUse = true
	if a := w.retrieve(RetrieveRequest{Query: "accounts"}); a.Total != 1 || a.Tools[0].Name != "s:destroys" {
		t.Errorf("got %+v, want the called tool", a)
	}
}

// TestHabitsAreNotShared: a user and a token are found nothing by the habits of others.
func TestHabitsAreNotShared(t *testing.T) {
	w := newWorld(t, nil, readsTool, destroysTool)
	w.Config().LearnFromUse = true
	callers := []Caller{
		{Actor: auth.Actor{Kind: auth.Agent, Name: "ann", ID: "1", Role: auth.RoleUser}}, {Actor: auth.Actor{Kind: auth.Agent, Name: "ben", ID: "2", Role: auth.RoleUser}},
		{Actor: auth.Actor{Kind: auth.Agent, Name: "ann", ID: "1"}}, {},
	}
	for i, of := range callers {
		record := activity.Record{Type: activity.ToolCall, Status: activity.Success, ServerName: "s", ToolName: "destroys", Actor: of.Actor.String(),
			Metadata: activity.Metadata{Search: &activity.Search{Query: "settle the accounts", Rank: 3}}}
		w.Logged = []activity.Record{record, record}
		if err := w.gateway.learnSearchHabits(context.Background()); err != nil {
			t.Fatal(err)
		}
		for j, by := range callers {
			if has := w.gateway.searchHabitsFor(by) != nil; has != (i == j) {
				t.Errorf("%q has habits of %q: %v", by.Actor, of.Actor, has)
			}
		}
	}
}

func TestToolStats(t *testing.T) {
	w := newWorld(t, nil, readsTool, destroysTool)
	w.Logged = []activity.Record{{Type: activity.ToolCall, ServerName: "s", ToolName: "reads", Timestamp: time.Now()}}
	s, err := w.gateway.ToolStats(context.Background(), Caller{}, StatsQuery{})
	if err != nil || s.Calls != 1 || len(s.Dead) != 1 || s.Dead[0] != "s:destroys" || s.DeadAll != 1 {
		t.Errorf("stats %+v, %v", s, err)
	}
}
