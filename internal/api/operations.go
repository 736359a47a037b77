package api

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/ops"
)

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

	GetTool = declareOperation("GET /servers/{name}/tools/{tool...}", "getTool", Look, "Get a tool with its schemas, and the text that agents read", (*ops.Inspector).Tool).describeParam("tool",
		"The tool's own name. Percent-encode it as one segment, with %2F for a slash. Unencoded slashes are accepted unless the last segment is diff.")
	ListTools    = declareOperation("GET /tools", "listTools", Look, "List the tools, including those that cannot be called", (*ops.Inspector).Tools)
	SearchTools  = declareOperation("GET /tools/search", "searchTools", Look, "Search callable tools, best match first", (*ops.Inspector).SearchTools)
	GetToolStats = declareOperation("GET /tools/stats", "getToolStats", Look, "Get statistics of searches and tool use from the activity log", (*ops.Admin).ToolStats)
	CallTool     = declareOperation("POST /tools/call", "callTool", Call, "Call a tool with the same policy and activity record as on /mcp", callTool).withTimeout(0)

	ListActivity = declareOperation("GET /activity", "listActivity", Look, "List activity records, newest first", (*ops.Admin).Activities).withValidation(normalizeAndCheckActivityFilter)
	GetActivity  = declareOperation("GET /activity/{id}", "getActivity", Look, "Get an activity record", (*ops.Admin).Activity)

	SignIn  = declareBuiltin("POST /session", "signIn", Open, "Sign in a page of the web UI with a code or the API key; only the page itself can do this", signIn)
	Session = declareBuiltin("GET /session", "getSession", Look, "Get the session of the page that sends the request", getSession)
	SignOut = declareBuiltin("DELETE /session", "signOut", Look, "End the sessions of this browser, or all sessions", signOut)
	NewCode = declareBuiltin("POST /session/codes", "newCode", Invite, "Create a code that signs in a page of the web UI once, within a minute", newCode)
	GetCode = declareBuiltin("GET /session/codes/{id}", "getCode", Look, "Get whether a sign-in code was used", getCodeState)

	_ = declarePage("GET /openapi.json", "getDocument", Look, "Get this document", "application/openapi+json", openAPIDocument)
	_ = declarePage("GET /docs", "readDocument", Open, "Get this document as an HTML page", "text/html; charset=utf-8", docsPage)

	ListApprovals    = declareOperation("GET /approvals", "listApprovals", Look, "List pending approvals: servers and definitions", (*ops.Admin).PendingApprovals)
	AddServer        = declareOperation("POST /servers", "addServer", Decide, "Add a server to the configuration file", (*ops.Admin).AddServer).withTimeout(restartTimeout)
	ChangeServer     = declareOperation("PATCH /servers/{name}", "changeServer", Decide, "Change one setting of a server; null removes the key from the file", changeServer).withTimeout(restartTimeout)
	RemoveServer     = declareOperation("DELETE /servers/{name}", "removeServer", Decide, "Remove a server from the configuration file, or delete a proposed server", (*ops.Admin).RemoveServer).withTimeout(restartTimeout)
	EnableServer     = declareOperation("POST /servers/{name}/enable", "enableServer", Decide, "Enable a server", (*ops.Admin).EnableServer).withTimeout(restartTimeout)
	DisableServer    = declareOperation("POST /servers/{name}/disable", "disableServer", Decide, "Disable and stop a server", (*ops.Admin).DisableServer).withTimeout(restartTimeout)
	QuarantineServer = declareOperation("POST /servers/{name}/quarantine", "quarantineServer", Decide, "Put a server back into quarantine and stop it until it is approved", (*ops.Admin).QuarantineServer).withTimeout(restartTimeout)
	ReviewServer     = declareOperation("GET /servers/{name}/review", "reviewServer", Look, "Get the review of a server: its launch, definitions and scanner findings", (*ops.Admin).ServerReview)
	ApproveServer    = declareOperation("POST /servers/{name}/approve", "approveServer", Decide, "Approve the current stage of a server's review, identified by its fingerprint", (*ops.Admin).ApproveServer).withTimeout(restartTimeout)

	ChangeTool  = declareOperation("PATCH "+oneTool, "changeTool", Decide, "Change the name, the description or the position of a tool for agents; null removes a setting from the file", changeTool)
	EnableTool  = declareOperation("POST "+oneTool+"/enable", "enableTool", Decide, "Enable a tool", (*ops.Admin).EnableTool)
	DisableTool = declareOperation("POST "+oneTool+"/disable", "disableTool", Decide, "Disable a tool", (*ops.Admin).DisableTool)
	ApproveTool = declareOperation("POST "+oneTool+"/approve", "approveTool", Decide, "Approve the tool definition with this fingerprint", (*ops.Admin).ApproveTool)
	BlockTool   = declareOperation("POST "+oneTool+"/block", "blockTool", Decide, "Block the tool definition with this fingerprint; later definitions of the tool are not accepted automatically", (*ops.Admin).BlockTool)
	UnblockTool = declareOperation("POST "+oneTool+"/unblock", "unblockTool", Decide, "Unblock the tool definition with this fingerprint; it waits for approval again", ops.UnblockTool)
	DiffTool    = declareOperation("GET "+oneTool+"/diff", "diffTool", Look, "Compare the current definition of a tool with the approved one", (*ops.Admin).DiffTool)

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
