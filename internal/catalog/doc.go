// Package catalog turns configuration, connections and approvals into one immutable snapshot: servers, tools with effective
// hints and status, counts, and the search index. It saves the last known tools of each server across restarts, so that tools
// of a disconnected server can be found. It does the same for prompts, resources, templates and instructions ("primitives").
//
// Files:
//   - catalog.go: Catalog. It receives states and lists from upstream, publishes a snapshot after each change, and saves and
//     restores the lists.
//   - snapshot.go: Snapshot and Server. newConfiguredTool computes a tool's effective hints: a pinned hint of the user
//     (hint_overrides) first, then the server's, then the inferred one.
//   - entry.go: Tool, and everything that is derived from a definition alone.
//   - admit.go: accepts the definitions that the server's trust allows; all others await approval.
//   - recheck.go: puts accepted definitions back under review when another server lists a tool that they refer to.
//   - quarantine.go: whether a server awaits review, and whether it may be started.
//   - denied.go: the server's allow and deny lists.
//   - argument_rules.go: the rules that classify a call by its arguments.
//   - tool_settings.go: the user's names and descriptions of tools, and the tools that every search result begins with.
//   - index.go: the search index over callable and locked tools.
//   - scope.go: a snapshot of only a caller's scope.
//   - record_facts.go: the facts about a tool for activity records.
//   - hypothetical.go: a tool's status under another configuration, and all reasons why it is locked.
//   - primitives.go, primitives_decided.go: the lists of one server, alone and with the decisions about them.
//   - primitives_admit.go: accepts prompts, resources and instructions, or holds new and changed ones for review, as admit.go
//     does tools.
//   - primitives_guard.go, primitives_filter.go, primitives_use.go: PrimitiveGuard removes unapproved primitives from lists for
//     clients, and rejects their use.
//   - primitives_follow.go, primitives_freshness.go, primitives_requests.go: list again when a server announces a change, or
//     when a list is too old.
//   - primitives_listkind.go: the kinds of lists.
//
// Guarantees:
//   - Current is one atomic load. A snapshot never changes, and its parts are consistent.
//   - Discovery and calls see the same hints and the same status.
//   - Each list is evaluated by approval before it is published. Lists and instructions for clients omit unapproved
//     definitions. Everything else keeps the server's bytes.
//
// It contacts servers only to list prompts and resources, and does not decide calls.
package catalog
