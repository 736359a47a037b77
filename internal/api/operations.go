package api

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/ops"
)

// The operations.
var (
	GetStatus = declareOperation("GET /status", "getStatus", Look, "Get the status: version, uptime, counts, endpoints", (*ops.Admin).Status)

	ListServers      = declareOperation("GET /servers", "listServers", Look, "All servers", (*ops.Inspector).Servers)
	GetServer        = declareOperation("GET /servers/{name}", "getServer", Look, "One server, with how it is configured", (*ops.Inspector).Server)
	RestartServer    = declareOperation("POST /servers/{name}/restart", "restartServer", Operate, "Restart a server", (*ops.Admin).RestartServer).withTimeout(restartTimeout)
	LoginServer      = declareOperation("POST /servers/{name}/login", "loginServer", Operate, "Start a login to a server", (*ops.Admin).LoginToServer).withTimeout(loginTimeout)
	GetLogin         = declareOperation("GET /servers/{name}/login", "getLogin", Look, "How far the last login to a server is", (*ops.Admin).LoginProgress)
	LogoutServer     = declareOperation("POST /servers/{name}/logout", "logoutServer", Operate, "Forget the login to a server", (*ops.Admin).LogoutFromServer).withTimeout(loginTimeout)
	GetServerLogs    = declareOperation("GET /servers/{name}/logs", "getServerLogs", Look, "The end of a server's log", (*ops.Inspector).ServerLogs)
	FollowServerLogs = declareOperation("GET /servers/{name}/logs/follow", "followServerLogs", Look, "The last lines of a server's log and those that come, each as the data of an event", (*ops.Inspector).FollowLogs).withContentType("text/event-stream")

	GetTool = declareOperation("GET /servers/{name}/tools/{tool...}", "getTool", Look, "Get a tool with its schemas, and the text that agents read", (*ops.Inspector).Tool).describeParam("tool",
		"The tool's own name, best percent-encoded as one segment: a slash in it is %2F. Slashes are taken as they are unless the last segment is diff.")
	ListTools    = declareOperation("GET /tools", "listTools", Look, "The tools, callable or not, by the page", (*ops.Inspector).Tools)
	SearchTools  = declareOperation("GET /tools/search", "searchTools", Look, "Search callable tools, best match first", (*ops.Inspector).SearchTools)
	GetToolStats = declareOperation("GET /tools/stats", "getToolStats", Look, "How well tools are found and which are used, by the log", (*ops.Admin).ToolStats)
	CallTool     = declareOperation("POST /tools/call", "callTool", Call, "Call a tool: the same decision and the same record as on /mcp", callTool).withTimeout(0)

	ListActivity = declareOperation("GET /activity", "listActivity", Look, "The log, newest first", (*ops.Admin).Activities).withValidation(normalizeAndCheckActivityFilter)
	GetActivity  = declareOperation("GET /activity/{id}", "getActivity", Look, "One record of the log", (*ops.Admin).Activity)

	SignIn  = declareBuiltin("POST /session", "signIn", Open, "Sign a page of the web UI in, by a code or the key: from that page alone", signIn)
	Session = declareBuiltin("GET /session", "getSession", Look, "The session of the page that asks", getSession)
	SignOut = declareBuiltin("DELETE /session", "signOut", Look, "End the sessions of the browser that asks, or all of them", signOut)
	NewCode = declareBuiltin("POST /session/codes", "newCode", Invite, "Make a code that signs a page of the web UI in once, within a minute", newCode)
	GetCode = declareBuiltin("GET /session/codes/{id}", "getCode", Look, "Whether a code was used", getCodeState)

	_ = declarePage("GET /openapi.json", "getDocument", Look, "This document", "application/openapi+json", openAPIDocument)
	_ = declarePage("GET /docs", "readDocument", Open, "This document as a page", "text/html; charset=utf-8", docsPage)

	ListApprovals    = declareOperation("GET /approvals", "listApprovals", Look, "List pending approvals: servers and definitions", (*ops.Admin).PendingApprovals)
	AddServer        = declareOperation("POST /servers", "addServer", Decide, "Write a server into the configuration file", (*ops.Admin).AddServer).withTimeout(restartTimeout)
	ChangeServer     = declareOperation("PATCH /servers/{name}", "changeServer", Decide, "Change one thing about a server; null takes a key out of the file", changeServer).withTimeout(restartTimeout)
	RemoveServer     = declareOperation("DELETE /servers/{name}", "removeServer", Decide, "Take a server out of the configuration file, or drop one that was proposed", (*ops.Admin).RemoveServer).withTimeout(restartTimeout)
	EnableServer     = declareOperation("POST /servers/{name}/enable", "enableServer", Decide, "Enable a server", (*ops.Admin).EnableServer).withTimeout(restartTimeout)
	DisableServer    = declareOperation("POST /servers/{name}/disable", "disableServer", Decide, "Disable a server: it is stopped", (*ops.Admin).DisableServer).withTimeout(restartTimeout)
	QuarantineServer = declareOperation("POST /servers/{name}/quarantine", "quarantineServer", Decide, "Put a server back into quarantine: it is stopped until it is approved", (*ops.Admin).QuarantineServer).withTimeout(restartTimeout)
	ReviewServer     = declareOperation("GET /servers/{name}/review", "reviewServer", Look, "Get the review of a server: its launch, definitions and scanner findings", (*ops.Admin).ServerReview)
	ApproveServer    = declareOperation("POST /servers/{name}/approve", "approveServer", Decide, "Approve the stage of a review that has this fingerprint", (*ops.Admin).ApproveServer).withTimeout(restartTimeout)

	EnableTool  = declareOperation("POST "+oneTool+"/enable", "enableTool", Decide, "Switch a tool on", (*ops.Admin).EnableTool)
	DisableTool = declareOperation("POST "+oneTool+"/disable", "disableTool", Decide, "Switch a tool off", (*ops.Admin).DisableTool)
	ApproveTool = declareOperation("POST "+oneTool+"/approve", "approveTool", Decide, "Approve the definition that has this fingerprint", (*ops.Admin).ApproveTool)
	BlockTool   = declareOperation("POST "+oneTool+"/block", "blockTool", Decide, "Block the definition with this fingerprint: no definition of the tool is accepted automatically after that", (*ops.Admin).BlockTool)
	UnblockTool = declareOperation("POST "+oneTool+"/unblock", "unblockTool", Decide, "End the refusal of the definition that has this fingerprint: it waits again", ops.UnblockTool)
	DiffTool    = declareOperation("GET "+oneTool+"/diff", "diffTool", Look, "Compare a tool's definition with the approved one, by words and hints", (*ops.Admin).DiffTool)

	Primitives = map[tool.DefinitionKind]PrimitiveOps{
		tool.KindPrompt:       declarePrimitiveOps(tool.KindPrompt, "prompts/{item}", "Prompt", "The prompt's name"),
		tool.KindResource:     declarePrimitiveOps(tool.KindResource, "resources/{item}", "Resource", "The resource's address"),
		tool.KindTemplate:     declarePrimitiveOps(tool.KindTemplate, "templates/{item}", "Template", "The template of addresses"),
		tool.KindInstructions: declarePrimitiveOps(tool.KindInstructions, "instructions", "Instructions", ""),
	}
)

// oneTool is the path of a tool in operations on it. The tool's name is one segment, so that no name can be mistaken for an action: a slash in it is
// %2F.
const oneTool = "/servers/{name}/tools/{tool}"
