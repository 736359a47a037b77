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
		{Name: "full", disk: mountRandomTmpfs, small: true, fault: fillDisk, live: true, refuses: true, linger: time.Second},
		{Name: "full, killed", disk: mountRandomTmpfs, small: true, fault: fillDisk, refuses: true, linger: time.Second},
		{Name: "full under load", disk: mountExt4, fault: fillDisk, live: true, refuses: true, linger: time.Second},
		{Name: "full under load, killed", disk: mountExt4, fault: fillDisk, refuses: true, linger: time.Second},
		{Name: "read-only", disk: mountExt4, fault: diskFault((*faultfs.Mount).MakeReadOnly), live: true, refuses: true, linger: time.Second},
		{Name: "read-only, killed", disk: mountExt4, fault: diskFault((*faultfs.Mount).MakeReadOnly), linger: 2 * time.Second},
		{Name: "EIO", disk: mountExt4, fault: diskFault((*faultfs.Mount).FailWithEIO), live: true, refuses: true, linger: time.Second},
		{Name: "EIO, killed", disk: mountExt4, fault: diskFault((*faultfs.Mount).FailWithEIO), linger: 2 * time.Second},
		{Name: "spool file deleted", fault: deletionFault("spool/*.spool"), live: true},
		{Name: "spool file deleted, killed", fault: deletionFault("spool/*.spool"), linger: 2 * time.Second},
		{Name: "spool deleted", fault: deletionFault("spool"), live: true},
		{Name: "spool deleted, killed", fault: deletionFault("spool"), linger: 2 * time.Second},
		{Name: "database deleted", fault: deletionFault("mcpproxy.db*"), live: true},
		{Name: "data deleted", fault: deletionFault(""), live: true},
	}
	for _, e := range []string{
		"fsync,fdatasync:error=EIO", "pwrite64:error=EIO", "pwrite64:error=ENOSPC", "fallocate,ftruncate:error=EIO",
		"fallocate:error=ENOSPC", "fsync,fdatasync,pwrite64,fallocate:error=EIO",
	} {
		all = append(all,
			Scenario{Name: "inject " + e, fault: syscallFault(e), live: true, linger: 2500 * time.Millisecond},
			Scenario{Name: "inject " + e + ", killed", fault: syscallFault(e), linger: 2500 * time.Millisecond})
	}
	for _, s := range []Scenario{
		{Name: "kill"},
		{Name: "full", disk: mountRandomTmpfs, small: true, fault: fillDisk, live: true, refuses: true, linger: time.Second},
		{Name: "full, killed", disk: mountRandomTmpfs, small: true, fault: fillDisk, refuses: true, linger: time.Second},
		{Name: "read-only, killed", disk: mountExt4, fault: diskFault((*faultfs.Mount).MakeReadOnly), linger: 2 * time.Second},
		{Name: "spool deleted, killed", fault: deletionFault("spool"), linger: 2 * time.Second},
		{Name: "inject fsync,write:error=EIO", fault: syscallFault("fsync,write:error=EIO", "spool/*.spool"), live: true, linger: 2500 * time.Millisecond},
		{Name: "inject fsync,write:error=EIO, killed", fault: syscallFault("fsync,write:error=EIO", "spool/*.spool"), linger: 2500 * time.Millisecond},
	} {
		s.Name, s.config = "power: "+s.Name, `"activity_durability":"power",`
		all = append(all, s)
	}
	return all
}

func mountRandomTmpfs(dir string, rnd *rand.Rand) (*faultfs.Mount, error) {
	return faultfs.MountTmpfs(dir, (4+rnd.Int64N(13))<<20)
}

func mountExt4(dir string, _ *rand.Rand) (*faultfs.Mount, error) {
	return faultfs.MountExt4(dir, 128<<20)
}

// fillDisk fills the disk.
func fillDisk(x *scenarioRun) (end func() error, err error) {
	return x.disk.RemoveFiller, x.disk.FillUp()
}

// diskFault makes a disk fail; the fault ends with its repair.
func diskFault(how func(*faultfs.Mount) error) func(*scenarioRun) (func() error, error) {
	return func(x *scenarioRun) (func() error, error) { return x.disk.UnmountAndRepair, how(x.disk) }
}

// deletionFault removes files of the data directory, or all of it. The fault ends when they exist again.
func deletionFault(pattern string) func(*scenarioRun) (func() error, error) {
	return func(x *scenarioRun) (func() error, error) {
		gone, err := filepath.Glob(filepath.Join(x.data, pattern))
		if err != nil || len(gone) == 0 {
			return nil, fmt.Errorf("there is no %s: %w", pattern, err)
		}
		for _, path := range gone {
			err = errors.Join(err, faultfs.RemoveAllWithRetry(path))
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

// syscallFault makes system calls fail: all of them, or those on some files of the
// data directory.
func syscallFault(expression string, patterns ...string) func(*scenarioRun) (func() error, error) {
	return func(x *scenarioRun) (func() error, error) {
		var paths []string
		for _, pattern := range patterns {
			found, err := filepath.Glob(filepath.Join(x.data, pattern))
			if err != nil {
				return nil, err
			}
			paths = append(paths, found...)
		}
		i, err := faultfs.InjectSyscallFaults(x.daemon.pid(), expression, paths...)
		if err != nil {
			return nil, err
		}
		return i.Stop, nil
	}
}
