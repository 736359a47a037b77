package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
)

func testTools(t *testing.T, open storeOpener) {
	dir := t.TempDir()
	s := open(t, dir)
	ctx := t.Context()
	save := func(server string, raws ...json.RawMessage) {
		t.Helper()
		if err := s.SaveTools(ctx, server, raws); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want map[string][]json.RawMessage) {
		t.Helper()
		got, err := s.LoadTools(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	a, b, c := json.RawMessage(`{"name":"a","n":12345678901234567890}`), json.RawMessage(`{ "name" : "b" }`), json.RawMessage(`{"name":"c"}`)
	want(map[string][]json.RawMessage{})
	save("one", b, a, b)
	save("two", c)
	want(map[string][]json.RawMessage{"one": {b, a, b}, "two": {c}})
	save("one", c)
	save("two")
	want(map[string][]json.RawMessage{"one": {c}})
	save("two", a)
	if err := s.ForgetTools(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()
	want(map[string][]json.RawMessage{"two": {a}})
}

func testResults(t *testing.T, open storeOpener) {
	dir := t.TempDir()
	s := open(t, dir)
	ctx := t.Context()
	now := time.Now()
	long := store.StoredResult{Handle: "h1", Actor: "agent", Server: "s", Body: []byte(`"` + strings.Repeat("x", 1<<20) + `"`), Expires: now.Add(2 * time.Hour).Truncate(time.Microsecond)}
	past := store.StoredResult{Handle: "h2", Actor: "agent", Body: []byte(`1`), Expires: now.Add(-time.Second)}
	for _, r := range []store.StoredResult{long, past} {
		if err := s.PutResult(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()
	got, err := s.GetResult(ctx, "h1")
	if err != nil || string(got.Body) != string(long.Body) || got.Actor != "agent" || got.Server != "s" || !got.Expires.Equal(long.Expires) {
		t.Errorf("got result %s of %s until %v, %v", got.Handle, got.Actor, got.Expires, err)
	}
	for _, handle := range []string{"h2", "h3", "", "h%", "H1"} {
		var p *problem.Problem
		if _, err := s.GetResult(ctx, handle); !errors.As(err, &p) || p.Code != problem.NotFound {
			t.Errorf("GetResult(%q) gave %v", handle, err)
		}
	}
}
