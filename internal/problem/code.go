package problem

// Code is a kind of failure. Codes are part of the public API.
type Code string

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

// codeMapping contains the properties of a code. The meaning is one line of Markdown.
type codeMapping struct {
	http, exit, rpc int
	meaning         string
}

const (
	rpcInvalidRequest = -32600
	rpcInvalidParams  = -32602
	rpcInternal       = -32603
)

// codes maps every code to its properties.
var codes = map[Code]codeMapping{}

// declareCode registers a code with its HTTP status, exit code, JSON-RPC code and meaning.
func declareCode(c Code, http, exit, rpc int, meaning string) Code {
	if _, twice := codes[c]; twice {
		panic("the code " + c + " is declared twice")
	}
	codes[c] = codeMapping{http, exit, rpc, meaning}
	return c
}

// Error codes for the declared intent of a call.
var (
	IntentMismatch       = declareCode("INTENT_MISMATCH", 403, ExitRefused, rpcInvalidParams, "The declared `operation_type` differs from that of the calling tool.")
	MissingIntent        = declareCode("MISSING_INTENT", 400, ExitRefused, rpcInvalidParams, "`require_intent` is on, but the call declares no intent.")
	MissingOperationType = declareCode("MISSING_OPERATION_TYPE", 400, ExitRefused, rpcInvalidParams, "`require_intent` is on, but the intent has no `operation_type`.")
	InvalidOperationType = declareCode("INVALID_OPERATION_TYPE", 400, ExitRefused, rpcInvalidParams, "The `operation_type` must be `read`, `write` or `destructive`.")
	ServerMismatch       = declareCode("SERVER_MISMATCH", 403, ExitRefused, rpcInvalidParams, "The tool is marked destructive but was called as a read or a write, or it is marked as not read-only but was called as a read.")
	ArgumentMismatch     = declareCode("ARGUMENT_MISMATCH", 403, ExitRefused, rpcInvalidParams, "The arguments make the call more harmful than its calling tool allows, or than the hints of a tool called by its own name. `details.word` is the word that decided.")
	SelectInvalid        = declareCode("SELECT_INVALID", 400, ExitUsage, rpcInvalidParams, "The `select` is invalid. No call was sent.")
	InvalidSensitivity   = declareCode("INVALID_SENSITIVITY", 400, ExitRefused, rpcInvalidParams, "The `data_sensitivity` must be `public`, `internal`, `private` or `unknown`.")
	ReasonTooLong        = declareCode("REASON_TOO_LONG", 400, ExitRefused, rpcInvalidParams, "The `reason` is too long. The message has the limit.")
)

// Error codes for other refusals and failures of a call.
var (
	InvalidName       = declareCode("INVALID_NAME", 400, ExitUsage, rpcInvalidParams, "The tool's name must have the form `server:tool`.")
	InvalidArgs       = declareCode("INVALID_ARGS", 400, ExitUsage, rpcInvalidParams, "The arguments are not a JSON object, or the intent has the wrong form.")
	ArgsMismatch      = declareCode("ARGS_MISMATCH", 422, ExitUsage, rpcInvalidParams, "The arguments do not match the input schema of the tool.")
	ServerNotFound    = declareCode("SERVER_NOT_FOUND", 404, ExitNotFound, rpcInvalidParams, "No server has this name.")
	ToolNotFound      = declareCode("TOOL_NOT_FOUND", 404, ExitNotFound, rpcInvalidParams, "The server has no tool with this name.")
	ToolLocked        = declareCode("TOOL_LOCKED", 403, ExitRefused, rpcInvalidParams, "The tool exists but cannot be called. `details.status` has the reason.")
	OfferLocked       = declareCode("OFFER_LOCKED", 403, ExitRefused, rpcInvalidParams, "The prompt, resource or template exists but cannot be used. `details.status` has the reason.")
	OutOfScope        = declareCode("OUT_OF_SCOPE", 403, ExitRefused, rpcInvalidParams, "This caller is not allowed to use the tool.")
	ServerUnavailable = declareCode("SERVER_UNAVAILABLE", 503, ExitTryAgain, rpcInternal, "The server is not connected. No call was sent.")
	Timeout           = declareCode("TIMEOUT", 504, ExitTryAgain, rpcInternal, "No response arrived in time. The call may have taken effect.")
	RateLimited       = declareCode("RATE_LIMITED", 429, ExitTryAgain, rpcInternal, "A limit of the user is reached: calls per minute, calls at a time, or the size of results per day. No call was sent. `details.retry_after` is the wait in seconds.")
	InsufficientScope = declareCode("INSUFFICIENT_SCOPE", 403, ExitRefused, rpcInvalidParams, "The scopes of the access token do not include the lane of the call. `details.scope` is the missing scope.")
	Overloaded        = declareCode("OVERLOADED", 503, ExitTryAgain, rpcInternal, "The queue of calls is full, or the call waited in it for too long. Or an agent restarts a server too often, or proposes too many servers.")
	UpstreamError     = declareCode("UPSTREAM_ERROR", 502, ExitFailed, rpcInternal, "The server or the tool failed, or its response is invalid.")
	ApprovalPending   = declareCode("APPROVAL_PENDING", 403, ExitRefused, rpcInvalidParams, "The call waits for the user's approval and was not sent. The same call, sent again, uses the approval. `details.approval_id` names the question.")
	ApprovalDenied    = declareCode("APPROVAL_DENIED", 403, ExitRefused, rpcInvalidParams, "The user denied the call. The message has the reason, if there is one.")
	CallsPaused       = declareCode("CALLS_PAUSED", 503, ExitRefused, rpcInvalidParams, "The user has paused all calls, or MCPProxy cannot read whether calls are paused. A call that was running was cancelled and may have taken effect; the message says which.")
	ResultGone        = declareCode("RESULT_GONE", 404, ExitNotFound, rpcInvalidParams, "An argument refers to a stored result that has expired, belongs to another caller, or has no value at the path.")
	AuditUnavailable  = declareCode("AUDIT_UNAVAILABLE", 503, ExitTryAgain, rpcInternal, "The activity log cannot be written, so the call was not sent. Or the log cannot be read.")
)

