package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"mcpproxy/internal/upstream/process"
)

// escapeCommand makes the test program try to leave its sandbox.
const escapeCommand = "escape-attempts"

// targets are things outside of the sandbox that the attempts aim at.
type targets struct {
	Outside  string // a folder; it contains "secret" and "victim"
	Writable string // a folder that the sandbox may write to; it contains the link "link" to Outside
	Socket   string // the path of a listening unix socket
	Datagram string // the path of a unix datagram socket
	Abstract string // the name of an abstract socket
	TCP, UDP string
	PID      int // a process outside
	Env      string
	Only     []string // these attempts; empty: all, which a sandbox must contain
}

// sockaddr is the address of a unix socket.
func sockaddr(path string) *unix.SockaddrUnix { return &unix.SockaddrUnix{Name: path} }

// opened is the result of an attempt to get a descriptor.
func opened(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// answered is the result of a raw system call.
func answered(_, _ uintptr, e syscall.Errno) error {
	if e != 0 {
		return e
	}
	return nil
}

// dialled is the result of a connection attempt.
func dialled(network, address string) error {
	c, err := net.DialTimeout(network, address, 10*time.Second)
	if err == nil {
		if _, err = c.Write([]byte("x")); err == nil && strings.HasPrefix(network, "udp") {
			c.SetReadDeadline(time.Now().Add(10 * time.Second))
			_, err = c.Read(make([]byte, 1)) // the other side answers
		}
		c.Close()
	}
	return err
}

// readable is the result of reading a file.
func readable(path string) error {
	_, err := os.ReadFile(path)
	return err
}

// attempts returns the escape attempts. Each returns nil if it succeeds.
func attempts(t targets, tmp string) map[string]func() error {
	secret, victim, outside := filepath.Join(t.Outside, "secret"), filepath.Join(t.Outside, "victim"), t.Outside
	in := func(name string) string { return filepath.Join(tmp, name) }
	pid := strconv.Itoa(t.PID)
	mine := func(name string) string {
		p := in(name)
		os.WriteFile(p, []byte("x"), 0o600)
		return p
	}
	open := func(path string, flags int) error {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
		return opened(fd, err)
	}
	word := byte(0)
	local := unix.Iovec{Base: &word, Len: 1}
	remote := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&word)), Len: 1}
	return map[string]func() error{
		"create a file":          func() error { return os.WriteFile(filepath.Join(outside, "new"), nil, 0o600) },
		"overwrite a file":       func() error { return open(victim, unix.O_WRONLY) },
		"append to a file":       func() error { return open(victim, unix.O_WRONLY|unix.O_APPEND) },
		"truncate by path":       func() error { return unix.Truncate(victim, 0) },
		"truncate while opening": func() error { return open(victim, unix.O_RDONLY|unix.O_TRUNC) },
		"make a folder":          func() error { return os.Mkdir(filepath.Join(outside, "dir"), 0o700) },
		"make a device":          func() error { return unix.Mknod(filepath.Join(outside, "dev"), unix.S_IFCHR|0o600, 0x103) },
		"make a device inside":   func() error { return unix.Mknod(in("mem"), unix.S_IFCHR|0o600, 0x101) },
		"make a pipe":            func() error { return unix.Mkfifo(filepath.Join(outside, "pipe"), 0o600) },
		"make a link":            func() error { return os.Symlink("/", filepath.Join(outside, "link")) },
		"delete a file":          func() error { return os.Remove(victim) },
		"delete a folder":        func() error { return unix.Rmdir(filepath.Join(outside, "empty")) },
		"rename out":             func() error { return os.Rename(mine("a"), filepath.Join(outside, "a")) },
		"rename over a file":     func() error { return os.Rename(mine("b"), victim) },
		"rename in":              func() error { return os.Rename(victim, in("c")) },
		"exchange": func() error {
			return unix.Renameat2(unix.AT_FDCWD, mine("d"), unix.AT_FDCWD, victim, unix.RENAME_EXCHANGE)
		},
		"hard link in":                      func() error { return os.Link(secret, in("e")) },
		"hard link out":                     func() error { return os.Link(mine("f"), filepath.Join(outside, "f")) },
		"change a mode":                     func() error { return unix.Chmod(victim, 0o777) },
		"change an owner":                   func() error { return unix.Chown(victim, os.Getuid(), os.Getgid()) },
		"change a time":                     func() error { return os.Chtimes(victim, time.Unix(1, 0), time.Unix(1, 0)) },
		"set an attribute":                  func() error { return unix.Setxattr(victim, "user.x", []byte("x"), 0) },
		"read a file":                       func() error { return readable(secret) },
		"list a folder":                     func() error { _, err := os.ReadDir(outside); return err },
		"read through a link":               func() error { os.Symlink(secret, in("g")); return readable(in("g")) },
		"read through /proc/self/root":      func() error { return readable("/proc/self/root" + secret) },
		"read through /proc/self/cwd":       func() error { return readable("/proc/self/cwd/../../../../../../.." + secret) },
		"read through a link that was left": func() error { return readable(filepath.Join(t.Writable, "link", "secret")) },
		"write through a link that was left": func() error {
			return open(filepath.Join(t.Writable, "link", "victim"), unix.O_WRONLY)
		},
		"win a race with a link": func() error {
			good, path := mine("good"), in("race")
			stop := make(chan bool)
			go func() {
				defer close(stop)
				for i := range 2000 {
					os.Symlink([]string{good, victim}[i%2], in("next"))
					os.Rename(in("next"), path)
				}
			}()
			for {
				if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
					name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
					f.Close()
					if name == victim {
						return nil
					}
				}
				select {
				case <-stop:
					return errors.New("it was always refused")
				default:
				}
			}
		},
		"read the password hashes":       func() error { return readable("/etc/shadow") },
		"read the environment of others": func() error { return readable("/proc/" + pid + "/environ") },
		"read the command line of others": func() error {
			if text, err := os.ReadFile("/proc/" + pid + "/cmdline"); err != nil || !bytes.Contains(text, []byte("sandbox.test")) {
				return errors.New("another process, or none")
			}
			return nil
		},
		"read the memory of others":       func() error { return open("/proc/"+pid+"/mem", unix.O_RDONLY) },
		"read through the root of others": func() error { return readable("/proc/" + pid + "/root" + secret) },
		"use the files of others":         func() error { _, err := os.ReadDir("/proc/" + pid + "/fd"); return err },
		"trace another process":           func() error { return unix.PtraceAttach(t.PID) },
		"trace a child": func() error {
			cmd := exec.Command("/proc/self/exe", escapeCommand)
			cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
			return cmd.Start()
		},
		"read another memory": func() error {
			_, err := unix.ProcessVMReadv(t.PID, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
			return err
		},
		"write another memory": func() error {
			_, err := unix.ProcessVMWritev(t.PID, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
			return err
		},
		"take a file of another process": func() error {
			fd, err := unix.PidfdOpen(t.PID, 0)
			if err != nil {
				return err
			}
			return opened(unix.PidfdGetfd(fd, 0, 0))
		},
		"signal another process": func() error { return unix.Kill(t.PID, unix.SIGCONT) },
		"signal by a pidfd": func() error {
			fd, err := unix.PidfdOpen(t.PID, 0)
			if err != nil {
				return err
			}
			return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
		},
		"limit another process": func() error {
			return unix.Prlimit(t.PID, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
		},
		"connect to a unix socket": func() error { return dialled("unix", t.Socket) },
		"send to a unix socket":    func() error { return dialled("unixgram", t.Datagram) },
		"send from a pair of datagram sockets": func() error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			return unix.Sendto(pair[0], []byte("x"), 0, sockaddr(t.Datagram))
		},
		"send from a pair of packet sockets": func() error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
			if err != nil {
				return err
			}
			return unix.Connect(pair[0], sockaddr(t.Socket))
		},
		"reconnect a pair of sockets": func() error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			return unix.Connect(pair[0], sockaddr(t.Socket))
		},
		"connect to an abstract socket": func() error { return dialled("unix", "@"+t.Abstract) },
		"listen on an abstract socket": func() error {
			l, err := net.Listen("unix", "@"+t.Abstract+"-own")
			if err == nil {
				l.Close()
			}
			return err
		},
		"connect by TCP": func() error { return dialled("tcp", t.TCP) },
		"listen on TCP": func() error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err == nil {
				l.Close()
			}
			return err
		},
		"send by UDP":    func() error { return dialled("udp", t.UDP) },
		"resolve a name": func() error { return opened(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP)) },
		"connect by multipath TCP": func() error {
			return opened(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 262))
		},
		"open a raw socket":     func() error { return opened(unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)) },
		"open a packet socket":  func() error { return opened(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)) },
		"open a netlink socket": func() error { return opened(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)) },
		"open a vsock":          func() error { return opened(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)) },
		"open a crypto socket":  func() error { return opened(unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)) },
		"open a socket with high bits": func() error { // the kernel ignores them
			return answered(unix.Syscall(unix.SYS_SOCKET, 1<<32|unix.AF_UNIX, unix.SOCK_STREAM, 0))
		},
		"use the x32 calls": func() error {
			return answered(unix.Syscall(0x40000000+unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0))
		},
		"use io_uring": func() error {
			var params [120]byte
			return answered(unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0))
		},
		"load a BPF program":    func() error { return answered(unix.Syscall(unix.SYS_BPF, 0, 0, 0)) },
		"handle page faults":    func() error { return answered(unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1, 0, 0)) },
		"use the kernel's keys": func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true); return err },
		"read events":           func() error { return answered(unix.Syscall(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0)) },
		"mount":                 func() error { return unix.Mount("none", tmp, "tmpfs", 0, "") },
		"unmount":               func() error { return unix.Unmount("/proc", unix.MNT_DETACH) },
		"make mounts writable": func() error {
			return unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		},
		"make a namespace": func() error { return unix.Unshare(unix.CLONE_NEWNS) },
		"start in a namespace": func() error {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
			return cmd.Run()
		},
		"use clone3":            func() error { return answered(unix.Syscall(unix.SYS_CLONE3, 0, 0, 0)) },
		"change the root":       func() error { return unix.Chroot(tmp) },
		"open by handle":        func() error { _, _, err := unix.NameToHandleAt(unix.AT_FDCWD, secret, 0); return err },
		"share memory":          func() error { _, err := unix.SysvShmGet(0x6d637070, 4096, unix.IPC_CREAT|0o600); return err },
		"open the terminal":     func() error { return open("/dev/tty", unix.O_RDWR) },
		"read the kernel's log": func() error { return open("/dev/kmsg", unix.O_RDONLY) },
		"use inherited files": func() error {
			for fd := 3; fd < 256; fd++ {
				if name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil && strings.HasPrefix(name, outside) {
					return nil
				}
			}
			return errors.New("none")
		},
		"read the environment": func() error {
			if os.Getenv(t.Env) == "" {
				return errors.New("not set")
			}
			return nil
		},
		"gain rights from a program": func() error {
			status, err := os.ReadFile("/proc/self/status")
			for _, want := range []string{"NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "Seccomp:\t2"} {
				if err == nil && !bytes.Contains(status, []byte(want)) {
					return nil
				}
			}
			return errors.Join(err, errors.New("none can be gained"))
		},
	}
}

