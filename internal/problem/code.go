package problem

// Code is a kind of failure. Codes are part of the contract.
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

// codeMapping has the properties of a code. The meaning is one line of Markdown.
type codeMapping struct {
	http, exit, rpc int
	meaning         string
}

const (
	rpcInvalidRequest = -32600
	rpcInvalidParams  = -32602
	rpcInternal       = -32603
)

// codes has the mapping of every code.
var codes = map[Code]codeMapping{}

// declareCode registers a code with its HTTP status, exit code, JSON-RPC code and meaning.
func declareCode(c Code, http, exit, rpc int, meaning string) Code {
	if _, twice := codes[c]; twice {
		panic("the code " + c + " is declared twice")
	}
	codes[c] = codeMapping{http, exit, rpc, meaning}
	return c
}

// The codes of the intent declaration.
var (
	IntentMismatch       = declareCode("INTENT_MISMATCH", 403, ExitRefused, rpcInvalidParams, "The declared `operation_type` is not that of the variant that was called.")
	MissingIntent        = declareCode("MISSING_INTENT", 400, ExitRefused, rpcInvalidParams, "`require_intent` is on, and the call declares no intent.")
	MissingOperationType = declareCode("MISSING_OPERATION_TYPE", 400, ExitRefused, rpcInvalidParams, "`require_intent` is on, and the intent has no `operation_type`.")
	InvalidOperationType = declareCode("INVALID_OPERATION_TYPE", 400, ExitRefused, rpcInvalidParams, "The `operation_type` is none of `read`, `write` and `destructive`.")
	ServerMismatch       = declareCode("SERVER_MISMATCH", 403, ExitRefused, rpcInvalidParams, "The tool is marked destructive, and it was called as a read or a write; or as not read-only, and it was called as a read.")
	ArgumentMismatch     = declareCode("ARGUMENT_MISMATCH", 403, ExitRefused, rpcInvalidParams, "The arguments make the call more than its variant, or the hints of a tool that is called by its own name, say; `details.word` decided.")
	SelectInvalid        = declareCode("SELECT_INVALID", 400, ExitUsage, rpcInvalidParams, "The `select` is no selection that is taken here; nothing was sent.")
	InvalidSensitivity   = declareCode("INVALID_SENSITIVITY", 400, ExitRefused, rpcInvalidParams, "The `data_sensitivity` is none of `public`, `internal`, `private` and `unknown`.")
	ReasonTooLong        = declareCode("REASON_TOO_LONG", 400, ExitRefused, rpcInvalidParams, "The `reason` is longer than the message says it may be.")
)

// The codes of other refusals and failures of a call.
var (
	InvalidName       = declareCode("INVALID_NAME", 400, ExitUsage, rpcInvalidParams, "The name of the tool is not of the form `server:tool`.")
	InvalidArgs       = declareCode("INVALID_ARGS", 400, ExitUsage, rpcInvalidParams, "The arguments are not one JSON object, or the intent has the wrong form.")
	ArgsMismatch      = declareCode("ARGS_MISMATCH", 422, ExitUsage, rpcInvalidParams, "The arguments do not fit the input schema of the tool.")
	ServerNotFound    = declareCode("SERVER_NOT_FOUND", 404, ExitNotFound, rpcInvalidParams, "No server has this name.")
	ToolNotFound      = declareCode("TOOL_NOT_FOUND", 404, ExitNotFound, rpcInvalidParams, "The server has no tool with this name.")
	ToolLocked        = declareCode("TOOL_LOCKED", 403, ExitRefused, rpcInvalidParams, "The tool exists, but cannot be called; `details.status` says why.")
	OfferLocked       = declareCode("OFFER_LOCKED", 403, ExitRefused, rpcInvalidParams, "The prompt, resource or template exists, but cannot be used; `details.status` says why.")
	OutOfScope        = declareCode("OUT_OF_SCOPE", 403, ExitRefused, rpcInvalidParams, "The tool is outside what this caller may use.")
	ServerUnavailable = declareCode("SERVER_UNAVAILABLE", 503, ExitTryAgain, rpcInternal, "The server is not connected; nothing was sent to it.")
	Timeout           = declareCode("TIMEOUT", 504, ExitTryAgain, rpcInternal, "No answer came in time; what was asked for may have happened all the same.")
	Overloaded        = declareCode("OVERLOADED", 503, ExitTryAgain, rpcInternal, "Too much at once: the queue of calls is full, or the call waited in it for too long; an agent restarts a server too often, or proposes too many.")
	UpstreamError     = declareCode("UPSTREAM_ERROR", 502, ExitFailed, rpcInternal, "The server or the tool failed, or its answer cannot be used.")
	ApprovalPending   = declareCode("APPROVAL_PENDING", 403, ExitRefused, rpcInvalidParams, "The call waits for a person, and was not made. The same call again uses the approval; `details.approval_id` names the question.")
	ApprovalDenied    = declareCode("APPROVAL_DENIED", 403, ExitRefused, rpcInvalidParams, "A person has denied the call; the message has the reason, if one was given.")
	ResultGone        = declareCode("RESULT_GONE", 404, ExitNotFound, rpcInvalidParams, "An argument is to be a result that is not kept any more, or is not the caller's, or has nothing at the path.")
	AuditUnavailable  = declareCode("AUDIT_UNAVAILABLE", 503, ExitTryAgain, rpcInternal, "The activity log cannot be written, and so the call was not made; or it cannot be read.")
)

