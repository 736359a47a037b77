package api

import (
	"context"
	"net/url"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/notify"
	"mcpproxy/internal/store/activity"
)

// The operations on agent tokens and profiles.
var (
	ListTokens    = declareOperation("GET /tokens", "listTokens", Look, "List agent tokens: scope and time of last use", (*ops.AccessOperations).Tokens)
	CreateToken   = declareOperation("POST /tokens", "createToken", Decide, "Create an agent token; only this response contains its text", (*ops.AccessOperations).CreateToken)
	RevokeToken   = declareOperation("DELETE /tokens/{name}", "revokeToken", Decide, "Revoke an agent token", (*ops.AccessOperations).RevokeToken)
	GetPresence   = declareOperation("GET /presence", "getPresence", Look, "Get the state of presence", (*ops.AccessOperations).Presence)
	SetPresence   = declareOperation("PUT /presence", "setPresence", Decide, "Set the presence anchor, signed by the previous anchor or by itself", (*ops.AccessOperations).SetPresenceAnchor).withTimeout(restartTimeout)
	JoinPresence  = declareOperation("POST /presence/join", "joinPresence", Decide, "Register the anchor with this instance, signed by the anchor", (*ops.AccessOperations).StoreMissingAnchorFingerprints).withTimeout(restartTimeout)
	ResetPresence = declareOperation("POST /presence/reset", "resetPresence", Decide, "Reset presence: all signatures become invalid, and a day later a new anchor can be set", (*ops.AccessOperations).ResetPresence).withTimeout(restartTimeout)
	KeepPresence  = declareOperation("POST /presence/reset/cancel", "cancelPresenceReset", Decide, "Cancel a reset, signed by the anchor", (*ops.AccessOperations).CancelPresenceReset).withTimeout(restartTimeout)

	ListProfiles = declareOperation("GET /profiles", "listProfiles", Look, "List the profiles, with their current servers and tools", (*ops.AccessOperations).Profiles)
)

// The operations that approve several definitions or withdraw an approval.
var (
	ApproveTools = declareOperation("POST /approvals/approve", "approveTools", Review, "Approve several definitions, each with its own result; definitions with findings or relaxed hints must be approved one by one", approveTools).withTimeout(restartTimeout)
	WithdrawTool = declareOperation("POST "+oneTool+"/withdraw", "withdrawTool", Review, "Withdraw the approval of the definition with this fingerprint: the definition needs review again, and an approval that it replaced is valid again", (*ops.Admin).WithdrawToolApproval)
)

// ApprovedTools lists the result of each approval, in order.
type ApprovedTools struct {
	Results []ApprovedTool `json:"results"`
}

// ApprovedTool is the result of one approval.
type ApprovedTool struct {
	Name    string           `json:"name" doc:"The tool id: server:tool."`
	OK      bool             `json:"ok" doc:"Whether the definition was approved."`
	Problem *problemDocument `json:"problem,omitempty" doc:"Why the definition was not approved. Absent if it was."`
}

// RefusalError returns the reason why the definition was not approved, or nil if it was approved.
func (t ApprovedTool) RefusalError() error { return t.Problem.toProblem() }

func approveTools(a *ops.Admin, ctx context.Context, c ops.Caller, in ops.ToolsApproval) (ApprovedTools, error) {
	all, err := a.ApproveTools(ctx, c, in)
	return NewApprovedTools(all), err
}

// NewApprovedTools converts the results of a batch approval.
func NewApprovedTools(all []ops.BatchDecision) (out ApprovedTools) {
	for _, one := range all {
		result := ApprovedTool{Name: one.Name, OK: one.Problem == nil}
		if one.Problem != nil {
			document := newProblemDocument(one.Problem)
			result.Problem = &document
		}
		out.Results = append(out.Results, result)
	}
	return out
}

