package store_test

import (
	"testing"
	"time"
)

// testSessions checks that the first key stays, and that ended sessions are known after a restart until their time is
// over.
func testSessions(t *testing.T, open storeOpener) {
	dir := t.TempDir()
	s := open(t, dir)
	ctx := t.Context()
	key := func(proposed, want string) {
		t.Helper()
		if got, err := s.SessionKey(ctx, []byte(proposed)); err != nil || string(got) != want {
			t.Errorf("the key is %q, %v, not %q", got, err, want)
		}
	}
	ended := func(want map[string]bool) {
		t.Helper()
		for record, is := range want {
			if got, err := s.IsSessionEnded(ctx, record); err != nil || got != is {
				t.Errorf("%s has ended: %v, %v, not %v", record, got, err, is)
			}
		}
	}
	save := func(until map[string]time.Time) {
		t.Helper()
		if err := s.SaveEndedSessions(ctx, until); err != nil {
			t.Error(err)
		}
	}
	key("first", "first")
	key("second", "first")
	now := time.Now()
	ended(map[string]bool{"a": false})
	save(map[string]time.Time{"a": now.Add(time.Hour), "b": now.Add(-time.Hour)})
	save(map[string]time.Time{"a": now.Add(-time.Hour), "c": now.Add(time.Hour)}) // the first time stays
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer func() { _ = s.Close() }()
	key("third", "first")
	save(nil)
	ended(map[string]bool{"a": true, "b": false, "c": true, "d": false})
}
