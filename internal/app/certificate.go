package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
)

const (
	// certificatePoll is how often the files of the certificate are checked for changes.
	certificatePoll = 2 * time.Second
	// expiryWarning is how long before its end a certificate is reported.
	expiryWarning = 7 * 24 * time.Hour
	// handshakeLogInterval is the minimum time between two log lines about failed handshakes.
	handshakeLogInterval = time.Minute
)

// servedCertificate is the certificate of the TLS listener. It follows its files. While they are invalid, it keeps the
// previous certificate.
type servedCertificate struct {
	files  config.TLS
	logger *slog.Logger

	mu      sync.Mutex // guards the fields below
	current *tls.Certificate
	loaded  string // state of the files of current
	failing string // why the changed files are not used; "" if they are
	told    bool   // failing has been logged

	failures   int // handshakes since the last log line
	nextReport time.Time
}

// openCertificate loads the certificate.
func openCertificate(files config.TLS, logger *slog.Logger) (*servedCertificate, error) {
	c := &servedCertificate{files: files, logger: logger}
	if c.reload(); c.current == nil {
		return nil, problem.New(problem.InvalidConfig, "The certificate for TLS cannot be used: "+c.failing+".",
			"Correct tls.certificate_file and tls.key_file: a certificate and its private key, both in PEM.")
	}
	return c, nil
}

// tlsConfig returns the configuration of the listener. Connections keep the certificate of their handshake.
func (c *servedCertificate) tlsConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.current, nil
	}}
}

// follow reloads changed files until ctx ends.
func (c *servedCertificate) follow(ctx context.Context) {
	poll := time.NewTicker(certificatePoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			c.reload()
		}
	}
}

// reload loads the files if they have changed. It reports an error at the second attempt, because the two files are
// rarely replaced at the same moment.
func (c *servedCertificate) reload() {
	state := fileState(c.files.CertificateFile) + fileState(c.files.KeyFile)
	if state == c.loaded && c.failing == "" { // only this function changes them
		return
	}
	next, err := tls.LoadX509KeyPair(c.files.CertificateFile, c.files.KeyFile)
	c.mu.Lock() // not during reads, which may be slow
	defer c.mu.Unlock()
	switch {
	case err == nil:
		if c.current != nil {
			c.logger.Info("the certificate of TLS is replaced", "file", c.files.CertificateFile, "expires", next.Leaf.NotAfter)
		}
		c.current, c.loaded, c.failing, c.told = &next, state, "", false
	case c.failing == err.Error() && !c.told:
		c.told = true
		c.logger.Warn("the new certificate of TLS cannot be used, the previous one stays", "error", err)
	case c.failing != err.Error():
		c.failing, c.told = err.Error(), false
	}
}

// fileState returns a text that changes with a file.
func fileState(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return err.Error() + "\n"
	}
	return fmt.Sprintln(info.Size(), info.ModTime().UnixNano())
}

// warnings returns what the operator should know about the certificate. c may be nil.
func (c *servedCertificate) warnings(now time.Time) (out []string) {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told {
		out = append(out, "The new certificate of TLS cannot be used, the previous one stays: "+c.failing)
	}
	switch leaf := c.current.Leaf; {
	case now.After(leaf.NotAfter):
		out = append(out, "The certificate of TLS has expired on "+leaf.NotAfter.UTC().Format(time.DateTime)+". Replace "+c.files.CertificateFile+".")
	case now.Before(leaf.NotBefore):
		out = append(out, "The certificate of TLS is not valid before "+leaf.NotBefore.UTC().Format(time.DateTime)+". Check the clock, or replace "+c.files.CertificateFile+".")
	case now.After(leaf.NotAfter.Add(-expiryWarning)):
		out = append(out, "The certificate of TLS expires on "+leaf.NotAfter.UTC().Format(time.DateTime)+". Replace "+c.files.CertificateFile+".")
	}
	return out
}

// handshakeFailed counts a failed handshake. It logs the first one at once, and later at most one line a minute.
func (c *servedCertificate) handshakeFailed(remote string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	if now := time.Now(); now.After(c.nextReport) {
		c.logger.Warn("TLS handshakes have failed", "count", c.failures, "last_client", remote, "last_error", problem.ClipName(err.Error()))
		c.failures, c.nextReport = 0, now.Add(handshakeLogInterval)
	}
}