// The operations on the MCP clients of the user account that runs MCPProxy.
var (
	ListClients = declareOperation("GET /clients", "listClients", Look,
		"List the MCP clients: installed, connected, and their permission rules for MCPProxy's tools", (*ops.ClientOperations).ListClients)
	ConnectClient = declareOperation("POST /clients/{client}/connect", "connectClient", Decide,
		"Add MCPProxy to a client's file, or preview the change", (*ops.ClientOperations).ConnectClient)
	DisconnectClient = declareOperation("POST /clients/{client}/disconnect", "disconnectClient", Decide,
		"Remove MCPProxy from a client's file, or preview the change", (*ops.ClientOperations).DisconnectClient)
	UndoClientChange = declareOperation("POST /clients/undo", "undoClientChange", Decide,
		"Undo a change of a client's file; if the file was changed since, only the entries of the change are restored", (*ops.ClientOperations).UndoClientChange)
	WritePermissions = declareOperation("POST /clients/{client}/permissions", "writePermissions", Decide,
		"Write permission rules into a client's file, so that reads run without asking and other calls ask, or preview the change", (*ops.ClientOperations).WritePermissionRules)
)

// StreamEvents streams server-sent events.
var StreamEvents = declareOperation("GET /events", "streamEvents", Look, "Stream events, as resumable server-sent events", (*ops.EventHub).Events).
	withContentType("text/event-stream").withTimeout(0)

// The operations on the whole activity log. Their paths take precedence over /activity/{id}.
var (
	GetSummary     = declareOperation("GET /activity/summary", "getActivitySummary", Look, "Summarize calls by time, and by lane, server, tool or client", (*ops.ActivityHistory).Summary).omitParams("limit", "offset", "cursor").withValidation(checkSummaryQuery)
	ExportActivity = declareOperation("GET /activity/export", "exportActivity", Look, "Export activity records as a file, newest first; records that are added during the export are not included", (*ops.ActivityHistory).Export).omitParams("limit", "offset", "cursor").withContentType("application/x-ndjson").withValidation(checkExportQuery)
	VerifyActivity = declareOperation("GET /activity/verify", "verifyActivity", Look, "Verify the hash chain of the whole activity log", (*ops.ActivityHistory).VerifyLog).withTimeout(0)
	RedactActivity = declareOperation("POST /activity/{id}/redact", "redactActivity", Decide, "Erase fields of a record permanently; the erasure is recorded", (*ops.ActivityHistory).EraseRecordFields).withTimeout(0)
	ListSessions   = declareOperation("GET /sessions", "listSessions", Look, "List client sessions from the activity log, newest first", (*ops.ActivityHistory).Sessions)
)

func checkSummaryQuery(in *ops.SummaryQuery, given url.Values) error {
	return normalizeAndCheckActivityFilter(&in.Filter, given)
}

func checkExportQuery(in *ops.ExportQuery, given url.Values) error {
	return normalizeAndCheckActivityFilter(&in.Filter, given)
}

// The operations that import servers from the configuration files of MCP clients.
var (
	FindServers = declareOperation("GET /clients/servers", "findServers", Look,
		"List the servers in the files of this account's MCP clients, with secrets masked", (*ops.ImportOperations).FindServers).withTimeout(restartTimeout)
	ImportServers = declareOperation("POST /servers/import", "importServers", Decide,
		"Import servers from clients, or preview the import; each server has its own result", (*ops.ImportOperations).ImportServers).withTimeout(restartTimeout)
)

// TestNotifications sends a test notification.
var TestNotifications = declareOperation("POST /notifications/test", "testNotifications", Operate, "Send a test notification to the desktop and every webhook", (*notify.Notifier).SendTest).withTimeout(restartTimeout)

