package store

import (
	"bytes"
	"context"
	"time"
)

// LearnedSession is a reason why clients need their own session with a server.
type LearnedSession struct {
	Server string
	Launch []byte // fingerprint of the launch that it was learned of
	Need   string
	Since  time.Time
}

// SaveLearnedSession stores a need, and deletes those of other launches of the server. A stored need keeps its time.
func (s *commonStore) SaveLearnedSession(ctx context.Context, l LearnedSession) error {
	return s.db.update(ctx, func(_ context.Context, t sqlTx) error {
		t.write("DELETE FROM learned_session WHERE server = ? AND launch <> ?", l.Server, l.Launch)
		t.write("INSERT INTO learned_session (server, launch, need, since) VALUES (?, ?, ?, ?) ON CONFLICT (server, need) DO NOTHING",
			l.Server, l.Launch, l.Need, l.Since.UnixMicro())
		return nil
	})
}

// LearnedSessions returns all stored needs, sorted by server and need.
func (s *commonStore) LearnedSessions(ctx context.Context) ([]LearnedSession, error) {
	return viewed(ctx, s.db, func(ctx context.Context, r sqlReader) ([]LearnedSession, error) {
		var one LearnedSession
		var launch []byte
		var since int64
		return collectRows(ctx, r, scanTargets{&one.Server, &launch, &one.Need, &since}, func() (LearnedSession, error) {
			one.Launch, one.Since = bytes.Clone(launch), time.UnixMicro(since)
			return one, nil
		}, "SELECT server, launch, need, since FROM learned_session ORDER BY server, need")
	})
}
