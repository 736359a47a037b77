package activity

import (
	"errors"
	"os"
	"syscall"
)

// reserveDiskBlocks reserves disk blocks for a file after its end. known is false if the file system does not support
// this.
func reserveDiskBlocks(f *os.File, size int64) (known bool, err error) {
	const keepSize = 1
	err = syscall.Fallocate(int(f.Fd()), keepSize, 0, size)
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return false, nil
	}
	return err == nil, err
}
