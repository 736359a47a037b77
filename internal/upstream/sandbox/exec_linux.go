package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// selfProgram is this program, also after its file was replaced.
const selfProgram = "/proc/self/exe"

// probeArgument makes ExecCommand check whether namespaces work.
const probeArgument = "probe"

// exitNotRun is the exit code if the server was not run.
const exitNotRun = 125

// probeSupport finds out what the kernel offers.
func probeSupport() machineSupport {
	abi, err := landlocksys.LandlockGetABIVersion()
	if err != nil {
		abi = 0
	}
	_, err = syscallFilter(NoNetwork, true)
	p := machineSupport{os: runtime.GOOS, landlock: abi, syscalls: err == nil && seccompWorks()}
	cmd := exec.Command(selfProgram, ExecCommand, probeArgument)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	isolate(cmd.SysProcAttr, false)
	p.namespaces = cmd.Run() == nil
	return p
}

// isolate starts a process in namespaces of its own, as the same user.
func isolate(attr *syscall.SysProcAttr, network bool) {
	attr.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if !network {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
}

// Exec runs ExecCommand with its arguments and returns the exit code. It replaces this process by the server where it
// can.
func Exec(args []string) int {
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error: "+err.Error())
		return exitNotRun
	}
	return code
}

func run(args []string) (int, error) {
	if len(args) == 1 && args[0] == probeArgument {
		return 0, mountPrivately(nil)
	}
	var p plan
	if len(args) != 1 {
		return 0, errors.New("this command is for MCPProxy itself")
	}
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return 0, fmt.Errorf("read the plan of the sandbox: %w", err)
	}
	if p.prepares() {
		return prepareAndRun(p)
	}
	return runRestricted(p)
}

// prepareAndRun compares the pin of the package and makes the package available, outside of the sandbox, and then starts
// the server in it.
func prepareAndRun(p plan) (int, error) {
	if p.Compare {
		var err error
		if p, err = p.compared(); err != nil {
			return 0, err
		}
	}
	if len(p.Install) > 0 {
		install := exec.Command(p.Install[0], p.Install[1:]...)
		install.Stdout, install.Stderr = os.Stderr, os.Stderr
		if err := install.Run(); err != nil {
			return 0, fmt.Errorf("install the package with %s: %w", filepath.Base(p.Install[0]), err)
		}
	}
	p, err := p.resolved(os.Environ(), "")
	if err == nil && len(p.Install) > 0 {
		err = errNotResolved("%s has finished, but its package is not in the cache", filepath.Base(p.Install[0]))
	}
	if err != nil {
		return 0, err
	}
	runtime.LockOSThread() // Pdeathsig is bound to the thread
	server := exec.Command(selfProgram, p.arguments()...)
	server.Stdin, server.Stdout, server.Stderr = os.Stdin, os.Stdout, os.Stderr
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.Namespace {
		isolate(server.SysProcAttr, p.Rules.HasNetwork())
	}
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP) // the server gets them, too
	if err := server.Start(); err != nil {
		return 0, fmt.Errorf("start the sandbox: %w", err)
	}
	closeStandardFiles()
	_ = server.Wait()
	return exitCode(server.ProcessState.Sys().(syscall.WaitStatus)), nil
}

// closeStandardFiles closes the pipes, which belong to the server.
func closeStandardFiles() {
	for _, f := range []io.Closer{os.Stdin, os.Stdout, os.Stderr} {
		f.Close()
	}
}

func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// runRestricted restricts this process and runs the server.
func runRestricted(p plan) (int, error) {
	runtime.LockOSThread() // the restrictions of this thread are those of the server
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return 0, fmt.Errorf("close inherited files: %w", err)
	}
	granted, err := grantedAccess(p.Rules, p.Home, p.Private, p.Reads)
	if err != nil {
		return 0, err
	}
	if p.Namespace {
		if err := mountPrivately(append(granted.write, p.Tmp)); err != nil {
			return 0, fmt.Errorf("prepare the namespaces: %w", err)
		}
	}
	filter, err := syscallFilter(p.Rules.Network, !p.Namespace)
	if err != nil && !p.Rules.BestEffort {
		return 0, err
	}
	if err := dropCapabilities(); err != nil {
		return 0, err
	}
	if err := restrictFiles(p, granted); err != nil {
		return 0, fmt.Errorf("restrict files: %w", err)
	}
	if err := filter.load(); err != nil && !p.Rules.BestEffort {
		return 0, fmt.Errorf("restrict system calls: %w", err)
	}
	if p.TmpHome {
		if err := os.Setenv("HOME", p.Tmp); err != nil {
			return 0, err
		}
	}
	argv := append([]string{p.Program}, p.ProgArgs...)
	if !p.Namespace {
		return 0, fmt.Errorf("run %s: %w", p.Program, syscall.Exec(p.Program, argv, os.Environ()))
	}
	return runAsInit(p.Program, argv)
}

// runAsInit runs the server as a child of this process, which is the first one of its namespace. When it ends, the
// kernel ends all others.
func runAsInit(program string, argv []string) (int, error) {
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP) // the server gets them, too
	pid, err := syscall.ForkExec(program, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", program, err)
	}
	closeStandardFiles()
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return exitNotRun, nil
		case ended == pid:
			return exitCode(status), nil
		}
	}
}

// mountPrivately makes all file systems read-only for this process, except the writable paths, and shows only the
// processes of its namespace in /proc.
func mountPrivately(writable []string) error {
	dir, dirErr := os.Getwd()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	for _, path := range writable {
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make the mounts read-only: %w", err)
	}
	for _, path := range writable {
		if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make %s writable: %w", path, err)
		}
	}
	if dirErr == nil {
		if err := os.Chdir(dir); err != nil { // into the new mount
			return err
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// dropCapabilities drops all capabilities of this thread, also for programs that it runs.
func dropCapabilities() error {
	for c := range uintptr(64) {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL && err != unix.EPERM {
			return fmt.Errorf("drop capabilities: %w", err)
		}
	}
	none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&none, &make([]unix.CapUserData, 2)[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// restrictFiles applies Landlock: files, TCP ports, abstract sockets and signals.
func restrictFiles(p plan, granted access) error {
	rules := []landlock.Rule{
		landlock.RWDirs(p.Tmp).WithRefer(),
		landlock.RWFiles(devices...).IgnoreIfMissing(),
	}
	if p.Namespace {
		rules = append(rules, landlock.RODirs("/proc"))
	} else {
		rules = append(rules, landlock.RODirs("/proc/"+strconv.Itoa(os.Getpid())),
			landlock.ROFiles("/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/version", "/proc/filesystems", "/proc/uptime", "/proc/loadavg").IgnoreIfMissing(),
			landlock.RODirs("/proc/sys").IgnoreIfMissing())
	}
	for _, path := range granted.read {
		rules = append(rules, pathRule(path, landlock.RODirs, landlock.ROFiles))
	}
	for _, path := range granted.write {
		rules = append(rules, pathRule(path, func(p ...string) landlock.FSRule { return landlock.RWDirs(p...).WithRefer() }, landlock.RWFiles))
	}
	config := landlock.V11
	if p.Rules.HasNetwork() {
		config.HandledAccessNet = 0
	}
	return config.BestEffort().Restrict(rules...) // NotEnforced has rejected kernels that are too old
}

// pathRule returns the rule for a folder or a file.
func pathRule(path string, folder, file func(...string) landlock.FSRule) landlock.Rule {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return file(path).IgnoreIfMissing()
	}
	return folder(path).IgnoreIfMissing()
}
