// Package mcp defines the vocabulary of the Model Context Protocol: protocol versions, methods, headers,
// names in _meta, log levels and error codes.
//
// Files:
//   - mcp.go: versions, methods, error codes and log levels
//   - meta.go, tasks.go, apps.go: members of _meta, the tasks extension, and MCP Apps
//   - strict.go: the form of definitions and results that strict clients accept
//   - header.go, param_headers.go: header values, and headers that repeat arguments
//   - lines.go: the line protocol between `mcpproxy stdio` and the daemon
//
// Guarantees:
//   - Each of these names is defined here only.
//   - DecodeHeaderValue reverses EncodeHeaderValue.
//   - SplitRequestMeta separates the members of _meta that are for the proxy from those for the server.
//   - It reads and writes no messages; wirejson does that.
package mcp

import (
	"slices"
	"strings"
)

// The protocol versions that MCPProxy supports, newest first.
const (
	// Modern has no sessions: each request is complete in itself, and a server sends messages outside of a
	// reply only on a subscription.
	Modern = "2026-07-28"
	// Legacy is the newest version with sessions. MCPProxy requests it from legacy servers.
	Legacy  = "2025-11-25"
	legacy2 = "2025-06-18"
	// BatchVersion is the only version with batches.
	BatchVersion = "2025-03-26"
	legacy4      = "2024-11-05"
	draft        = "2024-10-07" // before the first release; some servers use it
	// SupportedVersions lists all versions as a JSON array.
	SupportedVersions = `["` + Modern + `","` + Legacy + `","` + legacy2 + `","` + BatchVersion + `","` + legacy4 + `"]`
)

// IsLegacyVersion reports whether version is a supported version with sessions.
func IsLegacyVersion(version string) bool {
	switch version {
	case Legacy, legacy2, BatchVersion, legacy4, draft:
		return true
	}
	return false
}

// OlderVersionIn returns the newest version with sessions that an error text contains, other than the requested one. It
// returns "" if there is none.
func OlderVersionIn(text, requested string) string {
	for _, version := range []string{Legacy, legacy2, BatchVersion, legacy4, draft} {
		if version != requested && strings.Contains(text, version) {
			return version
		}
	}
	return ""
}

// ReplaceDraftVersion returns the version to report to a client for the version of a server. It replaces the draft,
// which clients do not support and which differs little from the first release.
func ReplaceDraftVersion(version string) string {
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
	Tasks         = "tasks/" // prefix of the methods of tasks
	GetTask       = Tasks + "get"
	UpdateTask    = Tasks + "update"
	CancelTask    = Tasks + "cancel"
	ListTasks     = Tasks + "list"
	TaskResult    = Tasks + "result"
	Elicit        = "elicitation/create"     // sent by servers
	CreateMessage = "sampling/createMessage" // sent by servers
	ListRoots     = "roots/list"             // sent by servers
)

// QuestionCapability returns the capability that a client must declare so that a server may send it requests with this
// method, or "".
func QuestionCapability(method string) string {
	switch method {
	case Elicit:
		return "elicitation"
	case CreateMessage:
		return "sampling"
	case ListRoots:
		return "roots"
	}
	return ""
}

// The methods of notifications.
const (
	Initialized       = "notifications/initialized"
	Cancelled         = "notifications/cancelled"
	Progress          = "notifications/progress"
	LogMessage        = "notifications/message"
	ToolsChanged      = "notifications/tools/list_changed"
	PromptsChanged    = "notifications/prompts/list_changed"
	ResourcesChanged  = "notifications/resources/list_changed"
	RootsChanged      = "notifications/roots/list_changed"
	ResourceUpdated   = "notifications/resources/updated"
	Elicited          = "notifications/elicitation/complete"
	Acknowledged      = "notifications/subscriptions/acknowledged" // for a subscription
	TaskNotifications = "notifications/tasks"                      // prefix of the notifications of tasks
)

// The error codes that MCP adds to those of JSON-RPC.
const (
	CodeResourceNotFound   = -32002 // legacy only
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
)

var levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// LogLevelRank returns the rank of a log level, from 0 for debug, or -1 for an unknown level.
func LogLevelRank(name string) int { return slices.Index(levels[:], name) }
