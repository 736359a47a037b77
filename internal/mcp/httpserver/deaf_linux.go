package httpserver

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// stopListening has the system drop what asks l for a connection: who asks hears nothing, asks again a
// second later, and is refused then. Connections that are being made are made. It reports whether
// that is so.
func stopListening(l net.Listener) (deaf bool) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	const flags, syn, ack = 13, 0x02, 0x10 // of the head of a TCP segment, where a filter begins to read
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

// someoneWaits reports whether somebody has connected to l whom nobody has accepted.
func someoneWaits(l net.Listener) bool {
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
