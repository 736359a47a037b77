package activity

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"mcpproxy/internal/ondisk"
)

const tmpfsMagic = 0x01021994

// FindTmpfsDir returns a directory whose files are in memory and survive the process, or "" if there is none.
func FindTmpfsDir() string {
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), "/dev/shm"} {
		var fs syscall.Statfs_t
		if filepath.IsAbs(dir) && syscall.Statfs(dir, &fs) == nil && int64(fs.Type) == tmpfsMagic {
			return dir
		}
	}
	return ""
}

// recentCopyPath returns the path of the second copy of the spool in dir.
func recentCopyPath(in, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(in, fmt.Sprintf("mcpproxy-%d-%s", os.Geteuid(), hex.EncodeToString(sum[:8]))), nil
}

// openRecentCopy opens the second copy at path. It also returns the content that an earlier process left in it.
func openRecentCopy(path string) (r *recentCopy, left [2][]byte, safe int64, err error) {
	file, err := openPrivateFile(path)
	if err != nil {
		return nil, left, 0, err
	}
	const size = copyHeadSize + 2*copyHalfSize
	fail := func(err error) (*recentCopy, [2][]byte, int64, error) {
		return nil, left, 0, errors.Join(err, file.Close())
	}
	before := make([]byte, size)
	n, err := file.ReadAt(before, 0)
	if err != nil && err != io.EOF {
		return fail(err)
	}
	if n == size {
		safe = int64(binary.LittleEndian.Uint64(before))
		left = [2][]byte{before[copyHeadSize : copyHeadSize+copyHalfSize], before[copyHeadSize+copyHalfSize:]}
	}
	// Allocate all pages. Without this, writing to a missing page could cause a memory fault.
	if err := syscall.Fallocate(int(file.Fd()), 0, 0, size); err != nil {
		return fail(fmt.Errorf("reserve disk space for the newest entries in %s: %w", path, err))
	}
	ends, err := openPrivateFile(path + ".ends")
	if err != nil {
		return fail(err)
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return fail(errors.Join(err, ends.Close()))
	}
	r = newMappedCopy(memory, file, ends)
	r.unmap = func() error { return syscall.Munmap(memory) }
	return r, left, safe, nil
}

// openPrivateFile opens and locks a file that only this user owns. The directory may be shared with other users.
func openPrivateFile(path string) (*ondisk.LockedFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	var st syscall.Stat_t
	err = syscall.Fstat(int(f.Fd()), &st)
	if err == nil && (st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Mode&0o077 != 0 || int(st.Uid) != os.Geteuid() || st.Nlink != 1) {
		err = fmt.Errorf("%s must be a regular file that only this user can access", path)
	}
	var locked *ondisk.LockedFile
	if err == nil {
		locked, err = ondisk.Lock(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return locked, nil
}