// The codes of the other operations.
var (
	PermissionsDiffer = declareCode("PERMISSIONS_DIFFER", 409, ExitRefused, rpcInvalidParams, "What a client does with the tools of MCPProxy is not what MCPProxy recommends.")
	InvalidParameter  = declareCode("INVALID_PARAMETER", 400, ExitUsage, rpcInvalidParams, "A parameter is missing, unknown or has a value that is not allowed.") // details: parameter, value, allowed
	InvalidConfig     = declareCode("INVALID_CONFIG", 422, ExitFailed, rpcInvalidParams, "The configuration has mistakes, or cannot be put into effect.")
	InvalidRequest    = declareCode("INVALID_REQUEST", 400, ExitUsage, rpcInvalidRequest, "The request is not one that its address takes: not JSON, a name twice, another method.")
	TooLarge          = declareCode("TOO_LARGE", 413, ExitUsage, rpcInvalidRequest, "The request is larger than the message says it may be.")
	NotFound          = declareCode("NOT_FOUND", 404, ExitNotFound, rpcInvalidParams, "There is no such record, stored result, file or address.")
	Ambiguous         = declareCode("AMBIGUOUS", 409, ExitUsage, rpcInvalidParams, "More than one record begins like this.")
	Conflict          = declareCode("CONFLICT", 409, ExitFailed, rpcInvalidParams, "What is there is not what the request was made for: it exists already, or has changed meanwhile.")
	Unproven          = declareCode("UNPROVEN", 500, ExitFailed, rpcInternal, "The activity log, or an export of it, is not as it was written; the message names the first break.")
	Unauthorized      = declareCode("UNAUTHORIZED", 401, ExitRefused, rpcInvalidRequest, "The key is missing or wrong, or the session of the web UI has ended.")
	PresenceRequired  = declareCode("PRESENCE_REQUIRED", 403, ExitRefused, rpcInvalidRequest, "A person has to sign this, with the passphrase or the passkey that is set; `details.statement` is what is to be signed, or the message says why nothing can be.")
	Forbidden         = declareCode("FORBIDDEN", 403, ExitRefused, rpcInvalidRequest, "The request comes from another site, or the caller lacks the right.")
	LoginNeeded       = declareCode("LOGIN_NEEDED", 502, ExitLogin, rpcInternal, "The server wants a login, or refuses the credentials it was given.")
	DaemonNotRunning  = declareCode("DAEMON_NOT_RUNNING", 503, ExitNoDaemon, rpcInternal, "No daemon answers.")
	Usage             = declareCode("USAGE", 400, ExitUsage, rpcInvalidParams, "The command line is wrong.")
	Interrupted       = declareCode("INTERRUPTED", 499, ExitInterrupted, rpcInternal, "The caller cancelled, or the command was stopped.")
	Unhealthy         = declareCode("UNHEALTHY", 500, ExitFailed, rpcInternal, "The doctor has found something wrong; each finding names the command that mends it.")
	Internal          = declareCode("INTERNAL", 500, ExitFailed, rpcInternal, "Something failed inside MCPProxy; the log of the daemon has the cause.")
)

// HTTPStatus returns the HTTP status of the code.
func (c Code) HTTPStatus() int { return c.lookUpMapping().http }

// ExitCode returns the exit code of the CLI.
func (c Code) ExitCode() int { return c.lookUpMapping().exit }

// JSONRPC returns the JSON-RPC error code. A refused tool call is a result with isError instead.
func (c Code) JSONRPC() int { return c.lookUpMapping().rpc }

func (c Code) lookUpMapping() codeMapping {
	if m, ok := codes[c]; ok {
		return m
	}
	return codes[Internal]
}