// The operations.
var (
	GetStatus = declareOperation("GET /status", "getStatus", Look, "Get the status: version, uptime, counts, endpoints", (*ops.Admin).Status)

	ListServers      = declareOperation("GET /servers", "listServers", Look, "List all servers", (*ops.Inspector).Servers)
	GetServer        = declareOperation("GET /servers/{name}", "getServer", Look, "Get a server with its configuration", (*ops.Inspector).Server)
	RestartServer    = declareOperation("POST /servers/{name}/restart", "restartServer", Operate, "Restart a server", (*ops.Admin).RestartServer).withTimeout(restartTimeout)
	LoginServer      = declareOperation("POST /servers/{name}/login", "loginServer", Operate, "Start a login to a server", (*ops.Admin).LoginToServer).withTimeout(loginTimeout)
	GetLogin         = declareOperation("GET /servers/{name}/login", "getLogin", Look, "Get the state of the last login to a server", (*ops.Admin).LoginProgress)
	CompleteLogin    = declareOperation("POST /servers/{name}/login/complete", "completeLogin", Operate, "Complete the login in progress with the last URL in the browser", (*ops.Admin).CompleteLogin)
	LogoutServer     = declareOperation("POST /servers/{name}/logout", "logoutServer", Operate, "Delete the stored login to a server", (*ops.Admin).LogoutFromServer).withTimeout(loginTimeout)
	GetServerLogs    = declareOperation("GET /servers/{name}/logs", "getServerLogs", Look, "Get the last lines of a server's log", (*ops.Inspector).ServerLogs)
	FollowServerLogs = declareOperation("GET /servers/{name}/logs/follow", "followServerLogs", Look, "Stream the last lines of a server's log and all new lines, one event per line", (*ops.Inspector).FollowLogs).withContentType("text/event-stream")

	GetTool = declareOperation("GET /servers/{name}/tools/{tool...}", "getTool", Review, "Get a tool with its schemas, and the text that agents read", (*ops.Inspector).Tool).describeParam("tool",
		"The tool's own name. Percent-encode it as one segment, with %2F for a slash. Unencoded slashes are accepted unless the last segment is diff.")
	ListTools    = declareOperation("GET /tools", "listTools", Review, "List the tools, including those that cannot be called", (*ops.Inspector).Tools)
	SearchTools  = declareOperation("GET /tools/search", "searchTools", Look, "Search callable tools, best match first", (*ops.Inspector).SearchTools)
	GetToolStats = declareOperation("GET /tools/stats", "getToolStats", Look, "Get statistics of searches and tool use from the activity log", (*ops.Admin).ToolStats)
	CallTool     = declareOperation("POST /tools/call", "callTool", Call, "Call a tool with the same policy and activity record as on /mcp", callTool).withTimeout(0)

	ListActivity = declareOperation("GET /activity", "listActivity", Own, "List activity records, newest first", (*ops.Admin).Activities).withValidation(normalizeAndCheckActivityFilter)
	GetActivity  = declareOperation("GET /activity/{id}", "getActivity", Own, "Get an activity record", (*ops.Admin).Activity)

	SignIn  = declareBuiltin("POST /session", "signIn", Open, "Sign in a page of the web UI with a code or the API key; only the page itself can do this", signIn)
	Session = declareBuiltin("GET /session", "getSession", Look, "Get the session of the page that sends the request", getSession)
	SignOut = declareBuiltin("DELETE /session", "signOut", Look, "End the sessions of this browser, or all sessions", signOut)
	NewCode = declareBuiltin("POST /session/codes", "newCode", Invite, "Create a code that signs in a page of the web UI once, within a minute", newCode)
	GetCode = declareBuiltin("GET /session/codes/{id}", "getCode", Look, "Get whether a sign-in code was used", getCodeState)

	_ = declarePage("GET /openapi.json", "getDocument", Look, "Get this document", "application/openapi+json", openAPIDocument)
	_ = declarePage("GET /docs", "readDocument", Open, "Get this document as an HTML page", "text/html; charset=utf-8", docsPage)

	ListApprovals    = declareOperation("GET /approvals", "listApprovals", Review, "List pending approvals: servers and definitions", (*ops.Admin).PendingApprovals)
	AddServer        = declareOperation("POST /servers", "addServer", Decide, "Add a server to the configuration file", (*ops.Admin).AddServer).withTimeout(versionTimeout)
	ChangeServer     = declareOperation("PATCH /servers/{name}", "changeServer", Decide, "Change one setting of a server; null removes the key from the file", changeServer).withTimeout(restartTimeout)
	RemoveServer     = declareOperation("DELETE /servers/{name}", "removeServer", Decide, "Remove a server from the configuration file, or delete a proposed server", (*ops.Admin).RemoveServer).withTimeout(restartTimeout)
	EnableServer     = declareOperation("POST /servers/{name}/enable", "enableServer", Decide, "Enable a server", (*ops.Admin).EnableServer).withTimeout(restartTimeout)
	DisableServer    = declareOperation("POST /servers/{name}/disable", "disableServer", Decide, "Disable and stop a server", (*ops.Admin).DisableServer).withTimeout(restartTimeout)
	QuarantineServer = declareOperation("POST /servers/{name}/quarantine", "quarantineServer", Decide, "Put a server back into quarantine and stop it until it is approved", (*ops.Admin).QuarantineServer).withTimeout(restartTimeout)
	ReviewServer     = declareOperation("GET /servers/{name}/review", "reviewServer", Review, "Get the review of a server: its launch, definitions and scanner findings", (*ops.Admin).ServerReview)
	ApproveServer    = declareOperation("POST /servers/{name}/approve", "approveServer", Review, "Approve the current stage of a server's review, identified by its fingerprint", (*ops.Admin).ApproveServer).withTimeout(restartTimeout)

	ChangeTool  = declareOperation("PATCH "+oneTool, "changeTool", Decide, "Change the name, the description or the position of a tool for agents; null removes a setting from the file", changeTool)
	EnableTool  = declareOperation("POST "+oneTool+"/enable", "enableTool", Decide, "Enable a tool", (*ops.Admin).EnableTool)
	DisableTool = declareOperation("POST "+oneTool+"/disable", "disableTool", Decide, "Disable a tool", (*ops.Admin).DisableTool)
	ApproveTool = declareOperation("POST "+oneTool+"/approve", "approveTool", Review, "Approve the tool definition with this fingerprint", (*ops.Admin).ApproveTool)
	BlockTool   = declareOperation("POST "+oneTool+"/block", "blockTool", Review, "Block the tool definition with this fingerprint; later definitions of the tool are not accepted automatically", (*ops.Admin).BlockTool)
	UnblockTool = declareOperation("POST "+oneTool+"/unblock", "unblockTool", Review, "Unblock the tool definition with this fingerprint; it waits for approval again", ops.UnblockTool)
	DiffTool    = declareOperation("GET "+oneTool+"/diff", "diffTool", Review, "Compare the current definition of a tool with the approved one", (*ops.Admin).DiffTool)

	Primitives = map[tool.DefinitionKind]PrimitiveOps{
		tool.KindPrompt:       declarePrimitiveOps(tool.KindPrompt, "prompts/{item}", "Prompt", "The prompt's name"),
		tool.KindResource:     declarePrimitiveOps(tool.KindResource, "resources/{item}", "Resource", "The resource's URI"),
		tool.KindTemplate:     declarePrimitiveOps(tool.KindTemplate, "templates/{item}", "Template", "The URI template"),
		tool.KindInstructions: declarePrimitiveOps(tool.KindInstructions, "instructions", "Instructions", ""),
	}
)

