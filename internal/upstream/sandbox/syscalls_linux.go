package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filterProgram is a filter of system calls.
type filterProgram []bpf.RawInstruction

// Answers of the filter.
const (
	denied  = seccomp.ActionErrno | seccomp.Action(unix.EPERM)
	absent  = seccomp.ActionErrno | seccomp.Action(unix.ENOSYS) // C libraries then use an older call
	noProto = seccomp.ActionErrno | seccomp.Action(unix.EAFNOSUPPORT)
)

// namespaceFlags are the flags of clone that make a namespace.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// syscallFilter returns the filter. Sockets of the system itself (AF_UNIX) cannot be opened: they lead to the keyring,
// to container engines and to MCPProxy. Connected pairs of streams can be made. keepAttributes also denies changes of
// owners, modes and times of files, which Landlock does not restrict.
func syscallFilter(network Network, keepAttributes bool) (filterProgram, error) {
	native, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("restrict system calls: %w", err)
	}
	var names []string
	attributes := false
	for line := range strings.Lines(syscallsText) {
		calls, ok := strings.CutPrefix(line, "\t")
		if !ok && strings.TrimSpace(line) != "" {
			attributes = strings.HasPrefix(line, "attributes")
		}
		if ok && (keepAttributes || !attributes) {
			for _, name := range strings.Fields(calls) {
				if _, known := native.SyscallNames[name]; known {
					names = append(names, name)
				}
			}
		}
	}
	socket := []seccomp.NameWithConditions{{Name: "socketpair", Conditions: argument(0, seccomp.NotEqual, unix.AF_UNIX)},
		// A pair of datagram sockets can send to other sockets. The bit is also set in the types raw and packet.
		{Name: "socketpair", Conditions: argument(1, seccomp.BitsSet, unix.SOCK_DGRAM)}}
	if network == AllNetwork {
		// The addresses of network interfaces (netlink) are allowed.
		socket = append(socket, seccomp.NameWithConditions{Name: "socket", Conditions: slices.Concat(
			argument(0, seccomp.NotEqual, unix.AF_INET), argument(0, seccomp.NotEqual, unix.AF_INET6), argument(0, seccomp.NotEqual, unix.AF_NETLINK))},
			seccomp.NameWithConditions{Name: "socket", Conditions: slices.Concat(argument(0, seccomp.Equal, unix.AF_NETLINK), argument(2, seccomp.NotEqual, unix.NETLINK_ROUTE))})
	} else {
		names = append(names, "socket")
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		{Action: denied, Names: names, NamesWithCondtions: []seccomp.NameWithConditions{
			{Name: "clone", Conditions: argument(0, seccomp.BitsSet, namespaceFlags)},
			{Name: "prlimit64", Conditions: argument(0, seccomp.NotEqual, 0)}, // limits of other processes
		}},
		{Action: noProto, NamesWithCondtions: socket},
		{Action: absent, Names: []string{"clone3"}}, // its flags are in memory
	}}
	body, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("restrict system calls: %w", err)
	}
	// The filter of the library allows the calls of other architectures, and those that it does not know.
	last := slices.Max(slices.Collect(maps.Keys(native.SyscallNumbers)))
	program, err := bpf.Assemble(append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: 4}, // the architecture
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(native.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionKillProcess)},
		bpf.LoadAbsolute{Off: 0, Size: 4}, // the number of the call
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: uint32(last), SkipFalse: 1},
		bpf.RetConstant{Val: uint32(absent)},
	}, body...))
	if err != nil {
		return nil, fmt.Errorf("restrict system calls: %w", err)
	}
	return program, nil
}

func argument(n uint32, operation seccomp.Operation, value uint64) seccomp.ArgumentConditions {
	return seccomp.ArgumentConditions{{Argument: n, Operation: operation, Value: value}}
}

// load applies the filter to all threads. It cannot be removed.
func (f filterProgram) load() error {
	if len(f) == 0 {
		return fmt.Errorf("no filter")
	}
	code := make([]unix.SockFilter, len(f))
	for i, in := range f {
		code[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); e != 0 {
		return e
	}
	return nil
}

// seccompWorks reports whether the kernel has filters of system calls.
func seccompWorks() bool { return seccomp.Supported() }
