//go:build linux

package doctor_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mcpproxy/internal/ops/doctor"
)

// TestAnotherProcess starts a process that holds a lock and listens on a port.
func TestAnotherProcess(t *testing.T) {
	if path := os.Getenv("HOLDER_TEST_FILE"); path != "" {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString(l.Addr().String() + "\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // waits until the test closes stdin
		return
	}
	lock := filepath.Join(t.TempDir(), doctor.LockFile)
	other := exec.Command(os.Args[0], "-test.run=^TestAnotherProcess$")
	other.Env = append(os.Environ(), "HOLDER_TEST_FILE="+lock)
	stdin, _ := other.StdinPipe()
	stdout, _ := other.StdoutPipe()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = other.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, err := net.ResolveTCPAddr("tcp", line[:len(line)-1])
	if err != nil {
		t.Fatal(err)
	}
	want := doctor.Holder{PID: other.Process.Pid, Name: "doctor.test", DataDir: filepath.Dir(lock)}
	if got, taken := doctor.FindPortHolder(uint16(address.Port)); !taken || got != want {
		t.Errorf("the port is held by %+v, %v, want %+v", got, taken, want)
	}
	if got := doctor.FindFileHolder(lock); got != want {
		t.Errorf("the file is held by %+v, want %+v", got, want)
	}
	if got := doctor.ExecutableOf(other.Process.Pid); got != os.Args[0] {
		t.Errorf("the program is %q, want %q", got, os.Args[0])
	}
	if got := doctor.FindFileHolder(lock, want.PID); got.IsKnown() {
		t.Errorf("the excluded process is not skipped, or %+v also has the file", got)
	}
	if got := doctor.FindFileHolder(lock + ".not"); got.IsKnown() {
		t.Errorf("an unused file is held by %+v", got)
	}
}

// TestFreePort checks that a port without a listener is reported as free.
func TestFreePort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	if _, taken := doctor.FindPortHolder(port); !taken {
		t.Error("the port of our own listener is reported as free")
	}
	l.Close()
	if p, taken := doctor.FindPortHolder(port); taken {
		t.Errorf("a free port is taken by %+v", p)
	}
}