// oneTool is the path of operations on one tool. The tool's name is one segment, with %2F for a slash, so that no name
// can be mistaken for an action.
const oneTool = "/servers/{name}/tools/{tool}"

// ParseServers parses a pasted text into the form of POST /servers.
var ParseServers = declareOperation("POST /servers/parse", "parseServers", Look, "Parse the servers in a pasted text; nothing is added", (*ops.Admin).ParsePastedServers)

// The operations on pending calls and leases.
var (
	ListPending = declareOperation("GET /pending", "listPending", Own, "List held calls, oldest first", (*ops.CallApprovals).PendingCalls)
	GetPending  = declareOperation("GET /pending/{id}", "getPending", Own, "Get a held call, pending or answered, with its arguments", (*ops.CallApprovals).PendingCall)
	ApproveCall = declareOperation("POST /pending/{id}/approve", "approveCall", Own, "Approve a held call; the client must make exactly this call within 15 minutes, once", (*ops.CallApprovals).ApproveCall)
	DenyCall    = declareOperation("POST /pending/{id}/deny", "denyCall", Own, "Deny a held call; the agent gets the reason", (*ops.CallApprovals).DenyCall)
	ListLeases  = declareOperation("GET /leases", "listLeases", Own, "List active leases", (*ops.CallApprovals).Leases)
	GrantLease  = declareOperation("POST /leases", "grantLease", Own, "Grant a lease: calls that it covers run without approval", (*ops.CallApprovals).GrantLease)
	RevokeLease = declareOperation("DELETE /leases/{id}", "revokeLease", Own, "End a lease", (*ops.CallApprovals).RevokeLease)
)

