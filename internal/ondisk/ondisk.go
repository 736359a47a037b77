// Package ondisk writes files durably and locks them for one process.
//
//   - WriteNewFile and SyncDir return only after the data survives a power loss, as far as the system guarantees it.
//   - The package does not interpret the content of files and keeps no backups.
package ondisk

import (
	"errors"
	"os"
)

// ErrLocked is the error of LockFile if another process has locked the file.
var ErrLocked = errors.New("another process uses the file")

// LockedFile is a file that is locked for this process until it is closed or the process ends.
type LockedFile struct{ *os.File }

// lockedError is ErrLocked with the error text of the operating system.
type lockedError struct{ error }

func (lockedError) Is(target error) bool { return target == ErrLocked }
