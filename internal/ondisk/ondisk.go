// Package ondisk writes files durably and locks them for one process.
//
//   - WriteNewFile and SyncDir return when the data survives a power loss, as far as the system allows.
//   - It knows nothing of the content of files and keeps no backups.
package ondisk

import (
	"errors"
	"os"
)

// ErrLocked is the error of LockFile if another process holds the file.
var ErrLocked = errors.New("another process uses the file")

// LockedFile is a file that is locked for this process until it is closed or the process ends.
type LockedFile struct{ *os.File }

// lockedError is an ErrLocked with the system's text.
type lockedError struct{ error }

func (lockedError) Is(target error) bool { return target == ErrLocked }
