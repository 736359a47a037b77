package ondisk

import (
	"errors"
	"os"
	"syscall"
)

// sharingViolation is the error of opening what somebody has open for himself.
const sharingViolation syscall.Errno = 32

// Lock opens the file at path, and makes it when there is none, for this process
// alone, until the file is closed or the process ends in whatever way. The error
// is ErrLocked when another one has it.
func Lock(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const shareNothing = 0
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, shareNothing, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err == nil {
		return os.NewFile(uintptr(h), path), nil
	}
	err = &os.PathError{Op: "open", Path: path, Err: err}
	if errors.Is(err, sharingViolation) {
		err = lockedError{err}
	}
	return nil, err
}