// Error codes of the other operations.
var (
	PermissionsDiffer = declareCode("PERMISSIONS_DIFFER", 409, ExitRefused, rpcInvalidParams, "A client's permission rules differ from the rules that MCPProxy recommends.")
	InvalidParameter  = declareCode("INVALID_PARAMETER", 400, ExitUsage, rpcInvalidParams, "A parameter is missing, unknown or has a value that is not allowed.") // details: parameter, value, allowed
	InvalidConfig     = declareCode("INVALID_CONFIG", 422, ExitFailed, rpcInvalidParams, "The configuration has mistakes, or cannot be applied.")
	InvalidRequest    = declareCode("INVALID_REQUEST", 400, ExitUsage, rpcInvalidRequest, "The request is invalid at this address: not JSON, a duplicate key, or a wrong method.")
	TooLarge          = declareCode("TOO_LARGE", 413, ExitUsage, rpcInvalidRequest, "The request is too large. The message has the limit.")
	NotFound          = declareCode("NOT_FOUND", 404, ExitNotFound, rpcInvalidParams, "There is no such record, stored result, file or address.")
	Ambiguous         = declareCode("AMBIGUOUS", 409, ExitUsage, rpcInvalidParams, "The ID matches more than one record.")
	Conflict          = declareCode("CONFLICT", 409, ExitFailed, rpcInvalidParams, "The object already exists, or was changed since the caller read it.")
	Unproven          = declareCode("UNPROVEN", 500, ExitFailed, rpcInternal, "The activity log, or an export of it, was changed. The message names the first changed record.")
	Unauthorized      = declareCode("UNAUTHORIZED", 401, ExitRefused, rpcInvalidRequest, "The key is missing or wrong, or the session of the web UI has ended.")
	PresenceRequired  = declareCode("PRESENCE_REQUIRED", 403, ExitRefused, rpcInvalidRequest, "The request requires a signature with the passphrase or passkey. `details.statement` is the text to sign. Without it, the message says why signing is not possible.")
	Forbidden         = declareCode("FORBIDDEN", 403, ExitRefused, rpcInvalidRequest, "The request comes from another site, or the caller has no permission.")
	LoginNeeded       = declareCode("LOGIN_NEEDED", 502, ExitLogin, rpcInternal, "The server requires a login, or rejects its credentials.")
	DaemonNotRunning  = declareCode("DAEMON_NOT_RUNNING", 503, ExitNoDaemon, rpcInternal, "No daemon answers.")
	Usage             = declareCode("USAGE", 400, ExitUsage, rpcInvalidParams, "The command line is invalid.")
	Interrupted       = declareCode("INTERRUPTED", 499, ExitInterrupted, rpcInternal, "The caller cancelled, or the command was stopped.")
	Unhealthy         = declareCode("UNHEALTHY", 500, ExitFailed, rpcInternal, "The doctor found problems. Each names the command that fixes it.")
	Internal          = declareCode("INTERNAL", 500, ExitFailed, rpcInternal, "An internal error. The log of the daemon has the cause.")
)

// HTTPStatus returns the HTTP status of the code.
func (c Code) HTTPStatus() int { return c.lookUpMapping().http }

// ExitCode returns the exit code of the CLI.
func (c Code) ExitCode() int { return c.lookUpMapping().exit }

// JSONRPC returns the JSON-RPC error code. A refused tool call does not use it: it is a result with isError set.
func (c Code) JSONRPC() int { return c.lookUpMapping().rpc }

func (c Code) lookUpMapping() codeMapping {
	if m, ok := codes[c]; ok {
		return m
	}
	return codes[Internal]
}
