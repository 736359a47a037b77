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

// appendTools appends the tools of a search result, separated by commas. It reports false when they take more than room bytes; out is then incomplete.
func appendTools(out []byte, hits []catalog.Hit, detail config.ToolDetailLevel, room int) ([]byte, bool) {
	start := len(out)
	for i, h := range hits {
		if i > 0 {
			out = append(out, ',')
		}
		if hasFullSchema(detail, i) && len(out)-start+len(h.Tool.Description)+len(h.Tool.InputSchema) > room {
			return out, false
		}
		out = appendMatch(out, i, h, detail)
		if len(out)-start > room {
			return out, false
		}
	}
	return out, true
}

// encodeToolsWithin encodes the tools of a search result in at most room bytes. The best matches have full schemas, then tools
// have signatures, then shortened texts. Three quarters of the room are divided equally, so that a few large tools do not hide
// the others. The rest goes to the best matches. Tools that do not fit at all are left out at the end.
func encodeToolsWithin(hits []catalog.Hit, detail config.ToolDetailLevel, room int) [][]byte {
	room -= len(hits) // the commas
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
		t := hits[i].Tool
		// A tool that is too large by itself does not prevent a full schema for the next.
		if fits && hasFullSchema(detail, i) && len(t.Description)+len(t.InputSchema) <= room {
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
		if hasFullSchema(detail, i) {
			less = config.Compact
		}
		if compact := appendMatch(nil, i, hits[i], less); used-len(tools[i])+len(compact) <= room {
			used += len(compact) - len(tools[i])
			tools[i] = compact
		}
	}
	return tools
}

// fullMatches is the number of matches with a full schema when the detail is auto.
const fullMatches = 3

// maxBriefDescription limits, in bytes, the descriptions of the other matches then.
const maxBriefDescription = 120

// hasFullSchema reports whether the match at index has its full schema.
func hasFullSchema(detail config.ToolDetailLevel, place int) bool {
	return detail == config.Full || detail == config.Auto && place < fullMatches
}

// appendMatch appends the match at index.
func appendMatch(out []byte, place int, h catalog.Hit, detail config.ToolDetailLevel) []byte {
	switch {
	case hasFullSchema(detail, place):
		return appendTool(out, h, config.Full)
	case detail == config.Auto:
		return appendToolFields(out, h, truncateText(h.Tool.Description, maxBriefDescription), formatLimitedToolSignature(h.Tool.ID.Tool, h.Tool.InputSchema, maxBriefSignature))
	}
	return appendTool(out, h, config.Compact)
}

// appendTool appends a tool; detail is Full or Compact.
func appendTool(out []byte, h catalog.Hit, detail config.ToolDetailLevel) []byte {
	if detail == config.Compact {
		return appendToolFields(out, h, h.Tool.Description, formatToolSignature(h.Tool.ID.Tool, h.Tool.InputSchema))
	}
	return appendToolFields(out, h, h.Tool.Description, "")
}

// encodeTruncatedTool returns a tool with its signature in about most bytes. It shortens the description and the signature, but omits neither.
func encodeTruncatedTool(h catalog.Hit, most int) []byte {
	description, sign := h.Tool.Description, formatToolSignature(h.Tool.ID.Tool, h.Tool.InputSchema)
	most -= len(appendToolFields(nil, h, ellipsis, ellipsis))
	if jsonLength(description, most)+jsonLength(sign, most) > most {
		description = truncateText(description, max(most/2, most-jsonLength(sign, most)))
		sign = truncateText(sign, most-jsonLength(description, most))
	}
	return appendToolFields(nil, h, description, sign)
}

// appendToolFields appends a tool with this description, and this signature or, when that is empty, its schema.
func appendToolFields(out []byte, h catalog.Hit, description, sign string) []byte {
	t := h.Tool
	out = appendJSONMember(out, `{"name":`, t.ID.String())
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

// laneNote explains a tool whose lane depends on an argument instead of its hints.
const laneNote = "The argument in lane_by decides: a call that only reads may use call_tool_read."

// argumentDecidesLane reports whether an argument decides the lane instead of the tool's hints.
func argumentDecidesLane(t *catalog.Tool) bool {
	return laneArgument(t) != "" && t.ArgumentRule().Declared
}

// laneArgument returns the argument by which calls are classified and its language: "$.sql (sql)"; "" when there is none.
func laneArgument(t *catalog.Tool) string {
	r := t.ArgumentRule()
	if r == nil || t.JudgeMode == policy.ArgumentsOff {
		return ""
	}
	return r.Argument + " (" + string(r.By) + ")"
}

// guessNotes explains an inferred operation that differs from call_with.
var guessNotes = map[policy.Operation]string{ // never written to
	policy.Read:        "Declares nothing, so call_with is call_tool_write. That it only reads is a guess.",
	policy.Destructive: "Declares nothing, so call_with is call_tool_write. If your call deletes or cannot be undone, use call_tool_destructive.",
}

// appendJSONMember appends a string member; before is everything in front of its value.
func appendJSONMember(out []byte, before, value string) []byte {
	return wirejson.AppendString(append(out, before...), value)
}

const ellipsis = "…"

// truncateText returns the longest prefix of a text that takes at most room bytes in JSON, with an ellipsis when it is cut.
func truncateText(text string, room int) string {
	if jsonLength(text, room) <= room {
		return text
	}
	room = max(0, room-len(ellipsis))
	n := sort.Search(min(room, len(text)), func(n int) bool { return jsonLength(wirejson.ClipText(text, n+1), room) > room })
	return wirejson.ClipText(text, n) + ellipsis
}

// jsonLength returns the bytes that a text takes in JSON without the quotes. Above most, the result is only a lower bound.
func jsonLength(text string, most int) int {
	if len(text) > most {
		return len(text)
	}
	return len(wirejson.AppendString(nil, text)) - len(`""`)
}

func joinTools(tools [][]byte) []byte { return bytes.Join(tools, []byte{','}) }
