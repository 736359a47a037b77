package faultrun

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"mcpproxy/internal/testutil/faultfs"
)

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	all := []Scenario{
		{Name: "kill"},
		{Name: "full", disk: tmpfs, small: true, fault: full, live: true, refuses: true, linger: time.Second},
		{Name: "full, killed", disk: tmpfs, small: true, fault: full, refuses: true, linger: time.Second},
		{Name: "full under load", disk: ext4, fault: full, live: true, refuses: true, linger: time.Second},
		{Name: "full under load, killed", disk: ext4, fault: full, refuses: true, linger: time.Second},
		{Name: "read-only", disk: ext4, fault: dies((*faultfs.Mount).Abort), live: true, refuses: true, linger: time.Second},
		{Name: "read-only, killed", disk: ext4, fault: dies((*faultfs.Mount).Abort), linger: 2 * time.Second},
		{Name: "EIO", disk: ext4, fault: dies((*faultfs.Mount).Shutdown), live: true, refuses: true, linger: time.Second},
		{Name: "EIO, killed", disk: ext4, fault: dies((*faultfs.Mount).Shutdown), linger: 2 * time.Second},
		{Name: "spool file deleted", fault: deletes("spool/*.spool"), live: true},
		{Name: "spool file deleted, killed", fault: deletes("spool/*.spool"), linger: 2 * time.Second},
		{Name: "spool deleted", fault: deletes("spool"), live: true},
		{Name: "spool deleted, killed", fault: deletes("spool"), linger: 2 * time.Second},
		{Name: "database deleted", fault: deletes("mcpproxy.db*"), live: true},
		{Name: "data deleted", fault: deletes(""), live: true},
	}
	for _, e := range []string{
		"fsync,fdatasync:error=EIO", "pwrite64:error=EIO", "pwrite64:error=ENOSPC", "fallocate,ftruncate:error=EIO",
		"fallocate:error=ENOSPC", "fsync,fdatasync,pwrite64,fallocate:error=EIO",
	} {
		all = append(all,
			Scenario{Name: "inject " + e, fault: injects(e), live: true, linger: 2500 * time.Millisecond},
			Scenario{Name: "inject " + e + ", killed", fault: injects(e), linger: 2500 * time.Millisecond})
	}
	for _, s := range []Scenario{
		{Name: "kill"},
		{Name: "full", disk: tmpfs, small: true, fault: full, live: true, refuses: true, linger: time.Second},
		{Name: "full, killed", disk: tmpfs, small: true, fault: full, refuses: true, linger: time.Second},
		{Name: "read-only, killed", disk: ext4, fault: dies((*faultfs.Mount).Abort), linger: 2 * time.Second},
		{Name: "spool deleted, killed", fault: deletes("spool"), linger: 2 * time.Second},
		{Name: "inject fsync,write:error=EIO", fault: injects("fsync,write:error=EIO", "spool/*.spool"), live: true, linger: 2500 * time.Millisecond},
		{Name: "inject fsync,write:error=EIO, killed", fault: injects("fsync,write:error=EIO", "spool/*.spool"), linger: 2500 * time.Millisecond},
	} {
		s.Name, s.config = "power: "+s.Name, `"activity_durability":"power",`
		all = append(all, s)
	}
	return all
}

func tmpfs(dir string, rnd *rand.Rand) (*faultfs.Mount, error) {
	return faultfs.Tmpfs(dir, (4+rnd.Int64N(13))<<20)
}

func ext4(dir string, _ *rand.Rand) (*faultfs.Mount, error) { return faultfs.Ext4(dir, 128<<20) }

// full fills the disk.
func full(x *run) (end func() error, err error) { return x.disk.Unfill, x.disk.Fill() }

// dies makes a disk fail; the fault ends with its repair.
func dies(how func(*faultfs.Mount) error) func(*run) (func() error, error) {
	return func(x *run) (func() error, error) { return x.disk.Repair, how(x.disk) }
}

// deletes removes files of the data directory, or all of it. The fault ends when they exist again.
func deletes(pattern string) func(*run) (func() error, error) {
	return func(x *run) (func() error, error) {
		gone, err := filepath.Glob(filepath.Join(x.data, pattern))
		if err != nil || len(gone) == 0 {
			return nil, fmt.Errorf("there is no %s: %w", pattern, err)
		}
		for _, path := range gone {
			err = errors.Join(err, faultfs.Delete(path))
		}
		began := time.Now()
		return func() error {
			for time.Since(began) < recoverTime {
				if there, _ := filepath.Glob(filepath.Join(x.data, "spool", "*.spool")); len(there) > 0 {
					if _, err := os.Stat(filepath.Join(x.data, "mcpproxy.db")); err == nil {
						return nil
					}
				}
				time.Sleep(10 * time.Millisecond)
			}
			return nil // the caller checks its health next
		}, err
	}
}

// injects makes system calls fail: all of them, or those on some files of the
// data directory.
func injects(expression string, patterns ...string) func(*run) (func() error, error) {
	return func(x *run) (func() error, error) {
		var paths []string
		for _, pattern := range patterns {
			found, err := filepath.Glob(filepath.Join(x.data, pattern))
			if err != nil {
				return nil, err
			}
			paths = append(paths, found...)
		}
		i, err := faultfs.Inject(x.daemon.pid(), expression, paths...)
		if err != nil {
			return nil, err
		}
		return i.Stop, nil
	}
}
