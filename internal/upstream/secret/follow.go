package secret

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// pollInterval is how often the index is checked for changes by other processes.
const pollInterval = 2 * time.Second

// FollowChanges calls changed after each change of the index by any process, until ctx ends.
// Changes of the keyring by other programs are not noticed.
func (s *Store) FollowChanges(ctx context.Context, changed func()) {
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	last := s.indexStamp()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if now := s.indexStamp(); now != last {
			last = now
			changed()
		}
	}
}

// indexStamp identifies a state of the index file.
func (s *Store) indexStamp() (stamp struct {
	at   time.Time
	size int64
}) {
	if info, err := os.Stat(filepath.Join(s.dir, indexName)); err == nil {
		stamp.at, stamp.size = info.ModTime(), info.Size()
	}
	return stamp
}
