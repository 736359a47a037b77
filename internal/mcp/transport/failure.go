package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"mcpproxy/internal/mcp/dialpolicy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/process"
	"mcpproxy/internal/upstream/sandbox"
)

// The codes of failures, which are the reasons why a server is not connected.
const (
	NoProcess          = "NOT_STARTED"  // its command could not be started
	NoDirectory        = "NO_DIRECTORY" // its working directory is missing
	NoSandbox          = "NO_SANDBOX"   // its sandbox could not be set up
	Exited             = "EXITED"
	TimedOut           = "TIMEOUT"
	Unreachable        = "UNREACHABLE"
	UnknownHost        = "UNKNOWN_HOST"
	Forbidden          = "FORBIDDEN"
	Certificate        = "CERTIFICATE"         // the certificate is not trusted, or otherwise invalid
	CertificateExpired = "CERTIFICATE_EXPIRED" // the certificate has expired, or is not valid yet
	CertificateName    = "CERTIFICATE_NAME"    // the certificate is for another host
	Status             = "HTTP_STATUS"
	LoginNeeded        = "LOGIN_NEEDED"
	LoginNotRenewed    = "LOGIN_NOT_RENEWED"
	SecretNeeded       = "SECRET_NEEDED"
	VariableNeeded     = "VARIABLE_NEEDED"
	Refused            = "REFUSED"
	Broken             = "CONNECTION"
)

// loginNotRenewed is the text of LoginNotRenewed.
const loginNotRenewed = "its login could not be renewed, because the authorization server is not available"

// ServerFailure is the reason why a server is not connected, for agents and for users. Said is MCPProxy's own text. It
// contains nothing from the server, so agents may see it. Detail is for users and may contain the last line of the
// server's stderr, escaped and clipped.
type ServerFailure struct {
	Code   string
	Said   string
	Detail string
}

// WithMaskedCredentials returns f with masked credentials.
func (f ServerFailure) WithMaskedCredentials(m process.Masker) ServerFailure {
	return ServerFailure{f.Code, m.MaskText(f.Said), m.MaskText(f.Detail)}
}

// String returns the code and the text, or "" if there is no failure.
func (f ServerFailure) String() string {
	if f.Code == "" {
		return ""
	}
	return f.Code + ": " + f.Said
}

// NeedsSecretError is the error for a server that is not started because a secret is missing.
type NeedsSecretError string

func (e NeedsSecretError) Error() string { return string(e) }

// NeedsVariableError is the error for a server whose configuration refers to an unset environment variable.
type NeedsVariableError string

func (e NeedsVariableError) Error() string { return string(e) }

// ServerRPCError is a JSON-RPC error in reply to a request of MCPProxy itself. The server's text goes only to
// the server's log.
type ServerRPCError struct{ Code int }

func (e *ServerRPCError) Error() string {
	return fmt.Sprintf("the server answered with error %d; see its log for the text", e.Code)
}

// ClassifyFailure classifies an error by its type, never by its text.
func ClassifyFailure(err error) ServerFailure {
	var (
		exited   *process.ExitError
		spawn    *process.SpawnError
		confine  *sandbox.SetupError
		status   *StatusError
		refused  *ServerRPCError
		dns      *net.DNSError
		forbid   *dialpolicy.AddressNotAllowedError
		cert     *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		netFail  net.Error
		renewal  *AuthorizationError
		ownWords *problem.TrustedTextError
		secret   NeedsSecretError
		variable NeedsVariableError
	)
	same := func(code, words string) ServerFailure { return ServerFailure{code, words, words} }
	switch {
	case errors.As(err, &exited):
		f := same(Exited, exited.Reason())
		if line := exited.CauseLine(); line != "" {
			if exited.NoNetwork() {
				f.Detail += ": it could not reach the network"
			}
			f.Detail += ": " + line
		}
		return f
	case errors.As(err, &spawn) && spawn.Dir != "":
		return ServerFailure{NoDirectory, "its working directory does not exist", fmt.Sprintf("its working directory %q does not exist", spawn.Dir)}
	case errors.As(err, &spawn):
		return ServerFailure{NoProcess, "its command is " + spawn.Reason(), fmt.Sprintf("the command %q is %s", spawn.Command, spawn.Reason())}
	case errors.As(err, &confine):
		return ServerFailure{NoSandbox, "its sandbox could not be set up", "its sandbox could not be set up: " + confine.Error()}
	case errors.As(err, &secret):
		return same(SecretNeeded, secret.Error())
	case errors.As(err, &variable):
		return same(VariableNeeded, variable.Error())
	case errors.As(err, &renewal):
		return ServerFailure{LoginNotRenewed, loginNotRenewed, loginNotRenewed + ": " + renewal.Cause.Error()}
	case errors.As(err, &status) && status.WantsLogin():
		return same(LoginNeeded, status.Error())
	case errors.As(err, &status) && status.Status == http.StatusForbidden:
		return same(Forbidden, status.Error())
	case errors.As(err, &status):
		return same(Status, status.Error())
	case errors.As(err, &refused):
		return same(Refused, refused.Error())
	case errors.As(err, &ownWords) && ownWords.Slow:
		return same(TimedOut, ownWords.Error())
	case errors.As(err, &ownWords):
		return same(Broken, ownWords.Error())
	case errors.Is(err, process.ErrNotReading):
		return same(Broken, process.ErrNotReading.Error())
	case errors.Is(err, wirejson.ErrTooLong), errors.Is(err, wirejson.ErrNoBuffer):
		return same(Broken, "a message is larger than the limit")
	case errors.As(err, &dns) && !dns.IsNotFound:
		return ServerFailure{UnknownHost, "its host name cannot be resolved, is the network down?", fmt.Sprintf("the host name %q cannot be resolved, is the network down?", dns.Name)}
	case errors.As(err, &dns):
		return ServerFailure{UnknownHost, "its host name is not known", fmt.Sprintf("the host name %q is not known", dns.Name)}
	case errors.As(err, &forbid):
		return ServerFailure{Unreachable, "its address may not be dialled", forbid.Error()}
	case errors.As(err, &cert), errors.As(err, &unknown):
		return certificateFailure(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return ServerFailure{Unreachable, "nothing answers at its address", "nothing answers at its address" + dialledAddressText(err) + ": the connection was refused"}
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETDOWN):
		return ServerFailure{Unreachable, "no route to its address, is the network down?", "no route to its address" + dialledAddressText(err) + ", is the network down?"}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netFail) && netFail.Timeout():
		return same(TimedOut, "it did not answer in time")
	}
	return same(Broken, "the connection failed")
}

// certificateFailure classifies a certificate error.
func certificateFailure(err error) ServerFailure {
	code, words := Certificate, "its certificate is not trusted"
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		code, words = CertificateName, "its certificate is for another host"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		code, words = CertificateExpired, "its certificate has expired, or is not valid yet"
	}
	return ServerFailure{code, words, words}
}

// dialledAddressText returns the address of a dial error, preceded by a space.
func dialledAddressText(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		return " " + op.Addr.String()
	}
	return ""
}
