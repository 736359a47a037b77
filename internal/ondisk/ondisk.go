// Package ondisk writes files so that they survive a loss of power, and locks
// them for one process.
//
// It guarantees that what WriteNew and SyncDir were given survives that loss once
// they have returned, as far as the system can be asked for it. It
// knows nothing of what is in files, and keeps no second copy of one.
package ondisk

import "errors"

// ErrLocked is why Lock fails when another process has the file.
var ErrLocked = errors.New("another process uses the file")

// lockedError is an ErrLocked in the words of the system.
type lockedError struct{ error }

func (lockedError) Is(target error) bool { return target == ErrLocked }
