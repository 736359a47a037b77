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

// usage is what an agent reads beside the tools: at most 300 bytes.
func usage(requireIntent bool, hits []catalog.Hit) string {
	intent := "An intent, if given, must match the variant."
	if requireIntent {
		intent = "intent.operation_type is required and must match the variant."
	}
	guess := ""
	if slices.ContainsFunc(hits, func(h catalog.Hit) bool { return h.Tool.Inferred().Operation != policy.NoOperation }) {
		guess = " inferred_operation is a guess."
	}
	if slices.ContainsFunc(hits, func(h catalog.Hit) bool { return laneBy(h.Tool) != "" }) {
		guess += " lane_by: what decides the lane."
	}
	return "Call a tool by name with its call_with: call_tool_read only reads, call_tool_write creates or updates, " +
		"call_tool_destructive deletes or cannot be undone (also if unsure). " + intent + guess
}

// The sentences of notice.
const (
	lockedNotice = "No tool that can be called matches, but %d that cannot be called now do. " +
		"Retry with include_disabled: true to see why and what would unlock them."
	muteNotice  = "Matching tools left out for want of hints: %d. Search without operation_type to see them."
	cutNotice   = "Not all fits: tools have a signature instead of inputSchema, or texts that end in …; search for a tool's full name with limit 1 to get all of it."
	aloneNotice = "This tool does not fit whole: call it as its signature says."
)

// tryNotice says what to try when a search finds nothing; also says that that
// it comes after something else to try.
func tryNotice(s *catalog.Snapshot, r *RetrieveRequest, also bool, most int) string {
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
		if !offersTools(server) {
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

// nothingNotice is for who may reach no server.
const nothingNotice = "There is nothing that this client may use. The user can widen what an agent token or a profile reaches."

// noServerNotice says how there comes to be a server.
func noServerNotice(proposed int, management config.Management) string {
	if proposed > 0 {
		return fmt.Sprintf("There is no server yet. %d proposed wait for a person, who sees them with `mcpproxy upstream list`.", proposed)
	}
	add := "There is no server yet. The user adds one with `mcpproxy upstream add NAME -- COMMAND` or `mcpproxy upstream add NAME --url URL`"
	if management == config.ManagePropose {
		add += "; you can propose one with upstream_servers and operation add"
	}
	return add + "."
}

// offersTools reports whether a server has a tool that can be called.
func offersTools(s *catalog.Server) bool {
	return slices.ContainsFunc(s.Tools, func(t *catalog.Tool) bool { return t.Callable() && !t.ForClients })
}

// appendNotConnected appends the servers that are not connected, as far as their
// name or the tools found fit the query, or nothing does: they may have more once
// they are connected. It takes at most room bytes, and names no server that an
// agent has no business with.
func appendNotConnected(out []byte, s *catalog.Snapshot, r *RetrieveRequest, hits []catalog.Hit, state func(*catalog.Server) string, room int) []byte {
	fits := func(string) bool { return true }
	if len(hits) > 0 {
		mentioned := search.NameMatcher(r.Query)
		fits = func(name string) bool {
			return mentioned(name) || slices.ContainsFunc(hits, func(h catalog.Hit) bool { return h.Tool.ID.Server == name })
		}
	}
	start := len(out)
	before := `,"not_connected":[`
	for _, server := range s.Servers() {
		if connected(server) || !server.Enabled || server.Quarantined || !fits(server.Name) {
			continue
		}
		entry := text(text([]byte(before), `{"server":`, server.Name), `,"state":`, state(server))
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

// connected reports whether the tools of a server are known and can be called as
// far as its connection goes. One that rests is connected when it is used.
func connected(s *catalog.Server) bool {
	return s.State.Phase == upstream.Ready || s.State.Phase == upstream.Idle && s.Listed
}

// appendLocked appends what exists but cannot be called, and what would unlock
// it. Descriptions are complete, unless that takes more than room bytes.
func appendLocked(out []byte, hits []catalog.Hit, description func(*catalog.Tool) string, room int) []byte {
	for most := room; len(hits) > 0; most /= 2 {
		if part := locked(hits, description, most); len(part) <= room {
			return append(out, part...)
		}
		if most == 0 {
			hits = hits[:len(hits)-1]
		}
	}
	return out
}

// locked writes them with at most so many bytes of each description.
func locked(hits []catalog.Hit, description func(*catalog.Tool) string, most int) []byte {
	present := map[policy.Status]bool{}
	out := []byte(`,"disabled":[`)
	for i, h := range hits {
		if i > 0 {
			out = append(out, ',')
		}
		present[h.Tool.Status] = true
		out = text(out, `{"name":`, h.Tool.ID.String())
		out = text(out, `,"server":`, h.Tool.ID.Server)
		out = text(out, `,"description":`, shortened(description(h.Tool), most))
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
		out = text(out, `:`, status.Remedy())
		before = ","
	}
	return append(out, '}')
}
