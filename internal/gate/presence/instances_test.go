package presence

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/problem"
)

// secondInstance returns another instance on the same database, which does not know any anchor.
func (w *world) secondInstance() *world {
	w.t.Helper()
	b := &world{t: w.t, db: w.db, vault: &memory{}, log: &memory{}, requiredKind: None, now: w.now}
	b.restart()
	return b
}

// pair returns two instances that know an anchor, which has signed approve.
func pair(t *testing.T) (here, there *world, k ed25519.PrivateKey) {
	here = newWorld(t)
	there = here.secondInstance()
	_, k = here.enrol()
	if err := here.do(k, require(here.Gate, approve)); err != nil {
		t.Fatal(err)
	}
	there.looks("missing")
	if err := there.do(k, there.AddFingerprintToPlaces); err != nil || !there.IsConfirmed(approve) {
		t.Fatal(err)
	}
	return here, there, k
}

// looks makes the instance load what others have stored, and checks the reason why no signature is valid. "" means
// that all signatures are valid.
func (w *world) looks(void string) {
	w.t.Helper()
	if err := w.Reload(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	s := w.standing()
	if (s.Void == "") != (void == "") || !strings.Contains(s.Void, void) || void != "" && s.Remedy == "" || w.IsConfirmed(approve) != (void == "") {
		w.t.Errorf("%+v, want %q", s, void)
	}
}

// unrelatedAnchor sets an anchor that does not follow from an earlier one.
func (w *world) unrelatedAnchor() (Anchor, ed25519.PrivateKey) {
	w.t.Helper()
	a, k, err := newPassphraseAnchor([]byte("another passphrase"), w.HeadFingerprint(), w.now, cheap)
	if err == nil {
		err = w.do(k, func(ctx context.Context) error { return w.SetAnchor(ctx, a) })
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return a, k
}

// attempt is do for a call that may succeed without a signature.
func (w *world) attempt(k ed25519.PrivateKey, f func(context.Context) error) error {
	err := f(WithProof(w.t.Context(), &Proof{For: request}))
	if p := problem.From(err); p == nil || p.Detail("statement") == nil {
		return err
	}
	return w.do(k, f)
}

// TestResetReachesOtherInstances checks that a reset at one instance, and its cancellation, take effect at all
// instances.
func TestResetReachesOtherInstances(t *testing.T) {
	here, there, k := pair(t)
	if err := here.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	there.looks("Presence was reset. Until 2026-11-27T10:00:00Z")
	here.looks("Presence was reset")
	if err := there.do(k, there.CancelReset); err != nil {
		t.Fatal(err)
	}
	there.looks("")
	here.looks("")
	here.restart()
	here.looks("")
	// An instance that was offline for a while catches up.
	if err := errors.Join(here.Reset(t.Context()), here.do(k, here.CancelReset)); err != nil {
		t.Fatal(err)
	}
	there.looks("")
}

// TestInstancesTimeAResetThemselves checks that each instance measures the day itself, whatever time is in the
// database, which an attacker may have written. A user proves the anchor after the reset.
func TestInstancesTimeAResetThemselves(t *testing.T) {
	for what, seen := range map[string]bool{"seen": true, "away": false} {
		t.Run(what, func(t *testing.T) {
			here, there, _ := pair(t)
			if err := here.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			if seen {
				there.looks("Presence was reset")
			}
			here.now = here.now.Add(resetTime)
			second, k2 := here.unrelatedAnchor()
			if err := here.do(k2, require(here.Gate, other)); err != nil {
				t.Fatal(err)
			}
			if !seen { // the instance learns of the reset and of the new anchor at the same time
				there.now = here.now
				for range 2 {
					there.looks("Presence was reset. Until 2026-11-28T10:00:00Z")
					if err := there.AddFingerprintToPlaces(WithProof(t.Context(), &Proof{For: request})); err == nil || there.standing().MayJoin {
						t.Error("the instance joined before the day was over")
					}
					there.restart()
				}
			}
			there.now = there.now.Add(resetTime)
			there.looks("missing")
			if err := there.do(k2, there.AddFingerprintToPlaces); err != nil {
				t.Fatal(err)
			}
			if there.IsConfirmed(approve) || !there.IsConfirmed(other) || there.log.mark != (FingerprintMark{Anchor: second.Fingerprint()}) {
				t.Errorf("%+v", there.standing())
			}
		})
	}
}

// TestForeignAnchorChainIsIgnored checks that an attacker that writes to the database cannot make an instance accept
// another anchor, with or without a reset in between, and that withdrawn decisions do not return.
func TestForeignAnchorChainIsIgnored(t *testing.T) {
	here, there, k := pair(t)
	theirs := here.db.anchors
	var ownKey ed25519.PrivateKey
	own := func(after Digest) Anchor { // returns an anchor that signs itself
		a, key, err := newPassphraseAnchor([]byte("my own passphrase"), after, here.now, cheap)
		if err != nil {
			t.Fatal(err)
		}
		s := NewDraftStatement([]Claim{a.toClaim()}, here.now.UTC().Truncate(time.Microsecond), strings.ToLower(rand.Text()))
		s.For, s.Anchor = "x", a.Fingerprint()
		here.db.statements = append(here.db.statements, Evidence{SignStatement(s, key), []Claim{a.toClaim()}})
		a.Nonce, ownKey = s.Nonce, key
		return a
	}
	backdated := func(after Digest) Anchor {
		return Anchor{Kind: reset, Since: here.now.Add(-3 * resetTime), Before: after}
	}
	first := own(Digest{})
	old := backdated(theirs[0].Fingerprint())
	for what, all := range map[string][]Anchor{
		"their own":         {first},
		"a reset of it":     {first, backdated(first.Fingerprint())},
		"a reset":           {theirs[0], old},
		"after a reset":     {theirs[0], old, own(old.Fingerprint())},
		"after the person":  {theirs[0], own(theirs[0].Fingerprint())},
		"nothing":           nil,
		"reset and nothing": {backdated(Digest{})},
	} {
		here.db.anchors = all
		for _, w := range []*world{here, there} {
			if err := w.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			s := w.standing()
			if s.Void == "" || !s.On || w.IsConfirmed(approve) {
				t.Errorf("%s: %+v", what, s)
			}
			for name, err := range map[string]error{
				"join": w.attempt(ownKey, w.AddFingerprintToPlaces),
				"set": w.attempt(ownKey, func(ctx context.Context) error {
					a := first
					a.Before = w.HeadFingerprint()
					return w.SetAnchor(ctx, a)
				}),
				"call off": w.attempt(ownKey, w.CancelReset),
			} {
				if err == nil {
					t.Errorf("%s: %s is accepted", what, name)
				}
			}
		}
	}
	// After the old state is restored, no signature is valid at an instance that saw a reset, until the user cancels
	// the reset.
	here.db.anchors = theirs
	if err := errors.Join(here.Reload(t.Context()), there.Reload(t.Context())); err != nil {
		t.Fatal(err)
	}
	there.looks("the database has no reset")
	here.looks("the database has no reset")
	if err := here.do(k, here.CancelReset); err != nil {
		t.Fatal(err)
	}
	here.looks("")
	there.looks("")
}

// TestAnchorsAreNotOverwritten checks that an instance cannot set an anchor if it does not know yet that another one
// was set.
func TestAnchorsAreNotOverwritten(t *testing.T) {
	here, there, k := pair(t)
	if err := here.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, _, err := newPassphraseAnchor([]byte("another passphrase"), there.HeadFingerprint(), there.now, cheap)
	if err != nil {
		t.Fatal(err)
	}
	refusedWith(t, there.do(k, func(ctx context.Context) error { return there.SetAnchor(ctx, second) }), "the anchor was replaced in the meantime")
	here.looks("Presence was reset")
	there.looks("Presence was reset")
}

// TestAnchorNoneIsFollowed checks that instances follow the anchor none. An anchor after it does not follow from an
// earlier one, and must be proven again.
func TestAnchorNoneIsFollowed(t *testing.T) {
	here, there, k := pair(t)
	none := Anchor{Kind: None, Since: here.now.UTC().Truncate(time.Microsecond), Before: here.HeadFingerprint()}
	if err := here.do(k, func(ctx context.Context) error { return here.SetAnchor(ctx, none) }); err != nil {
		t.Fatal(err)
	}
	if there.Reload(t.Context()) != nil || there.IsOn() {
		t.Errorf("%+v", there.standing())
	}
	_, k2 := here.unrelatedAnchor()
	there.looks("missing")
	if err := there.do(k2, there.AddFingerprintToPlaces); err != nil || there.standing().Void != "" {
		t.Errorf("%v %+v", err, there.standing())
	}
}

// FuzzParseMark checks that a mark has exactly one encoding.
func FuzzParseMark(f *testing.F) {
	d := Digest{1}
	for _, m := range []FingerprintMark{{}, {Anchor: d}, {Reset: d, At: time.Unix(1, 2000)}, {Anchor: d, Reset: d}} {
		f.Add(m.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := ParseFingerprintMark(text); err == nil && m.String() != text {
			t.Errorf("%q is parsed as %q", text, m)
		}
	})
}