// attemptEscapes runs in the sandbox. It writes the error of each attempt as JSON, and leaves a process behind.
func attemptEscapes() {
	var t targets
	json.NewDecoder(os.Stdin).Decode(&t)
	if t.Outside == "" { // the process that is left behind: it holds a lock until it ends
		f, _ := os.OpenFile(os.Getenv("LOCK"), os.O_RDWR|os.O_CREATE, 0o600)
		unix.Flock(int(f.Fd()), unix.LOCK_EX)
		fmt.Fprint(f, os.Getpid())
		os.Stdout.WriteString("locked\n")
		os.Stdout.Close()
		select {}
	}
	results := map[string]string{}
	all := attempts(t, os.Getenv("TMPDIR"))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		try := all[name]
		if len(t.Only) > 0 && !slices.Contains(t.Only, name) {
			continue
		}
		results[name] = ""
		if err := try(); err != nil {
			results[name] = err.Error()
		}
	}
	for name, path := range map[string]string{"write to the temporary folder": os.Getenv("TMPDIR"), "write to the home folder": os.Getenv("HOME"), "write to a named folder": t.Writable} {
		results[name] = fmt.Sprint(os.WriteFile(filepath.Join(path, "own"), []byte("x"), 0o600))
	}
	left := exec.Command("/proc/self/exe", escapeCommand)
	left.Env = append(os.Environ(), "LOCK="+filepath.Join(t.Writable, "lock"))
	left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, _ := left.StdoutPipe()
	if err := left.Start(); err == nil {
		io.ReadAll(out)
	}
	json.NewEncoder(os.Stdout).Encode(results)
}

