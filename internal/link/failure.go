package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/process"
	"mcpproxy/internal/reach"
)

// The codes of failures: why a server is not there.
const (
	failNotStarted  = "NOT_STARTED"
	failExited      = "EXITED"
	failTimeout     = "TIMEOUT"
	failUnreachable = "UNREACHABLE"
	failCertificate = "CERTIFICATE"
	failStatus      = "HTTP_STATUS"
	failLogin       = "LOGIN_NEEDED"
	FailSecret      = "SECRET_NEEDED"
	failRefused     = "REFUSED"
	failConnection  = "CONNECTION"
)

// Failure is what went wrong with a server, in words for both audiences. The
// words of Said are MCPProxy's own: nothing in them was said by the server, so
// that they may be told to agents. Detail is for people and may hold the last
// line that the server wrote to stderr, escaped and clipped.
type Failure struct {
	Code   string
	Said   string
	Detail string
}

// Masked returns f with its text masked.
func (f Failure) Masked(m process.Masker) Failure {
	return Failure{f.Code, m.Text(f.Said), m.Text(f.Detail)}
}

// String returns the code with our words; "" when nothing failed.
func (f Failure) String() string {
	if f.Code == "" {
		return ""
	}
	return f.Code + ": " + f.Said
}

// NeedsSecret is why a server is not even tried, in our own words.
type NeedsSecret string

func (e NeedsSecret) Error() string { return string(e) }

// AnswerError is a JSON-RPC error that a server answered to a request of our
// own. Its text is the server's and goes to the server's log only.
type AnswerError struct{ Code int }

func (e *AnswerError) Error() string {
	return fmt.Sprintf("the server answered with error %d, its log has the text", e.Code)
}

// FailureOf sorts an error: by what it is, never by its text.
func FailureOf(err error) Failure {
	var (
		exited   *process.ExitError
		spawn    *process.SpawnError
		status   *StatusError
		refused  *AnswerError
		dns      *net.DNSError
		forbid   *reach.Error
		cert     *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		netFail  net.Error
		ownWords *problem.Own
		secret   NeedsSecret
	)
	same := func(code, words string) Failure { return Failure{code, words, words} }
	switch {
	case errors.As(err, &exited):
		f := same(failExited, exited.Said())
		if line := exited.LastLine(); line != "" {
			f.Detail += ": " + line
		}
		return f
	case errors.As(err, &spawn):
		return Failure{failNotStarted, "its command is " + spawn.Said(), fmt.Sprintf("the command %q is %s", spawn.Command, spawn.Said())}
	case errors.As(err, &secret):
		return same(FailSecret, secret.Error())
	case errors.As(err, &status) && status.WantsLogin():
		return same(failLogin, status.Error())
	case errors.As(err, &status):
		return same(failStatus, status.Error())
	case errors.As(err, &refused):
		return same(failRefused, refused.Error())
	case errors.As(err, &ownWords) && ownWords.Slow:
		return same(failTimeout, ownWords.Error())
	case errors.As(err, &ownWords):
		return same(failConnection, ownWords.Error())
	case errors.Is(err, process.ErrNotReading):
		return same(failConnection, process.ErrNotReading.Error())
	case errors.Is(err, jsonrpc.ErrTooLong), errors.Is(err, jsonrpc.ErrCrowded):
		return same(failConnection, "a message is larger than the limit")
	case errors.As(err, &dns):
		return Failure{failUnreachable, "its host name is not known", fmt.Sprintf("the host name %q is not known", dns.Name)}
	case errors.As(err, &forbid):
		return Failure{failUnreachable, "its address may not be dialled", forbid.Error()}
	case errors.As(err, &cert), errors.As(err, &unknown):
		return same(failCertificate, "its certificate is not trusted")
	case errors.Is(err, syscall.ECONNREFUSED):
		return Failure{failUnreachable, "nothing answers at its address", "nothing answers at its address" + dialled(err) + ": the connection was refused"}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netFail) && netFail.Timeout():
		return same(failTimeout, "it did not answer in time")
	}
	return same(failConnection, "the connection failed")
}

// dialled returns the address that was dialled, with a blank before it.
func dialled(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		return " " + op.Addr.String()
	}
	return ""
}
