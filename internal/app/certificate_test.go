package app

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config"
)

// newPair returns a certificate and its key in PEM.
func newPair(t *testing.T, serial int64, until time.Time) (certificate, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: until.Add(-100 * 24 * time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestCertificateFollowsItsFiles: a changed pair is served at once. While the pair is invalid, the previous one stays,
// with one line in the log and a warning from the second look on.
func TestCertificateFollowsItsFiles(t *testing.T) {
	now := time.Now()
	dir := t.TempDir()
	files := config.TLS{CertificateFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if _, err := openCertificate(files, logger); err == nil {
		t.Fatal("missing files are accepted")
	}
	pairs := map[int64][2][]byte{}
	for serial := range int64(3) {
		certificate, key := newPair(t, serial+1, now.Add(90*24*time.Hour))
		pairs[serial+1] = [2][]byte{certificate, key}
	}
	write(t, files.CertificateFile, pairs[1][0])
	write(t, files.KeyFile, pairs[1][1])
	c, err := openCertificate(files, logger)
	if err != nil {
		t.Fatal(err)
	}
	look := func(want int64, warned bool) {
		t.Helper()
		c.reload()
		served, err := c.tlsConfig().GetCertificate(&tls.ClientHelloInfo{})
		if err != nil || served.Leaf.SerialNumber.Int64() != want || (len(c.warnings(now)) > 0) != warned {
			t.Errorf("serves %v (%v) with the warnings %q; want %d, warned %t", served.Leaf.SerialNumber, err, c.warnings(now), want, warned)
		}
	}
	look(1, false)
	write(t, files.CertificateFile, pairs[2][0]) // its key follows
	look(1, false)
	write(t, files.KeyFile, pairs[2][1])
	look(2, false)
	if strings.Contains(log.String(), "cannot be used") {
		t.Errorf("two files that were replaced one after the other: %s", &log)
	}
	write(t, files.KeyFile, []byte("broken"))
	look(2, false)
	look(2, true)
	look(2, true)
	if n := strings.Count(log.String(), "cannot be used"); n != 1 {
		t.Errorf("%d lines about the broken file: %s", n, &log)
	}
	write(t, files.KeyFile, pairs[2][1])
	look(2, false)
	if err := os.Remove(files.CertificateFile); err != nil {
		t.Fatal(err)
	}
	look(2, false)
	look(2, true)
	write(t, files.CertificateFile, pairs[3][0])
	write(t, files.KeyFile, pairs[3][1])
	look(3, false)
	for after, want := range map[time.Duration]string{84 * 24 * time.Hour: "expires on", 91 * 24 * time.Hour: "has expired", -11 * 24 * time.Hour: "not valid before", 0: ""} {
		if got := strings.Join(c.warnings(now.Add(after)), "\n"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("after %v: %q, want %q", after, got, want)
		}
	}
	if (*servedCertificate)(nil).warnings(now) != nil {
		t.Error("a listener without TLS has warnings")
	}
}

// TestFailedHandshakesAreLoggedWithBounds: the first failure is logged, and then one line a minute with their number.
func TestFailedHandshakesAreLoggedWithBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &servedCertificate{logger: slog.New(slog.NewTextHandler(&log, nil))}
		for range 120 {
			for range 1_000 {
				c.handshakeFailed("192.0.2.1:5", errors.New(strings.Repeat("x", 10_000)))
			}
			time.Sleep(time.Second)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "count=1 ") || !strings.Contains(lines[1], "count=60001 ") && !strings.Contains(lines[1], "count=61000 ") || len(log.String()) > 1_000 {
			t.Errorf("%d lines, %d bytes: %.600s", len(lines), log.Len(), &log)
		}
	})
}
