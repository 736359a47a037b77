package problem

// Code names a kind of failure. Codes are part of the contract.
type Code string

// The codes of the intent declaration.
const (
	IntentMismatch       Code = "INTENT_MISMATCH"
	MissingIntent        Code = "MISSING_INTENT"
	MissingOperationType Code = "MISSING_OPERATION_TYPE"
	InvalidOperationType Code = "INVALID_OPERATION_TYPE"
	ServerMismatch       Code = "SERVER_MISMATCH"
	InvalidSensitivity   Code = "INVALID_SENSITIVITY"
	ReasonTooLong        Code = "REASON_TOO_LONG"
)

// The codes of everything else that can stop a call.
const (
	InvalidName       Code = "INVALID_NAME"
	InvalidArgs       Code = "INVALID_ARGS"
	ArgsMismatch      Code = "ARGS_MISMATCH"
	ServerNotFound    Code = "SERVER_NOT_FOUND"
	ToolNotFound      Code = "TOOL_NOT_FOUND"
	ToolLocked        Code = "TOOL_LOCKED"
	OutOfScope        Code = "OUT_OF_SCOPE"
	ServerUnavailable Code = "SERVER_UNAVAILABLE"
	Timeout           Code = "TIMEOUT"
	Overloaded        Code = "OVERLOADED"
	UpstreamError     Code = "UPSTREAM_ERROR"
	AuditUnavailable  Code = "AUDIT_UNAVAILABLE"
)

// The codes of the other operations.
const (
	InvalidParameter Code = "INVALID_PARAMETER" // a value that is not allowed; details: parameter, value, allowed
	InvalidConfig    Code = "INVALID_CONFIG"
	InvalidRequest   Code = "INVALID_REQUEST" // not JSON, not an object, duplicate keys, …
	TooLarge         Code = "TOO_LARGE"
	NotFound         Code = "NOT_FOUND"
	Ambiguous        Code = "AMBIGUOUS" // a prefix that fits more than one
	Unauthorized     Code = "UNAUTHORIZED"
	Forbidden        Code = "FORBIDDEN"
	LoginNeeded      Code = "LOGIN_NEEDED"
	DaemonNotRunning Code = "DAEMON_NOT_RUNNING"
	Usage            Code = "USAGE"
	Interrupted      Code = "INTERRUPTED"
	Internal         Code = "INTERNAL"
)

// Exit codes of the CLI.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitRefused     = 3
	ExitNoDaemon    = 4
	ExitNotFound    = 5
	ExitLogin       = 6
	ExitTryAgain    = 7
	ExitInterrupted = 130
)

type mapping struct {
	http, exit, rpc int
}

const (
	rpcInvalidRequest = -32600
	rpcInvalidParams  = -32602
	rpcInternal       = -32603
)

// codes is the one table: a code that is not in it does not exist.
var codes = map[Code]mapping{
	IntentMismatch:       {403, ExitRefused, rpcInvalidParams},
	MissingIntent:        {400, ExitRefused, rpcInvalidParams},
	MissingOperationType: {400, ExitRefused, rpcInvalidParams},
	InvalidOperationType: {400, ExitUsage, rpcInvalidParams},
	ServerMismatch:       {403, ExitRefused, rpcInvalidParams},
	InvalidSensitivity:   {400, ExitUsage, rpcInvalidParams},
	ReasonTooLong:        {400, ExitUsage, rpcInvalidParams},
	InvalidName:          {400, ExitUsage, rpcInvalidParams},
	InvalidArgs:          {400, ExitUsage, rpcInvalidParams},
	ArgsMismatch:         {422, ExitUsage, rpcInvalidParams},
	ServerNotFound:       {404, ExitNotFound, rpcInvalidParams},
	ToolNotFound:         {404, ExitNotFound, rpcInvalidParams},
	ToolLocked:           {403, ExitRefused, rpcInvalidParams},
	OutOfScope:           {403, ExitRefused, rpcInvalidParams},
	ServerUnavailable:    {503, ExitTryAgain, rpcInternal},
	Timeout:              {504, ExitTryAgain, rpcInternal},
	Overloaded:           {503, ExitTryAgain, rpcInternal},
	UpstreamError:        {502, ExitFailed, rpcInternal},
	AuditUnavailable:     {503, ExitTryAgain, rpcInternal},
	InvalidParameter:     {400, ExitUsage, rpcInvalidParams},
	InvalidConfig:        {422, ExitFailed, rpcInvalidParams},
	InvalidRequest:       {400, ExitUsage, rpcInvalidRequest},
	TooLarge:             {413, ExitUsage, rpcInvalidRequest},
	NotFound:             {404, ExitNotFound, rpcInvalidParams},
	Ambiguous:            {409, ExitUsage, rpcInvalidParams},
	Unauthorized:         {401, ExitRefused, rpcInvalidRequest},
	Forbidden:            {403, ExitRefused, rpcInvalidRequest},
	LoginNeeded:          {502, ExitLogin, rpcInternal},
	DaemonNotRunning:     {503, ExitNoDaemon, rpcInternal},
	Usage:                {400, ExitUsage, rpcInvalidParams},
	Interrupted:          {499, ExitInterrupted, rpcInternal},
	Internal:             {500, ExitFailed, rpcInternal},
}

// HTTPStatus is the status of a REST answer with this code.
func (c Code) HTTPStatus() int { return c.mapping().http }

// ExitCode is the exit code of a command that failed with this code.
func (c Code) ExitCode() int { return c.mapping().exit }

// JSONRPC is the error code when the failure is a protocol error. A refused
// tool call is none: it is a result with isError.
func (c Code) JSONRPC() int { return c.mapping().rpc }

// Known says whether the code is in the vocabulary.
func (c Code) Known() bool { _, ok := codes[c]; return ok }

func (c Code) mapping() mapping {
	if m, ok := codes[c]; ok {
		return m
	}
	return codes[Internal]
}
