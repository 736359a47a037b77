package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/gate/presence"
)

// testPresence checks that anchors and statements are loaded in order and as they were saved, also after a restart. It
// also checks that a statement can be stored only once.
func testPresence(t *testing.T, open storeOpener) {
	dir := t.TempDir()
	s := open(t, dir)
	p, ctx := s.ApprovalQuestions().PresenceProofs(), t.Context()
	if all, err := p.LoadPresence(ctx); err != nil || all.Anchors != nil || all.Statements != nil || all.Bad != nil {
		t.Fatalf("%+v, %v", all, err)
	}
	at := time.Date(2026, 11, 26, 10, 0, 0, 1000, time.UTC)
	none := presence.Anchor{Kind: presence.None, Since: at}
	first, key, err := presence.NewPassphraseAnchor([]byte("correct horse battery"), none.Fingerprint(), at)
	if err != nil {
		t.Fatal(err)
	}
	evidence := func(nonce string, at time.Time, claims ...presence.Claim) presence.Evidence {
		s := presence.NewDraftStatement(claims, at, nonce)
		s.For, s.Anchor = "POST /api/v1/x", first.Fingerprint()
		return presence.Evidence{SignedStatement: presence.SignStatement(s, key), Claims: claims}
	}
	later := evidence(strings.Repeat("a", 26), at.Add(time.Hour), presence.NewClaim("approve tool", "é", "\n"))
	earlier := evidence(strings.Repeat("b", 26), at, "one \"a\"", "two")
	for _, e := range []presence.Evidence{later, earlier} {
		if err := p.SaveStatement(ctx, e); err != nil {
			t.Fatal(err)
		}
		if err := p.SaveStatement(ctx, e); !errors.Is(err, presence.ErrUsed) {
			t.Errorf("storing a statement again gave %v, want ErrUsed", err)
		}
	}
	for _, one := range []struct {
		head presence.Digest
		all  []presence.Anchor
		want error
	}{
		{first.Fingerprint(), []presence.Anchor{none}, presence.ErrMoved},
		{presence.Digest{}, []presence.Anchor{first}, nil},
		{presence.Digest{}, []presence.Anchor{none}, presence.ErrMoved},
		{first.Fingerprint(), []presence.Anchor{none, first}, nil},
	} {
		if err := p.SaveAnchors(ctx, one.head, one.all); !errors.Is(err, one.want) {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := open(t, dir).ApprovalQuestions().PresenceProofs().LoadPresence(ctx)
	want := presence.StoredState{Anchors: []presence.Anchor{none, first}, Statements: []presence.Evidence{earlier, later}}
	if diff := cmp.Diff(want, all); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
}
