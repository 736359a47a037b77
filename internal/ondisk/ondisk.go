// Package ondisk is what it takes that a file is on its disk, under its name, and
// one process's alone.
//
// It guarantees that what WriteNew and SyncDir were given survives the loss of
// power once they have returned, as far as the system can be asked for that. It
// knows nothing of what is in files, and keeps no second copy of one.
package ondisk

import "errors"

// ErrLocked is why Lock fails when another process has the file.
var ErrLocked = errors.New("another process uses the file")

// lockedError is an ErrLocked in the words of the system.
type lockedError struct{ error }

func (lockedError) Is(target error) bool { return target == ErrLocked }