func newTargets(t *testing.T) targets {
	t.Helper()
	dir := t.TempDir()
	x := targets{Outside: filepath.Join(dir, "outside"), Writable: filepath.Join(dir, "writable"), Abstract: "mcpproxy-test-" + strconv.Itoa(os.Getpid()), Env: "MCPPROXY_TEST_SECRET"}
	for _, d := range []string{x.Outside, x.Writable, filepath.Join(x.Outside, "empty")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"secret", "victim"} {
		if err := os.WriteFile(filepath.Join(x.Outside, name), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(x.Outside, filepath.Join(x.Writable, "link")); err != nil {
		t.Fatal(err)
	}
	serve := func(network, address string) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { // a connection that is closed at once would look like a limit of the sandbox
					_, _ = io.Copy(io.Discard, c)
					c.Close()
				}()
			}
		}()
		return l.Addr().String()
	}
	short, err := os.MkdirTemp("", "sbx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	x.Socket = serve("unix", filepath.Join(short, "s"))
	serve("unix", "@"+x.Abstract)
	x.TCP = serve("tcp", "127.0.0.1:0")
	packets := func(network, address string) string {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		go func() {
			for {
				n, from, err := c.ReadFrom(make([]byte, 16))
				if err != nil {
					return
				}
				if n > 0 && from != nil {
					c.WriteTo([]byte("y"), from)
				}
			}
		}()
		return c.LocalAddr().String()
	}
	x.Datagram, x.UDP = packets("unixgram", filepath.Join(short, "d")), packets("udp", "127.0.0.1:0")
	// A process of the same user outside of the sandbox.
	other := exec.Command("/proc/self/exe", escapeCommand)
	in, _ := other.StdinPipe()
	other.Args[0] = "sandbox.test"
	other.Env = []string{"LOCK=" + filepath.Join(dir, "other")}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	t.Cleanup(func() { other.Process.Kill(); other.Wait() })
	x.PID = other.Process.Pid
	return x
}