// PrimitiveOps are the operations on definitions of one kind: prompts, resources, resource templates or instructions.
type PrimitiveOps struct {
	Approve, Block, Unblock, Withdraw *Op[ops.PrimitiveDecision, ops.OfferDiff]
	Diff                              *Op[ops.PrimitiveRef, ops.OfferDiff]
}

// declarePrimitiveOps declares the operations for one kind. A name is one path segment, as for tools.
func declarePrimitiveOps(kind tool.DefinitionKind, path, id, doc string) PrimitiveOps {
	path, doc = "/servers/{name}/"+path, doc+", percent-encoded as one segment, with %2F for a slash."
	what := "the definition of the " + kind.Label()
	ofKind := func(in *ops.PrimitiveRef, _ url.Values) error { in.Kind = kind; return nil }
	about := func(in *ops.PrimitiveDecision, given url.Values) error { return ofKind(&in.PrimitiveRef, given) }
	return PrimitiveOps{
		Approve: declareOperation("POST "+path+"/approve", "approve"+id, Review,
			"Approve "+what+" with this fingerprint", (*ops.Admin).ApprovePrimitive).describeParam("item", doc).withValidation(about),
		Block: declareOperation("POST "+path+"/block", "block"+id, Review,
			"Block "+what+" with this fingerprint; later definitions are not accepted automatically", (*ops.Admin).BlockPrimitive).describeParam("item", doc).withValidation(about),
		Unblock: declareOperation("POST "+path+"/unblock", "unblock"+id, Review,
			"Unblock "+what+" with this fingerprint; it waits for approval again", ops.UnblockPrimitive).describeParam("item", doc).withValidation(about),
		Withdraw: declareOperation("POST "+path+"/withdraw", "withdraw"+id, Review,
			"Withdraw the approval of "+what+" with this fingerprint: the definition waits again, and the previous approval applies again", (*ops.Admin).WithdrawPrimitiveApproval).describeParam("item", doc).withValidation(about),
		Diff: declareOperation("GET "+path+"/diff", "diff"+id, Review,
			"Compare "+what+" with the approved one", (*ops.Admin).DiffPrimitive).describeParam("item", doc).withValidation(ofKind),
	}
}

// AddToys adds the sample servers.
var AddToys = declareOperation("POST /demo", "addToys", Decide, "Add the three sample servers to the configuration file, unless they exist", (*ops.SampleServers).AddMissing).withTimeout(restartTimeout)

// The operations on secrets. No answer contains a value.
var (
	ListSecrets  = declareOperation("GET /secrets", "listSecrets", Look, "List the secrets that are set or that servers need, without values", (*ops.SecretOperations).ListSecrets).withTimeout(restartTimeout)
	SetSecret    = declareOperation("PUT /secrets/{name}", "setSecret", Decide, "Store a secret; servers that need it are restarted", (*ops.SecretOperations).SetSecret).withTimeout(restartTimeout)
	DeleteSecret = declareOperation("DELETE /secrets/{name}", "deleteSecret", Decide, "Remove a secret; servers that need it are stopped", (*ops.SecretOperations).DeleteSecret).withTimeout(restartTimeout)
)

// AddServers adds several servers with one confirmation by the user.
var AddServers = declareOperation("POST /servers/add", "addServers", Decide, "Add several servers to the configuration file with one confirmation; each has its own result", addServers).withTimeout(versionTimeout)

// AddedServers lists the result of each server, in order.
type AddedServers struct {
	Results []ServerResult `json:"results"`
}

// ServerResult is the result of adding one server.
type ServerResult struct {
	Name    string           `json:"name"`
	Server  *ops.ServerView  `json:"server,omitempty" doc:"The added server. Absent if it was not added."`
	Problem *problemDocument `json:"problem,omitempty" doc:"Why the server was not added. Absent if it was."`
}

