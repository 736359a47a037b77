package httpserver

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// stopListening makes the kernel drop SYNs to l: clients retry after a second and are then refused. Pending connections
// can complete. It reports whether that succeeded.
func stopListening(l net.Listener) (deaf bool) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	const flags, syn, ack = 13, 0x02, 0x10 // offsets in the TCP header, where the filter starts
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: syn | ack},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: syn, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
	}
	err = raw.Control(func(fd uintptr) {
		deaf = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}) == nil
	})
	return deaf && err == nil
}

// hasPendingConn reports whether l has a connection that is not accepted yet.
func hasPendingConn(l net.Listener) bool {
	conn, ok := l.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		n, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	})
	return err == nil && n > 0
}
