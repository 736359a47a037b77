package ops

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// appendTools appends the tools of a search result, separated by commas. It returns false and incomplete output if they
// take more than room bytes.
func appendTools(out []byte, hits []catalog.Hit, detail config.ToolDetailLevel, room int) ([]byte, bool) {
	start := len(out)
	for i, h := range hits {
		if i > 0 {
			out = append(out, ',')
		}
		if hasFullSchema(detail, h.Rank) && len(out)-start+len(h.Tool.Shown().Description)+len(h.Tool.InputSchema) > room {
			return out, false
		}
		out = appendMatch(out, h, detail)
		if len(out)-start > room {
			return out, false
		}
	}
	return out, true
}

// encodeToolsWithin encodes the tools of a search result in at most room bytes. The best matches have full schemas, the
// next ones have signatures, and the last ones have shortened texts. Three quarters of the bytes are divided equally,
// so that a few large tools do not displace the others. The remaining bytes are used for the best matches. Tools at the
// end that do not fit are left out.
func encodeToolsWithin(hits []catalog.Hit, detail config.ToolDetailLevel, room int) [][]byte {
	room -= len(hits) // reserved for the commas
	share := room * 3 / 4 / max(1, len(hits))
	tools := make([][]byte, 0, len(hits))
	used := 0
	for _, h := range hits {
		t := encodeTruncatedTool(h, share)
		if used+len(t) > room {
			break
		}
		used += len(t)
		tools = append(tools, t)
	}
	fits := true
	for i := range tools {
		t := hits[i].Tool.Shown()
		// A tool that is too large on its own does not prevent a full schema for the next tools.
		if fits && hasFullSchema(detail, hits[i].Rank) && len(t.Description)+len(t.InputSchema) <= room {
			if full := appendTool(nil, hits[i], config.Full); used-len(tools[i])+len(full) <= room {
				used += len(full) - len(tools[i])
				tools[i] = full
				continue
			} else if len(full) <= room {
				fits = false
			}
		}
		if len(t.Description) > room {
			continue
		}
		less := detail
		if hasFullSchema(detail, hits[i].Rank) {
			less = config.Compact
		}
		if compact := appendMatch(nil, hits[i], less); used-len(tools[i])+len(compact) <= room {
			used += len(compact) - len(tools[i])
			tools[i] = compact
		}
	}
	return tools
}

// fullMatches is the number of matches with a full schema if the detail level is auto.
const fullMatches = 3

// maxBriefDescription limits the descriptions of the other matches if the detail level is auto, in bytes.
const maxBriefDescription = 120

// hasFullSchema reports whether the hit with this rank has its full schema.
func hasFullSchema(detail config.ToolDetailLevel, rank int) bool {
	return detail == config.Full || detail == config.Auto && rank >= 0 && rank < fullMatches
}

// appendMatch appends a hit as its rank requires. A tool that is always listed has its whole description.
func appendMatch(out []byte, h catalog.Hit, detail config.ToolDetailLevel) []byte {
	switch t := h.Tool.Shown(); {
	case hasFullSchema(detail, h.Rank):
		return appendTool(out, h, config.Full)
	case detail == config.Auto && !h.Tool.IsAlways():
		return appendToolFields(out, h, truncateText(t.Description, maxBriefDescription), formatLimitedToolSignature(t.ShownName(), t.InputSchema, maxBriefSignature))
	}
	return appendTool(out, h, config.Compact)
}

// appendTool appends a tool. detail is Full or Compact.
func appendTool(out []byte, h catalog.Hit, detail config.ToolDetailLevel) []byte {
	t := h.Tool.Shown()
	if detail == config.Compact {
		return appendToolFields(out, h, t.Description, formatToolSignature(t.ShownName(), t.InputSchema))
	}
	return appendToolFields(out, h, t.Description, "")
}

// encodeTruncatedTool returns a tool with its signature in about most bytes. It shortens the description and the
// signature if necessary, but omits neither.
func encodeTruncatedTool(h catalog.Hit, most int) []byte {
	t := h.Tool.Shown()
	description, sign := t.Description, formatToolSignature(t.ShownName(), t.InputSchema)
	most -= len(appendToolFields(nil, h, ellipsis, ellipsis))
	if jsonLength(description, most)+jsonLength(sign, most) > most {
		description = truncateText(description, max(most/2, most-jsonLength(sign, most)))
		sign = truncateText(sign, most-jsonLength(description, most))
	}
	return appendToolFields(nil, h, description, sign)
}

