package dialpolicy

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		addr                      string
		public, loopback, private bool // whether it may be dialled, by kind of Policy
	}{
		{"8.8.8.8", true, true, true}, {"2606:4700::1111", true, true, true}, {"::ffff:8.8.8.8", true, true, true},
		{"127.0.0.1", false, true, true}, {"127.8.9.1", false, true, true}, {"::1", false, true, true}, {"::ffff:127.0.0.1", false, true, true},
		{"64:ff9b::7f00:1", false, true, true}, {"2002:7f00:1::", false, true, true}, {"::7f00:1", false, true, true},
		{"10.0.0.1", false, false, true}, {"172.16.0.1", false, false, true}, {"172.31.255.255", false, false, true}, {"192.168.1.1", false, false, true},
		{"fd00::1", false, false, true}, {"fc00::1", false, false, true}, {"100.64.0.1", false, false, true}, {"64:ff9b::a00:1", false, false, true},
		{"2002:c0a8:101::", false, false, true}, {"::ffff:10.0.0.1", false, false, true}, {"198.18.0.1", false, false, true}, {"192.0.2.1", false, false, true},
		{"240.0.0.1", false, false, true}, {"2001:db8::1", false, false, true}, {"0.1.2.3", false, false, true}, {"64:ff9b:1::1", false, false, true},
		{"169.254.169.254", false, false, false}, {"fe80::1", false, false, false}, {"::ffff:169.254.169.254", false, false, false},
		{"64:ff9b::a9fe:a9fe", false, false, false}, {"2002:a9fe:a9fe::", false, false, false}, {"0.0.0.0", false, false, false}, {"::", false, false, false},
		{"224.0.0.1", false, false, false}, {"ff02::1", false, false, false}, {"255.255.255.255", false, false, false}, {"fe80::1%eth0", false, false, false},
	} {
		addr := netip.MustParseAddr(tt.addr)
		for _, g := range []struct {
			Policy
			want bool
		}{{Policy{}, tt.public}, {Policy{Loopback: true}, tt.loopback}, {Policy{Private: true}, tt.private}} {
			if err := g.CheckAddr(addr); (err == nil) != g.want {
				t.Errorf("%s with %+v: %v", tt.addr, g.Policy, err)
			}
		}
	}
}

func TestFor(t *testing.T) {
	for _, tt := range []struct {
		host  string
		allow bool
		want  Policy
	}{
		{"mcp.example", false, Policy{}}, {"mcp.example", true, Policy{Private: true}}, {"localhost", false, Policy{Loopback: true}},
		{"127.0.0.1", false, Policy{Loopback: true}}, {"::1", false, Policy{Loopback: true}}, {"10.0.0.1", false, Policy{Private: true}},
		{"8.8.8.8", false, Policy{}}, {"localhost.example", false, Policy{}},
	} {
		if got := ForHost(tt.host, tt.allow); got != tt.want {
			t.Errorf("%s, %v: got %+v", tt.host, tt.allow, got)
		}
	}
	if ForHost("169.254.169.254", true).CheckAddr(netip.MustParseAddr("169.254.169.254")) == nil {
		t.Error("a link-local address in a URL may be dialled")
	}
}

// TestDial checks that a name is checked by the address that it resolves to.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	address := net.JoinHostPort("localhost", port)
	if _, err := (Policy{}).Dial(context.Background(), "tcp", address); err == nil || !strings.Contains(err.Error(), "allow_private") {
		t.Errorf("a name that resolves to this machine: %v", err)
	}
	for _, r := range []Policy{{Loopback: true}, {Private: true}} {
		c, err := r.Dial(context.Background(), "tcp4", address)
		if err != nil {
			t.Errorf("%+v: %v", r, err)
			continue
		}
		c.Close()
	}
}

func TestProxyAddress(t *testing.T) {
	for proxy, want := range map[string]string{
		"http://10.1.1.1:3128": "10.1.1.1:3128", "http://proxy.example": "proxy.example:80",
		"https://proxy.example": "proxy.example:443", "socks5://proxy.example": "proxy.example:1080",
	} {
		u, err := url.Parse(proxy)
		if err != nil || HostPort(u) != want {
			t.Errorf("%s: got %s %v", proxy, HostPort(u), err)
		}
	}
}
