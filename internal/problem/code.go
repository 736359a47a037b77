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
	OfferLocked       Code = "OFFER_LOCKED"
	OutOfScope        Code = "OUT_OF_SCOPE"
	ServerUnavailable Code = "SERVER_UNAVAILABLE"
	Timeout           Code = "TIMEOUT"
	Overloaded        Code = "OVERLOADED"
	UpstreamError     Code = "UPSTREAM_ERROR"
	AuditUnavailable  Code = "AUDIT_UNAVAILABLE"
)

// The codes of the other operations.
const (
	InvalidParameter Code = "INVALID_PARAMETER" // details: parameter, value, allowed
	InvalidConfig    Code = "INVALID_CONFIG"
	InvalidRequest   Code = "INVALID_REQUEST"
	TooLarge         Code = "TOO_LARGE"
	NotFound         Code = "NOT_FOUND"
	Ambiguous        Code = "AMBIGUOUS"
	Conflict         Code = "CONFLICT"
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

// mapping is what follows from a code. The meaning is one line of Markdown.
type mapping struct {
	http, exit, rpc int
	meaning         string
}

const (
	rpcInvalidRequest = -32600
	rpcInvalidParams  = -32602
	rpcInternal       = -32603
)

// codes is the one table: a code that is not in it does not exist.
var codes = map[Code]mapping{
	IntentMismatch:       {403, ExitRefused, rpcInvalidParams, "The declared `operation_type` is not that of the variant that was called."},
	MissingIntent:        {400, ExitRefused, rpcInvalidParams, "`require_intent` is on, and the call declares no intent."},
	MissingOperationType: {400, ExitRefused, rpcInvalidParams, "`require_intent` is on, and the intent has no `operation_type`."},
	InvalidOperationType: {400, ExitRefused, rpcInvalidParams, "The `operation_type` is none of `read`, `write` and `destructive`."},
	ServerMismatch:       {403, ExitRefused, rpcInvalidParams, "The tool is marked destructive, and it was called as a read or a write."},
	InvalidSensitivity:   {400, ExitRefused, rpcInvalidParams, "The `data_sensitivity` is none of `public`, `internal`, `private` and `unknown`."},
	ReasonTooLong:        {400, ExitRefused, rpcInvalidParams, "The `reason` is longer than the message says it may be."},
	InvalidName:          {400, ExitUsage, rpcInvalidParams, "The name of the tool is not of the form `server:tool`."},
	InvalidArgs:          {400, ExitUsage, rpcInvalidParams, "The arguments are not one JSON object, or the intent has the wrong form."},
	ArgsMismatch:         {422, ExitUsage, rpcInvalidParams, "The arguments do not fit the input schema of the tool."},
	ServerNotFound:       {404, ExitNotFound, rpcInvalidParams, "No server has this name."},
	ToolNotFound:         {404, ExitNotFound, rpcInvalidParams, "The server has no tool with this name."},
	OfferLocked:          {403, ExitRefused, rpcInvalidParams, "The prompt, resource or template exists, but cannot be used; `details.status` says why."},
	ToolLocked:           {403, ExitRefused, rpcInvalidParams, "The tool exists, but cannot be called; `details.status` says why."},
	OutOfScope:           {403, ExitRefused, rpcInvalidParams, "The tool is outside what this caller may use."},
	ServerUnavailable:    {503, ExitTryAgain, rpcInternal, "The server is not connected; nothing was sent to it."},
	Timeout:              {504, ExitTryAgain, rpcInternal, "No answer came in time; what was asked for may have happened all the same."},
	Overloaded:           {503, ExitTryAgain, rpcInternal, "Too much at once: the queue of calls is full, or the call waited in it for too long; an agent restarts a server too often, or proposes too many."},
	UpstreamError:        {502, ExitFailed, rpcInternal, "The server or the tool failed, or its answer cannot be used."},
	AuditUnavailable:     {503, ExitTryAgain, rpcInternal, "The activity log cannot be written, and so the call was not made; or it cannot be read."},
	InvalidParameter:     {400, ExitUsage, rpcInvalidParams, "A parameter is missing, unknown or has a value that is not allowed."},
	InvalidConfig:        {422, ExitFailed, rpcInvalidParams, "The configuration has mistakes, or cannot be put into effect."},
	InvalidRequest:       {400, ExitUsage, rpcInvalidRequest, "The request is not one that its address takes: not JSON, a name twice, another method."},
	TooLarge:             {413, ExitUsage, rpcInvalidRequest, "The request is larger than the message says it may be."},
	NotFound:             {404, ExitNotFound, rpcInvalidParams, "There is no such record, stored result, file or address."},
	Ambiguous:            {409, ExitUsage, rpcInvalidParams, "More than one record begins like this."},
	Conflict:             {409, ExitFailed, rpcInvalidParams, "What is there is not what the request was made for: it exists already, or has changed meanwhile."},
	Unauthorized:         {401, ExitRefused, rpcInvalidRequest, "The key is missing or wrong."},
	Forbidden:            {403, ExitRefused, rpcInvalidRequest, "The request comes from another site, or the caller lacks the right."},
	LoginNeeded:          {502, ExitLogin, rpcInternal, "The server wants a login, or refuses the credentials it was given."},
	DaemonNotRunning:     {503, ExitNoDaemon, rpcInternal, "No daemon answers."},
	Usage:                {400, ExitUsage, rpcInvalidParams, "The command line is wrong."},
	Interrupted:          {499, ExitInterrupted, rpcInternal, "The caller cancelled, or the command was stopped."},
	Internal:             {500, ExitFailed, rpcInternal, "Something failed inside MCPProxy; the log of the daemon has the cause."},
}

// HTTPStatus is the status of a REST answer with this code.
func (c Code) HTTPStatus() int { return c.mapping().http }

// ExitCode is the exit code of a command that failed with this code.
func (c Code) ExitCode() int { return c.mapping().exit }

// JSONRPC is the error code when the failure is a protocol error. A refused
// tool call is none: it is a result with isError.
func (c Code) JSONRPC() int { return c.mapping().rpc }

func (c Code) mapping() mapping {
	if m, ok := codes[c]; ok {
		return m
	}
	return codes[Internal]
}
