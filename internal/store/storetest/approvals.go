package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpproxy/internal/approval"
	"mcpproxy/internal/tool"
)

func print(n byte) (f tool.Fingerprint) {
	f[0], f[31] = n, n
	return f
}

func markAt(by string, minute int) approval.Mark {
	return approval.Mark{By: by, At: time.Date(2026, 1, 15, 10, minute, 0, 1000, time.UTC)}
}

// testApprovals: everything that is decided comes back as it was, also from a
// store that is opened anew.
func testApprovals(t *testing.T, open Opener) {
	dir := t.TempDir()
	s := open(t, dir)
	ctx := t.Context()
	save := func(c approval.Change) {
		t.Helper()
		if err := s.SaveApprovals(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want approval.Saved) {
		t.Helper()
		got, err := s.LoadApprovals(ctx)
		if err != nil {
			t.Fatal(err)
		}
		byTool := cmpopts.SortSlices(func(a, b approval.Row) bool { return a.Tool < b.Tool })
		if d := cmp.Diff(want, got, byTool, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	definition := func(server, name, want string) {
		t.Helper()
		got, err := s.ApprovedDefinition(ctx, tool.ID{Server: server, Tool: name})
		if err != nil || string(got) != want {
			t.Errorf("the definition of %s:%s is %s, %v; want %s", server, name, got, err, want)
		}
	}
	want(approval.Saved{})
	definition("one", "a", "")

	pin := &approval.Pin{Fingerprint: print(1), Hints: tool.Hints{Title: "é", ReadOnly: tool.True, Destructive: tool.False}, Mark: markAt("trust:scan", 1)}
	off, block := markAt("admin", 2), &approval.Block{Fingerprint: print(2), Mark: markAt("admin", 3)}
	launch := approval.Launch{Server: "one", Fingerprint: print(9), Mark: markAt("admin", 4)}
	a := approval.Row{Tool: "a", Entry: approval.Entry{Pin: pin}}
	given := a
	given.Definition = json.RawMessage(`{ "name" : "a" }`)
	b := approval.Row{Tool: "b", Entry: approval.Entry{Block: block, Off: &off}}
	save(approval.Change{Server: "one", Tools: []approval.Row{given, b}, Launch: &launch})
	save(approval.Change{Server: "two", Tools: []approval.Row{{Tool: "a", Entry: approval.Entry{Off: &off}}}})
	proposal := approval.Proposal{Name: "new", Server: json.RawMessage(`{"command":"x"}`), Mark: markAt("agent", 5)}
	save(approval.Change{Propose: &proposal})
	all := approval.Saved{
		Tools:    map[string][]approval.Row{"one": {a, b}, "two": {{Tool: "a", Entry: approval.Entry{Off: &off}}}},
		Launches: []approval.Launch{launch}, Proposals: []approval.Proposal{proposal},
	}
	want(all)
	definition("one", "a", `{ "name" : "a" }`)

	// The same proposal again is refused, and nothing else of that change is kept.
	if err := s.SaveApprovals(ctx, approval.Change{Server: "two", Forget: true, Settle: "other", Propose: &proposal}); err == nil {
		t.Error("two proposals have one name")
	}
	want(all)

	// What is not given of a definition stays, and goes with its approval.
	a.Off = &off
	save(approval.Change{Server: "one", Tools: []approval.Row{a}})
	definition("one", "a", `{ "name" : "a" }`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer func() { _ = s.Close() }()
	all.Tools["one"][0] = a
	want(all)
	a.Pin = nil
	save(approval.Change{Server: "one", Tools: []approval.Row{a}, Unpin: true, Settle: "new"})
	definition("one", "a", "")
	all.Tools["one"][0], all.Launches, all.Proposals = a, nil, nil
	want(all)
	save(approval.Change{Server: "one", Forget: true})
	delete(all.Tools, "one")
	want(all)
}
