package upstream

import "mcpproxy/internal/mcp/transport"

// Codes of State.Failure.
const (
	NoProcess          = transport.NoProcess
	NoDirectory        = transport.NoDirectory
	NoSandbox          = transport.NoSandbox
	Exited             = transport.Exited
	TimedOut           = transport.TimedOut
	Unreachable        = transport.Unreachable
	UnknownHost        = transport.UnknownHost
	Forbidden          = transport.Forbidden
	Certificate        = transport.Certificate
	CertificateExpired = transport.CertificateExpired
	CertificateName    = transport.CertificateName
	Status             = transport.Status
	LoginNeeded        = transport.LoginNeeded
	LoginNotRenewed    = transport.LoginNotRenewed
	SecretNeeded       = transport.SecretNeeded
	VariableNeeded     = transport.VariableNeeded
	Refused            = transport.Refused
	Broken             = transport.Broken
)
