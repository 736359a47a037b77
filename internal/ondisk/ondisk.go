// Package ondisk writes files durably and locks them for one process.
//
//   - WriteNewFile and SyncDir return when the data survives a power loss, as far as the system allows.
//   - It knows nothing of the content of files and keeps no backups.
package ondisk

import "errors"

// ErrLocked is the error of LockFile if another process holds the file.
var ErrLocked = errors.New("another process uses the file")

// lockedError is an ErrLocked with the system's text.
type lockedError struct{ error }

func (lockedError) Is(target error) bool { return target == ErrLocked }
