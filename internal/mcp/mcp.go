// Package mcp is the vocabulary of the Model Context Protocol: revisions,
// methods, headers, the names in _meta, log levels and error codes.
//
// It guarantees that each of these words has one home, that a text comes back
// from a header as it was put in, and that what client and proxy say to each
// other is told apart from what a client says to a server. It reads and writes
// no message: the envelope is jsonrpc's.
package mcp

import "slices"

// The revisions that MCPProxy serves, the newest first.
const (
	// Modern is the one whose requests stand for themselves: there is no
	// session, and nothing that a server says outside of an answer but on a
	// subscription.
	Modern = "2026-07-28"
	// Legacy is the newest with sessions, and the one that we ask servers for.
	Legacy  = "2025-11-25"
	legacy2 = "2025-06-18"
	// Batches is the only one that has batches.
	Batches = "2025-03-26"
	legacy4 = "2024-11-05"
	draft   = "2024-10-07" // before the first one; some servers speak it
	// Served are all of them as a JSON array.
	Served = `["` + Modern + `","` + Legacy + `","` + legacy2 + `","` + Batches + `","` + legacy4 + `"]`
)

// IsLegacy reports whether version is a revision with sessions that MCPProxy
// serves.
func IsLegacy(version string) bool {
	switch version {
	case Legacy, legacy2, Batches, legacy4, draft:
		return true
	}
	return false
}

// Named is the revision that a client is told for one of a server: clients do not know the
// draft, which their first revision differs little from.
func Named(version string) string {
	if version == draft {
		return legacy4
	}
	return version
}

// The methods of requests.
const (
	Initialize    = "initialize"
	Discover      = "server/discover"
	Ping          = "ping"
	ListTools     = "tools/list"
	CallTool      = "tools/call"
	ListPrompts   = "prompts/list"
	GetPrompt     = "prompts/get"
	ListResources = "resources/list"
	ListTemplates = "resources/templates/list"
	ReadResource  = "resources/read"
	Subscribe     = "resources/subscribe"
	Unsubscribe   = "resources/unsubscribe"
	Complete      = "completion/complete"
	SetLevel      = "logging/setLevel"
	Listen        = "subscriptions/listen"
	Tasks         = "tasks/" // how those about tasks begin
	GetTask       = Tasks + "get"
	UpdateTask    = Tasks + "update"
	CancelTask    = Tasks + "cancel"
	ListTasks     = Tasks + "list"
	TaskResult    = Tasks + "result"
	Elicit        = "elicitation/create" // which a server asks
)

// The methods of notifications.
const (
	Initialized      = "notifications/initialized"
	Cancelled        = "notifications/cancelled"
	Progress         = "notifications/progress"
	LogMessage       = "notifications/message"
	ToolsChanged     = "notifications/tools/list_changed"
	PromptsChanged   = "notifications/prompts/list_changed"
	ResourcesChanged = "notifications/resources/list_changed"
	RootsChanged     = "notifications/roots/list_changed"
	ResourceUpdated  = "notifications/resources/updated"
	Elicited         = "notifications/elicitation/complete"
	Acknowledged     = "notifications/subscriptions/acknowledged" // of a subscription
	TaskNotices      = "notifications/tasks"                      // how those about tasks begin
)

// The error codes that MCP adds to those of JSON-RPC.
const (
	CodeResourceNotFound   = -32002 // of the revisions with sessions
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
)

var levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Level returns the rank of a log level, 0 for the most talkative one; -1 for
// what is no level.
func Level(name string) int { return slices.Index(levels[:], name) }