// appendToolFields appends a tool with the given description and signature. If the signature is empty, it appends the
// schema instead.
func appendToolFields(out []byte, h catalog.Hit, description, sign string) []byte {
	t := h.Tool
	if sign == "" && wirejson.ExceedsFloat64(t.InputSchema) { // some clients reject an answer with such a number
		sign = formatToolSignature(t.Shown().ShownName(), t.InputSchema)
	}
	out = appendJSONMember(out, `{"name":`, t.Shown().ShownID().String())
	out = appendJSONMember(out, `,"server":`, t.ID.Server)
	out = appendJSONMember(out, `,"description":`, description)
	if sign != "" {
		out = appendJSONMember(out, `,"signature":`, sign)
	} else if t.InputSchema != nil {
		out = append(out, `,"inputSchema":`...)
		out = append(out, t.InputSchema...)
	}
	out = append(out, `,"score":`...)
	out = strconv.AppendFloat(out, math.Ceil(h.Score*1e4)/1e4, 'f', -1, 64)
	out = append(out, `,"annotations":`...)
	out = t.Effective.AppendJSON(out)
	out = append(out, `,"call_with":"`...)
	out = append(out, t.CallWith.String()...)
	if in := t.InferredOperation().Operation; in != policy.NoOperation {
		out = append(out, `","inferred_operation":"`...)
		out = append(out, in.String()...)
		if in != t.CallWith.Operation() && !argumentDecidesLane(t) {
			out = append(out, `","note":"`...)
			out = append(out, guessNotes[in]...)
		}
	}
	out = append(out, '"')
	if by := laneArgument(t); by != "" {
		out = appendJSONMember(out, `,"lane_by":`, by)
	}
	if argumentDecidesLane(t) {
		out = appendJSONMember(out, `,"note":`, laneNote)
	}
	if t.IsDeprecated() {
		out = append(out, `,"deprecated":true`...)
	}
	return append(out, '}')
}

// laneNote is the note for a tool whose lane depends on an argument, not on its hints.
const laneNote = "The argument in lane_by decides: a call that only reads may use call_tool_read."

// argumentDecidesLane reports whether an argument determines the lane, not the tool's hints.
func argumentDecidesLane(t *catalog.Tool) bool {
	return laneArgument(t) != "" && t.ArgumentRule().Declared
}

// laneArgument returns the argument by which calls are classified and its language, such as "$.sql (sql)". It returns
// "" if there is none.
func laneArgument(t *catalog.Tool) string {
	r := t.ArgumentRule()
	if r == nil || t.ArgumentEffects == policy.ArgumentsOff {
		return ""
	}
	return r.Argument + " (" + string(r.By) + ")"
}

// guessNotes contains the notes for an inferred operation that differs from call_with.
var guessNotes = map[policy.Operation]string{ // read-only
	policy.Read:        "No hints declared, so call_with is call_tool_write. Read-only is a guess.",
	policy.Destructive: "No hints declared, so call_with is call_tool_write. If your call deletes data or cannot be undone, use call_tool_destructive.",
}

// appendJSONMember appends a string member. before is the text up to the value.
func appendJSONMember(out []byte, before, value string) []byte {
	return wirejson.AppendString(append(out, before...), value)
}

const ellipsis = "…"

// truncateText returns the longest prefix of a text that takes at most room bytes in JSON. It adds an ellipsis if the
// text is cut.
func truncateText(text string, room int) string {
	if jsonLength(text, room) <= room {
		return text
	}
	room = max(0, room-len(ellipsis))
	n := sort.Search(min(room, len(text)), func(n int) bool { return jsonLength(wirejson.ClipText(text, n+1), room) > room })
	return wirejson.ClipText(text, n) + ellipsis
}

// jsonLength returns the number of bytes of a text in JSON, without the quotes. If the result is greater than most, it
// is only a lower bound.
func jsonLength(text string, most int) int {
	if len(text) > most {
		return len(text)
	}
	return len(wirejson.AppendString(nil, text)) - len(`""`)
}

func joinTools(tools [][]byte) []byte { return bytes.Join(tools, []byte{','}) }

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
