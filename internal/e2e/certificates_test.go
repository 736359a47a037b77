//go:build linux

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

// authority is a certificate authority.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(p *patient) authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p.must(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	p.must(err)
	certificate, err := x509.ParseCertificate(der)
	p.must(err)
	return authority{certificate, key}
}

// issue creates a certificate for 127.0.0.1 or for a host that expires at until.
func (a authority) issue(p *patient, host string, until time.Time) *tls.Certificate {
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "a server"}, NotBefore: until.Add(-2 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if host != "" {
		template.DNSNames = []string{host}
	} else {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p.must(err)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	p.must(err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// sickCertificates are servers with invalid certificates, until the operator renews them.
func sickCertificates() map[string]sick {
	all := map[string]sick{}
	for code, c := range map[string]struct {
		word string
		bad  func(p *patient, trusted authority) *tls.Certificate
	}{
		"D408": {"expired", func(p *patient, trusted authority) *tls.Certificate {
			return trusted.issue(p, "", time.Now().Add(-time.Minute))
		}},
		"D409": {"not trusted", func(p *patient, _ authority) *tls.Certificate {
			return newAuthority(p).issue(p, "", time.Now().Add(time.Hour))
		}},
		"D410": {"another host", func(p *patient, trusted authority) *tls.Certificate {
			return trusted.issue(p, "other.example", time.Now().Add(time.Hour))
		}},
	} {
		var shown atomic.Pointer[tls.Certificate]
		var trusted authority
		all[code] = sick{words: []string{c.word}, under: []string{"env", "SSL_CERT_FILE=BIN/authority.pem"}, before: func(p *patient) {
			trusted = newAuthority(p)
			p.must(os.WriteFile(filepath.Join(p.bin, "authority.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.certificate.Raw}), 0o600))
			shown.Store(c.bad(p, trusted))
			s := httptest.NewUnstartedServer(startUpstream(p.t, saysReads))
			s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return &tls.Config{Certificates: []tls.Certificate{*shown.Load()}}, nil
			}}
			s.StartTLS()
			p.t.Cleanup(s.Close)
			p.writeConfig(p.settings(fmt.Sprintf(`"mcpServers": {"s": {"url": %q}}`, s.URL)))
		}, heals: func(p *patient) { shown.Store(trusted.issue(p, "", time.Now().Add(time.Hour))) }}
	}
	return all
}

// requireLoginForServer makes a server require a login.
func requireLoginForServer(p *patient) {
	login := mcptest.StartLoginServer(p.t, startUpstream(p.t, saysReads))
	p.writeConfig(p.settings(fmt.Sprintf(`"mcpServers": {"s": {"url": %q}}`, login.URL)))
}
