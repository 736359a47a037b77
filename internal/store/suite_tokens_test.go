package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/config/auth"
)

// testTokens checks that tokens are loaded as they were saved, also after a restart. It also checks that nil and empty
// lists stay different, and that names and hashes are unique.
func testTokens(t *testing.T, open storeOpener) {
	dir := t.TempDir()
	s := open(t, dir)
	ctx := t.Context()
	at := func(minute int) time.Time { return time.Date(2026, 1, 15, 10, minute, 0, 1000, time.UTC) }
	one := auth.Token{ID: "i1", Name: "a.One", Hash: [32]byte{0: 1, 31: 2}, Profile: "research", Servers: []string{"git*", `"é"`}, Lanes: []string{"read"}, By: "admin", Created: at(1), Expires: at(9)}
	two := auth.Token{ID: "i2", Name: "two", Hash: [32]byte{0: 2}, By: "admin", Created: at(2)}
	none := auth.Token{ID: "i3", Name: "none", Hash: [32]byte{0: 3}, Servers: []string{}, Lanes: []string{}, By: "admin", Created: at(3), Used: at(4)}
	want := func(want ...auth.Token) {
		t.Helper()
		got, err := s.LoadTokens(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	want()
	for _, token := range []auth.Token{two, one, none} {
		if err := s.SaveToken(ctx, token); err != nil {
			t.Fatal(err)
		}
	}
	want(one, none, two)
	for what, again := range map[string]auth.Token{
		"name": {ID: "i4", Name: "two", Hash: [32]byte{0: 4}}, "hash": {ID: "i4", Name: "four", Hash: two.Hash}, "id": {ID: "i2", Name: "four", Hash: [32]byte{0: 4}},
	} {
		if err := s.SaveToken(ctx, again); err == nil {
			t.Errorf("two tokens have the same %s", what)
		}
	}
	if err := s.SetTokenUsed(ctx, "i2", at(7)); err != nil {
		t.Error(err)
	}
	for range 2 { // dropping a missing token is not an error
		if err := s.DropToken(ctx, "i3"); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer func() { _ = s.Close() }()
	two.Used = at(7)
	want(one, two)
	if err := s.ReplaceTokens(ctx, []auth.Token{none, one, one}); err == nil {
		t.Error("ReplaceTokens accepted tokens that cannot be stored")
	}
	want(one, two)
	if err := s.ReplaceTokens(ctx, []auth.Token{none, one}); err != nil {
		t.Error(err)
	}
	want(one, none)
}
