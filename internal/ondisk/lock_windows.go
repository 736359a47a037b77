package ondisk

import (
	"errors"
	"os"
	"syscall"
)

// sharingViolation is the error for opening a file that another process has opened exclusively.
const sharingViolation syscall.Errno = 32

// LockFile opens or creates the file at path and locks it. It returns ErrLocked if another process has locked the file.
func LockFile(path string) (*LockedFile, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const shareNothing = 0
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, shareNothing, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err == nil {
		return &LockedFile{os.NewFile(uintptr(h), path)}, nil
	}
	err = &os.PathError{Op: "open", Path: path, Err: err}
	if errors.Is(err, sharingViolation) {
		err = lockedError{err}
	}
	return nil, err
}