// runEscapes runs the attempts with the rules, and returns the error of each.
func runEscapes(t *testing.T, s *System, r Rules, x targets) map[string]string {
	t.Helper()
	self, err := filepath.EvalSymlinks("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	command := process.Command{Name: self, Args: []string{escapeCommand}}
	if r.IsOn() {
		if command, err = s.Wrap(command, r, ""); err != nil {
			t.Fatal(err)
		}
	}
	// A file that the daemon itself has inherited.
	inherited, err := unix.Open(filepath.Join(x.Outside, "secret"), unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	launch := process.NewLauncher("", nil)
	defer launch.Close()
	p, err := process.Start(command, launch)
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	log := process.NewLog("", "x", process.Masker{})
	p.CopyStderr(log)
	if err := json.NewEncoder(p.Stdin).Encode(x); err != nil {
		t.Fatal(err)
	}
	p.Stdin.Close()
	out, _ := io.ReadAll(p.Stdout)
	<-p.Exited()
	var results map[string]string
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("%v: %s %s, %v", err, out, errs.String(), p.ExitStatus())
	}
	return results
}

// TestEscapes tries to leave sandboxes with and without namespaces.
func TestEscapes(t *testing.T) {
	t.Setenv("MCPPROXY_TEST_SECRET", "secret")
	machine := probeSupport()
	if machine.landlock < abiFiles || !machine.syscalls {
		t.Skip("the kernel has no Landlock or seccomp")
	}
	needsNetwork := []string{"connect by TCP", "listen on TCP", "send by UDP", "resolve a name", "connect by multipath TCP"}
	for name, c := range map[string]struct {
		mode       Mode
		network    Network
		namespaces bool
		allowed    []string // named in docs/security.md
	}{
		"namespaces":                {Strict, NoNetwork, true, nil},
		"namespaces and network":    {Strict, AllNetwork, true, needsNetwork},
		"on":                        {On, NoNetwork, true, nil},
		"no namespaces":             {Strict, NoNetwork, false, nil},
		"network, but no namespace": {On, AllNetwork, false, needsNetwork},
	} {
		t.Run(name, func(t *testing.T) {
			if c.namespaces && !machine.namespaces {
				t.Skip("the system has no user namespaces")
			}
			support := machine
			support.namespaces = c.namespaces
			x := newTargets(t)
			t.Setenv("HOME", t.TempDir())
			s := &System{probe: func() machineSupport { return support }}
			results := runEscapes(t, s, Rules{Mode: c.mode, Network: c.network, Write: []string{x.Writable}}, x)
			if len(results) < 40 {
				t.Fatalf("only %d attempts", len(results))
			}
			for _, attempt := range slices.Sorted(maps.Keys(results)) {
				err := results[attempt]
				switch {
				case attempt == "write to the home folder": // a private one in mode strict
					if worked := err == "<nil>"; worked != (c.mode == Strict) {
						t.Errorf("%s: %s", attempt, err)
					}
				case strings.HasPrefix(attempt, "write to"):
					if err != "<nil>" {
						t.Errorf("%s: %s", attempt, err)
					}
				case slices.Contains(c.allowed, attempt):
				case err == "":
					t.Errorf("%s: it worked", attempt)
				default:
					t.Logf("%s: %s", attempt, err)
				}
			}
			if text, err := os.ReadFile(filepath.Join(x.Outside, "victim")); err != nil || string(text) != "secret" {
				t.Errorf("the victim is %q, %v", text, err)
			}
			lock, err := os.Open(filepath.Join(x.Writable, "lock"))
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			t.Cleanup(func() { endLeftBehind(x) })
			if c.namespaces { // waits for the end of the process that was left behind
				if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
					t.Error(err)
				}
			} else if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
				t.Error("processes that are left behind end without namespaces, too: docs/security.md is wrong")
			}
		})
	}
}

