package store_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
)

func fakeFingerprint(n byte) (f tool.Fingerprint) {
	f[0], f[31] = n, n
	return f
}

func newMark(by string, minute int) approval.AuthorAndTime {
	return approval.AuthorAndTime{By: by, At: time.Date(2026, 1, 15, 10, minute, 0, 1000, time.UTC)}
}

// testApprovals checks that all decisions are loaded as they were saved, before and after a restart.
func testApprovals(t *testing.T, open storeOpener) {
	dir := t.TempDir()
	s := open(t, dir)
	ctx := t.Context()
	save := func(c approval.ChangeSet) {
		t.Helper()
		if err := s.SaveApprovals(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want approval.StoredDecisions) {
		t.Helper()
		got, err := s.LoadApprovals(ctx)
		if err != nil {
			t.Fatal(err)
		}
		byTool := cmpopts.SortSlices(func(a, b approval.DecisionRow) bool { return a.Tool+string(a.Kind) < b.Tool+string(b.Kind) })
		if d := cmp.Diff(want, got, byTool, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	definitionOf := func(kind tool.DefinitionKind, server, name, want string) {
		t.Helper()
		got, err := s.ApprovedDefinition(ctx, kind, tool.ID{Server: server, Tool: name})
		if err != nil || string(got) != want {
			t.Errorf("the definition of %s:%s is %s, %v; want %s", server, name, got, err, want)
		}
	}
	definition := func(server, name, want string) { t.Helper(); definitionOf(tool.KindTool, server, name, want) }
	want(approval.StoredDecisions{})
	definition("one", "a", "")

	pin := &approval.Pin{Fingerprint: fakeFingerprint(1), Hints: tool.Hints{Title: "é", ReadOnly: tool.True, Destructive: tool.False}, AuthorAndTime: newMark("trust:scan", 1)}
	off, block := newMark("admin", 2), &approval.Block{Fingerprint: fakeFingerprint(2), AuthorAndTime: newMark("admin", 3)}
	launch := approval.ApprovedLaunch{Server: "one", Fingerprint: fakeFingerprint(9), AuthorAndTime: newMark("admin", 4)}
	a := approval.DecisionRow{Tool: "a", DefinitionDecisions: approval.DefinitionDecisions{Pin: pin}}
	given := a
	given.Definition = json.RawMessage(`{ "name" : "a" }`)
	b := approval.DecisionRow{Tool: "b", DefinitionDecisions: approval.DefinitionDecisions{Block: block, Off: &off}}
	// A prompt with the same name as a tool is a different item. Instructions have no name.
	prompt := approval.DecisionRow{Kind: tool.KindPrompt, Tool: "a", DefinitionDecisions: approval.DefinitionDecisions{Pin: &approval.Pin{Fingerprint: fakeFingerprint(3), AuthorAndTime: newMark("trust:scan", 1)}}}
	asked := prompt
	asked.Definition = json.RawMessage(`{"name":"a","title":"p"}`)
	said := approval.DecisionRow{Kind: tool.KindInstructions, DefinitionDecisions: approval.DefinitionDecisions{Block: block}}
	save(approval.ChangeSet{Server: "one", Tools: []approval.DecisionRow{given, b, asked, said}, Launch: &launch})
	save(approval.ChangeSet{Server: "two", Tools: []approval.DecisionRow{{Tool: "a", DefinitionDecisions: approval.DefinitionDecisions{Off: &off}}}})
	proposal := approval.ServerProposal{Name: "new", Server: json.RawMessage(`{"command":"x"}`), AuthorAndTime: newMark("agent", 5)}
	save(approval.ChangeSet{Propose: &proposal})
	all := approval.StoredDecisions{
		Tools:    map[string][]approval.DecisionRow{"one": {a, b, prompt, said}, "two": {{Tool: "a", DefinitionDecisions: approval.DefinitionDecisions{Off: &off}}}},
		Launches: []approval.ApprovedLaunch{launch}, Proposals: []approval.ServerProposal{proposal},
	}
	held := func(kind tool.DefinitionKind, name string, n byte, minute int) approval.HeldDefinition {
		return approval.HeldDefinition{Kind: kind, Tool: name, Fingerprint: fakeFingerprint(n), Since: newMark("", minute).At}
	}
	for _, part := range [][]approval.HeldDefinition{{held("", "a", 1, 1), held(tool.KindPrompt, "a", 2, 2)}, {held("", "a", 3, 3)}} {
		if err := s.SaveHeld(ctx, "one", part); err != nil {
			t.Fatal(err)
		}
	}
	all.Held = map[string][]approval.HeldDefinition{"one": {held("", "a", 3, 3), held(tool.KindPrompt, "a", 2, 2)}}
	want(all)
	definition("one", "a", `{ "name" : "a" }`)
	definitionOf(tool.KindPrompt, "one", "a", `{"name":"a","title":"p"}`)
	definitionOf(tool.KindResource, "one", "a", "")

	// A second proposal with the same name is rejected, and the rest of its change set is not stored.
	if err := s.SaveApprovals(ctx, approval.ChangeSet{Server: "two", Forget: true, RemoveProposal: "other", Propose: &proposal}); err == nil {
		t.Error("SaveApprovals accepted two proposals with the same name")
	}
	want(all)

	// A change without a definition keeps the stored definition. Deleting the approval deletes it.
	a.Off = &off
	save(approval.ChangeSet{Server: "one", Tools: []approval.DecisionRow{a}})
	definition("one", "a", `{ "name" : "a" }`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer func() { _ = s.Close() }()
	all.Tools["one"][0] = a
	want(all)
	a.Pin = nil
	save(approval.ChangeSet{Server: "one", Tools: []approval.DecisionRow{a}, RevokeLaunch: true, RemoveProposal: "new"})
	definition("one", "a", "")
	all.Tools["one"][0], all.Launches, all.Proposals = a, nil, nil
	want(all)
	save(approval.ChangeSet{Server: "one", Forget: true})
	delete(all.Tools, "one")
	all.Held = nil
	want(all)
}

// testReplacedApprovals checks that an approval stores the decision that it replaces, with its definition. Undoing the
// approval restores that decision, also after a restart.
func testReplacedApprovals(t *testing.T, open storeOpener) {
	dir, ctx := t.TempDir(), t.Context()
	first := &approval.Pin{Fingerprint: fakeFingerprint(1), Hints: tool.Hints{ReadOnly: tool.True}, AuthorAndTime: newMark("trust:scan", 1)}
	block := &approval.Block{Fingerprint: fakeFingerprint(7), AuthorAndTime: newMark("admin", 2)}
	second := &approval.Pin{Fingerprint: fakeFingerprint(2), AuthorAndTime: newMark("admin", 3), Before: &approval.ReplacedDecision{Pin: first, Block: block}}
	third := &approval.Pin{Fingerprint: fakeFingerprint(3), AuthorAndTime: newMark("admin", 4), Before: &approval.ReplacedDecision{Pin: &approval.Pin{Fingerprint: fakeFingerprint(2), AuthorAndTime: newMark("admin", 3)}}}
	alone := &approval.Pin{Fingerprint: fakeFingerprint(4), AuthorAndTime: newMark("admin", 5), Before: &approval.ReplacedDecision{Block: block}}
	for _, step := range []struct {
		pin        *approval.Pin
		definition string // passed to SaveApprovals
		want       string
	}{
		{first, `{"name":"1"}`, `{"name":"1"}`},
		{second, `{"name":"2"}`, `{"name":"2"}`},
		{second, "", `{"name":"2"}`},
		{first, "", `{"name":"1"}`},
		{second, `{"name":"2"}`, `{"name":"2"}`},
		{third, `{"name":"3"}`, `{"name":"3"}`},
		{third.Before.Pin, "", `{"name":"2"}`},
		{alone, `{"name":"4"}`, `{"name":"4"}`},
		{nil, "", ""},
	} {
		s := open(t, dir)
		row := approval.DecisionRow{Kind: tool.KindPrompt, Tool: "a", DefinitionDecisions: approval.DefinitionDecisions{Pin: step.pin, Off: &second.AuthorAndTime}}
		given := row
		if step.definition != "" {
			given.Definition = json.RawMessage(step.definition)
		}
		if err := s.SaveApprovals(ctx, approval.ChangeSet{Server: "one", Tools: []approval.DecisionRow{given}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir)
		saved, err := s.LoadApprovals(ctx)
		if d := cmp.Diff(map[string][]approval.DecisionRow{"one": {row}}, saved.Tools); d != "" || err != nil {
			t.Errorf("%v (-want +got)\n%s", err, d)
		}
		if got, err := s.ApprovedDefinition(ctx, tool.KindPrompt, tool.ID{Server: "one", Tool: "a"}); err != nil || string(got) != step.want {
			t.Errorf("the definition is %s, %v; want %s", got, err, step.want)
		}
		if err := s.ReplaceApprovals(ctx, saved); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// testRestoredApprovals checks that ReplaceApprovals replaces all decisions, and keeps stored definitions for which it
// receives no new one.
func testRestoredApprovals(t *testing.T, open storeOpener) {
	s, ctx := open(t, t.TempDir()), t.Context()
	defer func() { _ = s.Close() }()
	pin, off := &approval.Pin{Fingerprint: fakeFingerprint(1), AuthorAndTime: newMark("admin", 1)}, newMark("admin", 2)
	row := func(name string, e approval.DefinitionDecisions, definition string) approval.DecisionRow {
		r := approval.DecisionRow{Tool: name, DefinitionDecisions: e}
		if definition != "" {
			r.Definition = json.RawMessage(definition)
		}
		return r
	}
	before := []approval.DecisionRow{row("a", approval.DefinitionDecisions{Pin: pin}, `{"name":"a"}`), row("b", approval.DefinitionDecisions{Off: &off}, "")}
	launch := approval.ApprovedLaunch{Server: "two", Fingerprint: fakeFingerprint(8), AuthorAndTime: newMark("admin", 3)}
	if err := errors.Join(s.SaveApprovals(ctx, approval.ChangeSet{Server: "one", Tools: before}),
		s.SaveApprovals(ctx, approval.ChangeSet{Server: "two", Tools: before, Launch: &launch})); err != nil {
		t.Fatal(err)
	}
	all := approval.StoredDecisions{
		Tools: map[string][]approval.DecisionRow{"one": {
			row("a", approval.DefinitionDecisions{Pin: pin, Off: &off}, ""), row("c", approval.DefinitionDecisions{Pin: pin}, `{"name":"c"}`),
			row("lost", approval.DefinitionDecisions{Was: &pin.Fingerprint}, ""), // a row without a decision
		}},
		Launches:  []approval.ApprovedLaunch{{Server: "one", Fingerprint: fakeFingerprint(9), AuthorAndTime: newMark("admin", 4)}},
		Proposals: []approval.ServerProposal{{Name: "new", Server: json.RawMessage(`{}`), AuthorAndTime: newMark("agent", 5)}},
		Held:      map[string][]approval.HeldDefinition{"one": {{Tool: "lost", Fingerprint: fakeFingerprint(1), Since: newMark("", 6).At}}},
	}
	for _, all.Lost = range []bool{true, true, false} {
		if err := s.ReplaceApprovals(ctx, all); err != nil {
			t.Fatal(err)
		}
		want := all
		want.Tools = map[string][]approval.DecisionRow{"one": {row("a", approval.DefinitionDecisions{Pin: pin, Off: &off}, ""), row("c", approval.DefinitionDecisions{Pin: pin}, "")}}
		got, err := s.LoadApprovals(ctx)
		byTool := cmpopts.SortSlices(func(a, b approval.DecisionRow) bool { return a.Tool < b.Tool })
		if d := cmp.Diff(want, got, byTool, cmpopts.EquateEmpty()); d != "" || err != nil {
			t.Errorf("%v (-want +got)\n%s", err, d)
		}
	}
	for name, want := range map[string]string{"a": `{"name":"a"}`, "b": "", "c": `{"name":"c"}`} {
		if got, err := s.ApprovedDefinition(ctx, tool.KindTool, tool.ID{Server: "one", Tool: name}); err != nil || string(got) != want {
			t.Errorf("the definition of %s is %s, %v", name, got, err)
		}
	}
}
