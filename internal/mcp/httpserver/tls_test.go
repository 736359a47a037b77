package httpserver

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// newTLSConfigs returns the configurations of a server and of a client that trusts it.
func newTLSConfigs(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(leaf)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: trusted}
}

// TestTLS checks that requests of this package and of net/http work over one TLS connection, in both versions, and that
// a disconnect ends the request that is being answered.
func TestTLS(t *testing.T) {
	server, client := newTLSConfigs(t)
	began, ended := make(chan bool, 1), make(chan error, 1)
	s := serveOn(t, listen(t), func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wait") == "" {
			tell(w, r)
			return
		}
		_, _ = io.ReadAll(r.Body)
		began <- true
		<-r.Context().Done()
		ended <- r.Context().Err()
	}, func(o *Options) { o.TLS, o.TLSFailed = server, func(string, error) {} })
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		client := client.Clone()
		client.MinVersion, client.MaxVersion = version, version
		nc, err := tls.Dial("tcp", s.addr, client)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(patience))
		br := bufio.NewReader(nc)
		large := strings.Repeat("a", 300<<10)
		for _, request := range []string{plainHead + "Content-Length: 5\r\n\r\nhello", fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", plainHead, len(large), large), "GET /other HTTP/1.1\r\nHost: a\r\n\r\n", plainHead + "Content-Length: 5\r\n\r\nhello"} {
			if _, err := io.WriteString(nc, request); err != nil {
				t.Fatal(err)
			}
			if resp, _ := readAnswer(t, br); resp.StatusCode != http.StatusOK {
				t.Errorf("version %x: %s", version, resp.Status)
			}
		}
		waiting, err := tls.Dial("tcp", s.addr, client)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(waiting, "%sX-Wait: 1\r\nContent-Length: 0\r\n\r\n", plainHead)
		<-began
		waiting.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("a disconnect does not end the request")
		}
	}
}

// TestFailedHandshakes checks which failures are reported, and that a client without TLS is told.
func TestFailedHandshakes(t *testing.T) {
	server, client := newTLSConfigs(t)
	failed := make(chan error, 8)
	s := serveOn(t, listen(t), tell, func(o *Options) {
		o.TLS, o.TLSFailed = server, func(_ string, err error) { failed <- err }
	})
	next := func(want string) {
		t.Helper()
		select {
		case err := <-failed:
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		case <-time.After(patience):
			t.Fatalf("nothing is reported, want %q", want)
		}
	}
	probe, _ := dialRaw(t, s.addr)
	probe.Close() // as load balancers do: this is not a failure

	nc, br := dialRaw(t, s.addr)
	io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, body := readAnswer(t, br); resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "requires TLS") {
		t.Errorf("%s %s", resp.Status, body)
	}
	next("does not look like a TLS handshake")

	old := client.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if _, err := tls.Dial("tcp", s.addr, old); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	next("unsupported versions")

	if _, err := tls.Dial("tcp", s.addr, &tls.Config{RootCAs: x509.NewCertPool()}); err == nil {
		t.Error("the client trusts anyone")
	}
	next("bad certificate")

	silent, br := dialRaw(t, s.addr) // the handshake has HeaderTime
	if _, err := br.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("a silent connection: %v", err)
	}
	silent.Close()
	next("timeout")
}
