package ops

import (
	"bytes"
	"math"
	"sort"
	"strconv"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
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
	if r == nil || t.JudgeMode == policy.ArgumentsOff {
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
