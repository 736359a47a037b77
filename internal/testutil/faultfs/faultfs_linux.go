package faultfs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

// CheckAvailable returns why faults cannot be injected here, or nil.
func CheckAvailable() error {
	for _, tool := range []string{"mount", "umount", "mkfs.ext4", "e2fsck", "strace"} {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "faultfs-")
	if err != nil {
		return err
	}
	m, err := MountExt4(dir, 8<<20)
	if err == nil {
		err = m.Close()
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// SkipUnlessAvailable skips a test if faults cannot be injected; with CI=true it fails the test.
func SkipUnlessAvailable(t interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}) {
	t.Helper()
	err := CheckAvailable()
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("file system faults cannot be simulated here: %v", err)
	}
	if err != nil {
		t.Skipf("file system faults cannot be simulated here: %v", err)
	}
}

// Mount is a mounted file system.
type Mount struct {
	Dir   string
	image string // image file of an ext4
}

// MountTmpfs creates dir and mounts a tmpfs of size bytes there.
func MountTmpfs(dir string, size int64) (*Mount, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Mount{Dir: dir}, runCommand("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=700", size), "tmpfs", dir)
}

// MountExt4 creates dir and mounts an ext4 of size bytes there, from a file next to dir. It is remounted
// read-only on errors.
func MountExt4(dir string, size int64) (*Mount, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	m := &Mount{Dir: dir, image: filepath.Clean(dir) + ".ext4"}
	f, err := os.Create(m.image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return nil, err
	}
	if err := runCommand("mkfs.ext4", "-q", "-F", m.image); err != nil {
		return nil, err
	}
	return m, m.mountImage()
}

func (m *Mount) mountImage() error {
	return runCommand("mount", "-o", "loop,errors=remount-ro", m.image, m.Dir)
}

// MakeReadOnly makes an ext4 read-only, like a device error. Data that is not on the device can be read until the
// unmount and is then lost. File mappings stay writable.
func (m *Mount) MakeReadOnly() error { return runCommand("mount", "-o", "remount,abort", m.Dir) }

// ext4Shutdown is EXT4_IOC_SHUTDOWN, and noLogFlush discards data that is not on the device.
const ext4Shutdown, noLogFlush = 0x8004587d, 2

// FailWithEIO makes all operations of an ext4 fail with EIO.
func (m *Mount) FailWithEIO() error {
	d, err := os.Open(m.Dir)
	if err != nil {
		return err
	}
	defer d.Close()
	how := uint32(noLogFlush)
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, d.Fd(), ext4Shutdown, uintptr(unsafe.Pointer(&how))); e != 0 {
		return fmt.Errorf("shut down %s: %w", m.Dir, e)
	}
	return nil
}

// UnmountInUse unmounts a file system while it is in use.
func (m *Mount) UnmountInUse() error { return runCommand("umount", "-l", m.Dir) }

// CheckAndRemount checks an ext4 and mounts it again, with the data on the device, after UnmountInUse or FailWithEIO.
// Processes with open files keep the previous files.
func (m *Mount) CheckAndRemount() error {
	// Open files keep the device in use: its data is moved to another one.
	next := m.image + ".next"
	if err := runCommand("cp", "--sparse=always", m.image, next); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(m.image), os.Rename(next, m.image)); err != nil {
		return err
	}
	var code *exec.ExitError
	if err := exec.Command("e2fsck", "-fy", m.image).Run(); err != nil && (!errors.As(err, &code) || code.ExitCode() > 2) {
		return fmt.Errorf("check %s: %w", m.image, err) // 1 and 2: repaired
	}
	return m.mountImage()
}

// UnmountAndRepair checks and repairs a failed ext4.
func (m *Mount) UnmountAndRepair() error {
	if err := m.UnmountInUse(); err != nil {
		return err
	}
	return m.CheckAndRemount()
}

// FillUp fills the file system with a file.
func (m *Mount) FillUp() error {
	f, err := os.Create(m.fillerPath())
	if err != nil {
		return err
	}
	defer f.Close()
	for _, n := range []int{1 << 20, 1 << 12} {
		for err = error(nil); err == nil; {
			_, err = f.Write(make([]byte, n))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
	}
	return nil
}

// RemoveFiller removes the file that FillUp created.
func (m *Mount) RemoveFiller() error { return os.Remove(m.fillerPath()) }

func (m *Mount) fillerPath() string { return filepath.Join(m.Dir, "filler") }

// Close unmounts the file system, even if it is in use.
func (m *Mount) Close() error {
	err := runCommand("umount", "-l", m.Dir)
	if m.image != "" {
		err = errors.Join(err, os.Remove(m.image))
	}
	return err
}

func runCommand(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// SyscallFaults is a process whose system calls fail.
type SyscallFaults struct {
	strace *exec.Cmd
	ended  chan struct{} // closed when strace ends
}

// InjectSyscallFaults makes system calls of a running process fail, by an expression of strace:
// "fsync,fdatasync:error=EIO:when=3+". It returns when strace has attached. With paths, only calls on
// these files fail.
func InjectSyscallFaults(pid int, expression string, paths ...string) (*SyscallFaults, error) {
	calls, _, _ := strings.Cut(expression, ":")
	args := []string{"-f", "-o", "/dev/null", "-e", "trace=" + calls, "-e", "inject=" + expression, "-p", fmt.Sprint(pid)}
	for _, path := range paths {
		args = append(args, "-P", path)
	}
	cmd := exec.Command("strace", args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	i := &SyscallFaults{strace: cmd, ended: make(chan struct{})}
	lines := bufio.NewReader(stderr)
	first := ""
	for err == nil && !strings.Contains(first, " attached") { // "strace: Process 7 attached…"
		first, err = lines.ReadString('\n')
	}
	go func() {
		defer close(i.ended)
		_, _ = io.Copy(io.Discard, lines) // threads that start and end
	}()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("strace did not attach: %q", strings.TrimSpace(first)), err, i.Stop())
	}
	return i, nil
}

// Stop detaches from the process; its system calls work again.
func (i *SyscallFaults) Stop() error {
	_ = i.strace.Process.Signal(syscall.SIGINT) // it ends with the process
	<-i.ended
	_ = i.strace.Wait() // a signal ends it
	return nil
}