func addServers(a *ops.Admin, ctx context.Context, c ops.Caller, in ops.AddServersRequest) (AddedServers, error) {
	views, refused, err := a.AddServers(ctx, c, in.Servers)
	if err != nil {
		return AddedServers{}, err
	}
	var out AddedServers
	for i, s := range in.Servers {
		result := ServerResult{Name: s.Name}
		if refused[i] == nil {
			result.Server = &views[i]
		} else {
			document := newProblemDocument(refused[i])
			result.Problem = &document
		}
		out.Results = append(out.Results, result)
	}
	return out, nil
}

// ViewsAndErrors returns for each server its view, or the reason why it was not added.
func (a AddedServers) ViewsAndErrors() (views []ops.ServerView, refused []error) {
	views, refused = make([]ops.ServerView, len(a.Results)), make([]error, len(a.Results))
	for i, r := range a.Results {
		if r.Server != nil {
			views[i] = *r.Server
		}
		refused[i] = r.Problem.toProblem()
	}
	return views, refused
}

// The operations on the configuration file.
var (
	GetConfig        = declareOperation("GET /config", "getConfig", Look, "Get the configuration file, its state, and all settings", (*ops.ConfigOperations).Config)
	ChangeConfig     = declareOperation("PATCH /config", "changeConfig", Decide, "Change settings in the configuration file; null removes a key", (*ops.ConfigOperations).ChangeSettings).withTimeout(restartTimeout)
	ReplaceConfig    = declareOperation("PUT /config", "replaceConfig", Decide, "Replace the text of the configuration file", (*ops.ConfigOperations).ReplaceFile).withTimeout(restartTimeout)
	ValidateConfig   = declareOperation("POST /config/validate", "validateConfig", Look, "Check a text of the configuration file without applying it", (*ops.ConfigOperations).Validate)
	ConfirmConfig    = declareOperation("POST /config/confirm", "confirmConfig", Decide, "Apply the whole configuration file, including changes that grant more access; presence requires a signature", (*ops.ConfigOperations).ConfirmChanges).withTimeout(restartTimeout)
	ListConfigs      = declareOperation("GET /config/history", "listConfigs", Look, "List applied versions of the configuration, newest first", (*ops.ConfigOperations).ListVersions)
	GetEarlierConfig = declareOperation("GET /config/history/{id}", "getEarlierConfig", Look, "Get an applied version of the configuration", (*ops.ConfigOperations).VersionText)
	GetDiagnostics   = declareOperation("GET /diagnostics", "getDiagnostics", Look, "List problems of this installation and their fixes", (*ops.ConfigOperations).RunDiagnostics)
)

// The operations that simulate a decision. They call, record and change nothing.
var (
	TryPolicy = declareOperation("POST /policy/try", "tryPolicy", Look,
		"Evaluate recorded calls under a changed configuration", (*ops.TrialOperations).SimulateConfig).withTimeout(0)
	Can = declareOperation("POST /can", "can", Look,
		"Evaluate a call of a client, profile or token in each lane", (*ops.Explainer).Explain)
)

// normalizeAndCheckActivityFilter splits a tool id into server and tool, and rejects parameters that exclude each
// other.
func normalizeAndCheckActivityFilter(f *activity.Filter, given url.Values) error {
	f.NormalizeUsers()
	// If the filter names a server, the tool is a bare name, which may contain a colon.
	if len(f.Tools) == 1 && len(f.Servers) == 0 {
		if id, err := tool.ParseID(f.Tools[0]); err == nil {
			f.Servers, f.Tools = []string{id.Server}, []string{id.Tool}
		}
	}
	if f.Cursor != "" && given.Has("offset") {
		return newInvalidValueError("offset", given.Get("offset"), "left out when cursor is given")
	}
	if given.Has("start_time") && given.Has("end_time") && f.Until.Before(f.Since) {
		return newInvalidValueError("end_time", given.Get("end_time"), "a time after start_time")
	}
	return nil
}
