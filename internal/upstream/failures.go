package upstream

import "mcpproxy/internal/link"

// The codes of failures: what State.Failure has for why a server is away.
const (
	NoProcess          = link.NoProcess
	NoDirectory        = link.NoDirectory
	Exited             = link.Exited
	TimedOut           = link.TimedOut
	Unreachable        = link.Unreachable
	UnknownHost        = link.UnknownHost
	Forbidden          = link.Forbidden
	Certificate        = link.Certificate
	CertificateExpired = link.CertificateExpired
	CertificateName    = link.CertificateName
	Status             = link.Status
	LoginNeeded        = link.LoginNeeded
	SecretNeeded       = link.SecretNeeded
	VariableNeeded     = link.VariableNeeded
	Refused            = link.Refused
	Broken             = link.Broken
)