// endLeftBehind ends the process that a run without namespaces has left behind.
func endLeftBehind(x targets) {
	text, _ := os.ReadFile(filepath.Join(x.Writable, "lock"))
	if pid, err := strconv.Atoi(string(text)); err == nil && pid > 1 {
		if line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); bytes.Contains(line, []byte(escapeCommand)) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// TestAttemptsWorkOutside checks that the attempts test something: those that harm nothing succeed without a sandbox.
func TestAttemptsWorkOutside(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	harmless := []string{"append to a file", "change a mode", "create a file", "hard link in", "hard link out", "make a folder", "overwrite a file", "read a file", "read through a link that was left",
		"read through /proc/self/root", "read the environment of others", "read the command line of others", "rename out", "signal another process", "signal by a pidfd", "connect to a unix socket",
		"send to a unix socket", "send from a pair of datagram sockets", "connect to an abstract socket", "connect by TCP", "listen on TCP", "use inherited files", "open a socket with high bits", "write through a link that was left"}
	x := newTargets(t)
	x.Only = harmless
	results := runEscapes(t, &System{}, Rules{}, x)
	defer endLeftBehind(x)
	for _, attempt := range harmless {
		if err := results[attempt]; err != "" {
			t.Errorf("%s: %s", attempt, err)
		}
	}
}
