package secret

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// followLook is how often a Store is looked at for what other processes did.
const followLook = 2 * time.Second

// Follow calls changed after each change of the index by whatever process, until
// ctx ends. What is changed in the keyring by other programs is not noticed.
func (s *Store) Follow(ctx context.Context, changed func()) {
	look := time.NewTicker(followLook)
	defer look.Stop()
	last := s.stamp()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if now := s.stamp(); now != last {
			last = now
			changed()
		}
	}
}

// stamp tells one state of the index from another.
func (s *Store) stamp() (stamp struct {
	at   time.Time
	size int64
}) {
	if info, err := os.Stat(filepath.Join(s.dir, indexName)); err == nil {
		stamp.at, stamp.size = info.ModTime(), info.Size()
	}
	return stamp
}
