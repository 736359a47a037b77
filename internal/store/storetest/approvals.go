package storetest

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
	s := open.Open(t, dir)
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
		byTool := cmpopts.SortSlices(func(a, b approval.Row) bool { return a.Tool+string(a.Kind) < b.Tool+string(b.Kind) })
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
	want(approval.Saved{})
	definition("one", "a", "")

	pin := &approval.Pin{Fingerprint: print(1), Hints: tool.Hints{Title: "é", ReadOnly: tool.True, Destructive: tool.False}, Mark: markAt("trust:scan", 1)}
	off, block := markAt("admin", 2), &approval.Block{Fingerprint: print(2), Mark: markAt("admin", 3)}
	launch := approval.Launch{Server: "one", Fingerprint: print(9), Mark: markAt("admin", 4)}
	a := approval.Row{Tool: "a", Entry: approval.Entry{Pin: pin}}
	given := a
	given.Definition = json.RawMessage(`{ "name" : "a" }`)
	b := approval.Row{Tool: "b", Entry: approval.Entry{Block: block, Off: &off}}
	// A prompt of the same name as a tool is another thing; instructions have none.
	prompt := approval.Row{Kind: tool.KindPrompt, Tool: "a", Entry: approval.Entry{Pin: &approval.Pin{Fingerprint: print(3), Mark: markAt("trust:scan", 1)}}}
	asked := prompt
	asked.Definition = json.RawMessage(`{"name":"a","title":"p"}`)
	said := approval.Row{Kind: tool.KindInstructions, Entry: approval.Entry{Block: block}}
	save(approval.Change{Server: "one", Tools: []approval.Row{given, b, asked, said}, Launch: &launch})
	save(approval.Change{Server: "two", Tools: []approval.Row{{Tool: "a", Entry: approval.Entry{Off: &off}}}})
	proposal := approval.Proposal{Name: "new", Server: json.RawMessage(`{"command":"x"}`), Mark: markAt("agent", 5)}
	save(approval.Change{Propose: &proposal})
	all := approval.Saved{
		Tools:    map[string][]approval.Row{"one": {a, b, prompt, said}, "two": {{Tool: "a", Entry: approval.Entry{Off: &off}}}},
		Launches: []approval.Launch{launch}, Proposals: []approval.Proposal{proposal},
	}
	held := func(kind tool.DefinitionKind, name string, n byte, minute int) approval.Held {
		return approval.Held{Kind: kind, Tool: name, Fingerprint: print(n), Since: markAt("", minute).At}
	}
	for _, part := range [][]approval.Held{{held("", "a", 1, 1), held(tool.KindPrompt, "a", 2, 2)}, {held("", "a", 3, 3)}} {
		if err := s.SaveHeld(ctx, "one", part); err != nil {
			t.Fatal(err)
		}
	}
	all.Held = map[string][]approval.Held{"one": {held("", "a", 3, 3), held(tool.KindPrompt, "a", 2, 2)}}
	want(all)
	definition("one", "a", `{ "name" : "a" }`)
	definitionOf(tool.KindPrompt, "one", "a", `{"name":"a","title":"p"}`)
	definitionOf(tool.KindResource, "one", "a", "")

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
	s = open.Open(t, dir)
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
	all.Held = nil
	want(all)
}

