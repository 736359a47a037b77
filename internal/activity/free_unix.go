//go:build linux || darwin

package activity

import "syscall"

// freeBytes is the room on the disk of dir. Some file systems do not tell.
func freeBytes(dir string) (free int64, known bool) {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || fs.Blocks == 0 {
		return 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), true
}
