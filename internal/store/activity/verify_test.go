package activity

import (
	"context"
	"testing"

	"golang.org/x/sync/singleflight"
)

// spoolCheck is the result of readAndVerify.
type spoolCheck struct {
	Entries     int64
	First, Last int64  // the numbers of the first and the last entry
	Break       string // the first break of the chain; empty if there is none
}

// readAndVerify reads the spool and checks its chain.
func readAndVerify(t *testing.T, s *spool) spoolCheck {
	t.Helper()
	m := s.snapshot()
	b, err := m.firstBreak()
	switch {
	case err != nil:
		t.Fatal(err)
	case b != nil:
		return spoolCheck{Break: b.Reason}
	case len(m.segments) == 0:
		return spoolCheck{}
	}
	found := spoolCheck{First: m.segments[0].first, Last: m.end.Seq}
	found.Entries = found.Last - found.First + 1
	return found
}

// slowChainStore is a store with an empty chain. The test controls when a read of the chain completes.
type slowChainStore struct {
	memoryStore
	begun, goOn chan struct{}
}

func (s *slowChainStore) EachChainPart(ctx context.Context, _ func(ChainPart) error) (int64, SpoolPosition, error) {
	s.begun <- struct{}{}
	select {
	case <-s.goOn:
		return 7, SpoolPosition{}, nil
	case <-ctx.Done():
		return 0, SpoolPosition{}, ctx.Err()
	}
}

// TestVerifyRunsOnce checks that concurrent callers share one verification, which continues if the first caller stops
// waiting, and that closing a log stops the verification.
func TestVerifyRunsOnce(t *testing.T) {
	slow := &slowChainStore{begun: make(chan struct{}), goOn: make(chan struct{})}
	l, err := Open(Options{Dir: t.TempDir()}, slow)
	if err != nil {
		t.Fatal(err)
	}
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { _, err := l.Verify(leaving); left <- err }()
	<-slow.begun
	leave()
	if err := <-left; err != context.Canceled {
		t.Errorf("the caller that stopped waiting got %v", err)
	}
	var results []<-chan singleflight.Result
	for range 5 {
		results = append(results, l.startOrJoinVerification())
	}
	if l.Health().Verified != nil {
		t.Error("Health reports an unfinished verification")
	}
	slow.goOn <- struct{}{}
	for _, result := range results { // a second verification would not end
		r := <-result
		if v, _ := r.Val.(Verification); r.Err != nil || v.Records != 7 || !v.OK || *l.Health().Verified != (Verified{v.At, true}) {
			t.Errorf("verification = %+v, %v", r.Val, r.Err)
		}
	}
	go func() { _, err := l.Verify(t.Context()); left <- err }()
	<-slow.begun
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-left; err == nil {
		t.Error("the stopped verification returned no error")
	}
	if _, err := l.Verify(t.Context()); err == nil {
		t.Error("verifying a closed log succeeded")
	}
}