// testReplacedApprovals: what an approval has replaced is kept with its definition, and is
// there when the approval is taken back, also in a store that is opened anew.
func testReplacedApprovals(t *testing.T, open Opener) {
	dir, ctx := t.TempDir(), t.Context()
	first := &approval.Pin{Fingerprint: print(1), Hints: tool.Hints{ReadOnly: tool.True}, Mark: markAt("trust:scan", 1)}
	block := &approval.Block{Fingerprint: print(7), Mark: markAt("admin", 2)}
	second := &approval.Pin{Fingerprint: print(2), Mark: markAt("admin", 3), Before: &approval.Before{Pin: first, Block: block}}
	third := &approval.Pin{Fingerprint: print(3), Mark: markAt("admin", 4), Before: &approval.Before{Pin: &approval.Pin{Fingerprint: print(2), Mark: markAt("admin", 3)}}}
	alone := &approval.Pin{Fingerprint: print(4), Mark: markAt("admin", 5), Before: &approval.Before{Block: block}}
	for _, step := range []struct {
		pin        *approval.Pin
		definition string // that is given
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
		s := open.Open(t, dir)
		row := approval.Row{Kind: tool.KindPrompt, Tool: "a", Entry: approval.Entry{Pin: step.pin, Off: &second.Mark}}
		given := row
		if step.definition != "" {
			given.Definition = json.RawMessage(step.definition)
		}
		if err := s.SaveApprovals(ctx, approval.Change{Server: "one", Tools: []approval.Row{given}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open.Open(t, dir)
		saved, err := s.LoadApprovals(ctx)
		if d := cmp.Diff(map[string][]approval.Row{"one": {row}}, saved.Tools); d != "" || err != nil {
			t.Errorf("%v (-want +got)\n%s", err, d)
		}
		if got, err := s.ApprovedDefinition(ctx, tool.KindPrompt, tool.ID{Server: "one", Tool: "a"}); err != nil || string(got) != step.want {
			t.Errorf("the definition is %s, %v; want %s", got, err, step.want)
		}
		if err := s.RestoreApprovals(ctx, saved); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// testRestoredApprovals: what is restored is there, and nothing else; a
// definition that is not given is the one from before.
func testRestoredApprovals(t *testing.T, open Opener) {
	s, ctx := open.Open(t, t.TempDir()), t.Context()
	defer func() { _ = s.Close() }()
	pin, off := &approval.Pin{Fingerprint: print(1), Mark: markAt("admin", 1)}, markAt("admin", 2)
	row := func(name string, e approval.Entry, definition string) approval.Row {
		r := approval.Row{Tool: name, Entry: e}
		if definition != "" {
			r.Definition = json.RawMessage(definition)
		}
		return r
	}
	before := []approval.Row{row("a", approval.Entry{Pin: pin}, `{"name":"a"}`), row("b", approval.Entry{Off: &off}, "")}
	launch := approval.Launch{Server: "two", Fingerprint: print(8), Mark: markAt("admin", 3)}
	if err := errors.Join(s.SaveApprovals(ctx, approval.Change{Server: "one", Tools: before}),
		s.SaveApprovals(ctx, approval.Change{Server: "two", Tools: before, Launch: &launch})); err != nil {
		t.Fatal(err)
	}
	all := approval.Saved{
		Tools: map[string][]approval.Row{"one": {
			row("a", approval.Entry{Pin: pin, Off: &off}, ""), row("c", approval.Entry{Pin: pin}, `{"name":"c"}`),
			row("lost", approval.Entry{Was: &pin.Fingerprint}, ""), // which is nothing that is decided
		}},
		Launches:  []approval.Launch{{Server: "one", Fingerprint: print(9), Mark: markAt("admin", 4)}},
		Proposals: []approval.Proposal{{Name: "new", Server: json.RawMessage(`{}`), Mark: markAt("agent", 5)}},
		Held:      map[string][]approval.Held{"one": {{Tool: "lost", Fingerprint: print(1), Since: markAt("", 6).At}}},
	}
	for _, all.Lost = range []bool{true, true, false} {
		if err := s.RestoreApprovals(ctx, all); err != nil {
			t.Fatal(err)
		}
		want := all
		want.Tools = map[string][]approval.Row{"one": {row("a", approval.Entry{Pin: pin, Off: &off}, ""), row("c", approval.Entry{Pin: pin}, "")}}
		got, err := s.LoadApprovals(ctx)
		byTool := cmpopts.SortSlices(func(a, b approval.Row) bool { return a.Tool < b.Tool })
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
