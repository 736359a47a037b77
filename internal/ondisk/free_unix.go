//go:build linux || darwin

package ondisk

import "syscall"

// FreeSpace returns the free space on the disk of dir, in bytes. Some file systems do not report it.
func FreeSpace(dir string) (free int64, known bool) {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || fs.Blocks == 0 {
		return 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), true
}
