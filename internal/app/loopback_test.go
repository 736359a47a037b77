package app

import (
	"log/slog"
	"net"
	"strings"
	"testing"
)

// When passkeys are configured, MCPProxy listens on all loopback addresses of the port, or reports the address that it could
// not open.
func TestByName(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	other := strings.Replace(tcp.Addr().String(), "127.0.0.1", "[::1]", 1)
	l, err := net.Listen("tcp", other)
	if err != nil {
		t.Skipf("this machine has no second loopback address, or the port is taken: %v", err)
	}
	var asked bool
	var opened []net.Listener
	b := &loopbackListeners{usesPasskeys: func() bool { return asked }, logger: slog.New(slog.DiscardHandler), serve: func(l net.Listener) { opened = append(opened, l) }}
	look := func(wantOpen int, wantWarning bool) {
		t.Helper()
		b.openMissing(tcp.Addr())
		if all := b.withWarning([]string{"first"}); len(opened) != wantOpen || (len(all) == 2 && strings.Contains(all[1], other)) != wantWarning || all[0] != "first" {
			t.Fatalf("%d are open, and it warns: %q", len(opened), all)
		}
	}
	look(0, false)
	asked = true
	look(0, true)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	look(1, false)
	look(1, false)
	if got := opened[0].Addr().String(); got != other {
		t.Errorf("it listens on %s", got)
	}
	_ = opened[0].Close()
}

func TestCovers(t *testing.T) {
	for listens, want := range map[string][2]bool{
		"127.0.0.1:1": {true, false}, "[::1]:1": {false, true}, "0.0.0.0:1": {true, false}, "[::]:1": {true, true}, "192.0.2.7:1": {false, false},
	} {
		var got []string
		b := &loopbackListeners{usesPasskeys: func() bool { return true }, logger: slog.New(slog.DiscardHandler), serve: func(l net.Listener) {
			host, _, _ := net.SplitHostPort(l.Addr().String())
			got = append(got, host)
			_ = l.Close()
		}}
		at := addrText(listens[:strings.LastIndex(listens, ":")] + ":0")
		b.openMissing(at)
		for i, host := range []string{"127.0.0.1", "::1"} {
			if opened := strings.Contains(strings.Join(got, " "), host); opened && want[i] {
				t.Errorf("%s covers %s, which is opened", listens, host)
			} else if !opened && !want[i] && i == 0 {
				t.Errorf("%s does not cover %s, which is not opened", listens, host)
			}
		}
	}
}

// addrText is an address as text.
type addrText string

func (addrText) Network() string  { return "tcp" }
func (a addrText) String() string { return string(a) }
