package ops

import (
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// usageInstructions returns the instructions for agents in a search result, in at most 300 bytes.
func usageInstructions(requireIntent bool, hits []catalog.Hit) string {
	intent := "An intent, if given, must match the variant."
	if requireIntent {
		intent = "intent.operation_type is required and must match the variant."
	}
	guess := ""
	if slices.ContainsFunc(hits, func(h catalog.Hit) bool { return h.Tool.InferredOperation().Operation != policy.NoOperation }) {
		guess = " inferred_operation is a guess."
	}
	if slices.ContainsFunc(hits, func(h catalog.Hit) bool { return laneArgument(h.Tool) != "" }) {
		guess += " lane_by: the argument that decides the lane."
	}
	return "Call a tool by name with its call_with: call_tool_read only reads, call_tool_write creates or updates, " +
		"call_tool_destructive deletes or cannot be undone (also if unsure). " + intent + guess
}

// The texts of notices in a search result.
const (
	lockedNotice = "No tool that can be called matches, but %d that cannot be called now do. " +
		"Retry with include_disabled: true to see why, and how to unlock them."
	unhintedNotice  = "Matching tools left out because they have no hints: %d. Search without operation_type to see them."
	truncatedNotice = "The answer is too large: tools have a signature instead of inputSchema, or texts that end in …; search for a tool's full name with limit 1 to get its schema."
	oversizedNotice = "This tool is too large to show: call it as its signature says."
)

// noMatchNotice returns suggestions for a search without matches. The server names take at most most bytes. If also is
// set, the notice follows another suggestion.
func noMatchNotice(s *catalog.Snapshot, r *RetrieveRequest, also bool, most int) string {
	try := "Nothing matches: try other words"
	switch {
	case also:
		try = "Or try other words"
	case strings.TrimSpace(r.Query) == "":
		try = "The query is empty: say what you want to do, in your own words"
	case r.Operation != policy.NoOperation:
		try += ", or leave out operation_type"
	}
	try += ". The name of a server lists its tools"
	before := ": "
	for _, server := range s.Servers() {
		if !hasCallableTools(server) {
			continue
		}
		if most -= len(server.Name) + len(", "); most < 0 {
			return try + ", …"
		}
		try += before + server.Name
		before = ", "
	}
	return try + "."
}

// noAccessNotice is the notice for a client that may not use any server.
const noAccessNotice = "This client may not use any tool. The user can extend the scope of its agent token or profile."

// noServerNotice returns a notice that explains how to add the first server.
func noServerNotice(proposed int, management config.ServerManagement) string {
	if proposed > 0 {
		return fmt.Sprintf("There is no server yet. %d proposed servers wait for approval: the user sees them with `mcpproxy upstream list`.", proposed)
	}
	add := "There are no servers yet. The user adds one with `mcpproxy upstream add NAME -- COMMAND` or `mcpproxy upstream add NAME --url URL`"
	if management == config.ManagePropose {
		add += "; you can propose one with upstream_servers and operation add"
	}
	return add + "."
}

// hasCallableTools reports whether the server has a tool that all clients can call.
func hasCallableTools(s *catalog.Server) bool {
	return slices.ContainsFunc(s.Tools, func(t *catalog.Tool) bool { return t.Callable() && !t.ForClients && t.ShadowedBy() == "" })
}

// appendNotConnectedServers appends the servers that are not connected, because they may have more tools when they are
// connected. If there are hits, it appends only servers that match the query or the hits. It appends at most room bytes
// and leaves out disabled and quarantined servers.
func appendNotConnectedServers(out []byte, s *catalog.Snapshot, r *RetrieveRequest, hits []catalog.Hit, state func(*catalog.Server) string, room int) []byte {
	fits := func(string) bool { return true }
	if len(hits) > 0 {
		mentioned := search.NewNameMatcher(r.Query)
		fits = func(name string) bool {
			return mentioned(name) || slices.ContainsFunc(hits, func(h catalog.Hit) bool { return h.Tool.ID.Server == name })
		}
	}
	start := len(out)
	before := `,"not_connected":[`
	for _, server := range s.Servers() {
		if canServerTakeCalls(server) || !server.Enabled || server.Quarantined || !fits(server.Name) {
			continue
		}
		entry := appendJSONMember(appendJSONMember([]byte(before), `{"server":`, server.Name), `,"state":`, state(server))
		if len(out)-start+len(entry)+len(`}]`) > room {
			break
		}
		out = append(append(out, entry...), '}')
		before = ","
	}
	if len(out) > start {
		out = append(out, ']')
	}
	return out
}

// canServerTakeCalls reports whether the server's tools are known and it accepts calls. It is either ready, or idle and
// connects on use.
func canServerTakeCalls(s *catalog.Server) bool {
	return s.State.Phase == upstream.Ready || s.State.Phase == upstream.Idle && s.Listed
}

// appendLockedTools appends the matching tools that cannot be called, with instructions to unlock them. It shortens
// descriptions if they take more than room bytes.
func appendLockedTools(out []byte, hits []catalog.Hit, description func(*catalog.Tool) string, room int) []byte {
	for most := room; len(hits) > 0; most /= 2 {
		if part := encodeLockedTools(hits, description, most); len(part) <= room {
			return append(out, part...)
		}
		if most == 0 {
			hits = hits[:len(hits)-1]
		}
	}
	return out
}

// encodeLockedTools encodes locked tools. Each description is limited to most bytes.
func encodeLockedTools(hits []catalog.Hit, description func(*catalog.Tool) string, most int) []byte {
	present := map[policy.ToolStatus]bool{}
	out := []byte(`,"disabled":[`)
	for i, h := range hits {
		if i > 0 {
			out = append(out, ',')
		}
		present[h.Tool.Status] = true
		out = appendJSONMember(out, `{"name":`, h.Tool.Shown().ShownID().String())
		out = appendJSONMember(out, `,"server":`, h.Tool.ID.Server)
		out = appendJSONMember(out, `,"description":`, truncateText(description(h.Tool), most))
		out = append(out, `,"status":"`...)
		out = append(out, h.Tool.Status.String()...)
		out = append(out, `"}`...)
	}
	before := `],"remediation":{`
	for _, status := range policy.Statuses() {
		if !present[status] {
			continue
		}
		out = wirejson.AppendString(append(out, before...), status.String())
		out = appendJSONMember(out, `:`, status.Remedy())
		before = ","
	}
	return append(out, '}')
}
