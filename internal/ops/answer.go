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

// appendTools appends the tools of an answer, with commas between them, and
// reports whether that takes at most room bytes. What is appended when it does
// not is of no use.
func appendTools(out []byte, hits []catalog.Hit, detail config.Detail, room int) ([]byte, bool) {
	start := len(out)
	for i, h := range hits {
		if i > 0 {
			out = append(out, ',')
		}
		if whole(detail, i) && len(out)-start+len(h.Tool.Description)+len(h.Tool.InputSchema) > room {
			return out, false
		}
		out = appendAt(out, i, h, detail)
		if len(out)-start > room {
			return out, false
		}
	}
	return out, true
}

// fitTools returns the tools of an answer in at most room bytes: the best matches
// whole; from where one does not fit the others with their signatures; and where
// even these do not fit, with shortened texts. Three quarters of the room are for
// telling each tool in an equal share, so that a few large ones do not hide the
// others; what is left of it, and the rest, is for the best. Tools that do not fit
// in any form are left out at the end.
func fitTools(hits []catalog.Hit, detail config.Detail, room int) [][]byte {
	room -= len(hits) // for the commas
	share := room * 3 / 4 / max(1, len(hits))
	tools := make([][]byte, 0, len(hits))
	used := 0
	for _, h := range hits {
		t := shortTool(h, share)
		if used+len(t) > room {
			break
		}
		used += len(t)
		tools = append(tools, t)
	}
	fits := true
	for i := range tools {
		t := hits[i].Tool
		// One that alone is too large does not keep the next from being whole.
		if fits && whole(detail, i) && len(t.Description)+len(t.InputSchema) <= room {
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
		if whole(detail, i) {
			less = config.Compact
		}
		if compact := appendAt(nil, i, hits[i], less); used-len(tools[i])+len(compact) <= room {
			used += len(compact) - len(tools[i])
			tools[i] = compact
		}
	}
	return tools
}

// best is how many of the matches have their whole schemas where the detail is auto.
const best = 3

// briefly bounds, in bytes, the description of any other match then.
const briefly = 120

// whole reports whether the match at this place, from 0, has its whole schema.
func whole(detail config.Detail, place int) bool {
	return detail == config.Full || detail == config.Auto && place < best
}

// appendAt appends the match at this place, from 0.
func appendAt(out []byte, place int, h catalog.Hit, detail config.Detail) []byte {
	switch {
	case whole(detail, place):
		return appendTool(out, h, config.Full)
	case detail == config.Auto:
		return appendTexts(out, h, shortened(h.Tool.Description, briefly), signed(h.Tool.ID.Tool, h.Tool.InputSchema, maxBrief))
	}
	return appendTool(out, h, config.Compact)
}

// appendTool appends a tool; detail is Full or Compact.
func appendTool(out []byte, h catalog.Hit, detail config.Detail) []byte {
	if detail == config.Compact {
		return appendTexts(out, h, h.Tool.Description, signature(h.Tool.ID.Tool, h.Tool.InputSchema))
	}
	return appendTexts(out, h, h.Tool.Description, "")
}

// shortTool returns a tool with its signature in about most bytes: texts are
// shortened, but each is begun.
func shortTool(h catalog.Hit, most int) []byte {
	description, sign := h.Tool.Description, signature(h.Tool.ID.Tool, h.Tool.InputSchema)
	most -= len(appendTexts(nil, h, ellipsis, ellipsis))
	if written(description, most)+written(sign, most) > most {
		description = shortened(description, max(most/2, most-written(sign, most)))
		sign = shortened(sign, most-written(description, most))
	}
	return appendTexts(nil, h, description, sign)
}

// appendTexts appends a tool with this description, and this signature or, when
// that is empty, its schema.
func appendTexts(out []byte, h catalog.Hit, description, sign string) []byte {
	t := h.Tool
	out = text(out, `{"name":`, t.ID.String())
	out = text(out, `,"server":`, t.ID.Server)
	out = text(out, `,"description":`, description)
	if sign != "" {
		out = text(out, `,"signature":`, sign)
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
	if in := t.Inferred().Operation; in != policy.NoOperation {
		out = append(out, `","inferred_operation":"`...)
		out = append(out, in.String()...)
		if in != t.CallWith.Operation() && !byArgument(t) {
			out = append(out, `","note":"`...)
			out = append(out, guessNotes[in]...)
		}
	}
	out = append(out, '"')
	if by := laneBy(t); by != "" {
		out = text(out, `,"lane_by":`, by)
	}
	if byArgument(t) {
		out = text(out, `,"note":`, laneNote)
	}
	if t.Deprecated() {
		out = append(out, `,"deprecated":true`...)
	}
	return append(out, '}')
}

// laneNote says what to do with a tool whose argument decides instead of its hints.
const laneNote = "What the argument in lane_by does decides: a call that only reads may use call_tool_read."

// byArgument reports whether what an argument does counts instead of the tool's hints.
func byArgument(t *catalog.Tool) bool { return laneBy(t) != "" && t.LaneRule().Declared }

// laneBy says by which argument a tool is judged, and as what: "$.sql (sql)"; "" when by
// none.
func laneBy(t *catalog.Tool) string {
	r := t.LaneRule()
	if r == nil || t.JudgeMode == policy.JudgeOff {
		return ""
	}
	return r.Argument + " (" + string(r.By) + ")"
}

// guessNotes says what to do with a guess that differs from call_with.
var guessNotes = map[policy.Operation]string{ // never written to
	policy.Read:        "Declares nothing, so call_with is call_tool_write. That it only reads is a guess.",
	policy.Destructive: "Declares nothing, so call_with is call_tool_write. If your call deletes or cannot be undone, use call_tool_destructive.",
}

// text appends a member that is a text, with what comes before its value.
func text(out []byte, before, value string) []byte {
	return wirejson.AppendString(append(out, before...), value)
}

const ellipsis = "…"

// shortened returns the longest beginning of a text that takes at most room bytes
// in JSON, and at least the ellipsis.
func shortened(text string, room int) string {
	if written(text, room) <= room {
		return text
	}
	room = max(0, room-len(ellipsis))
	n := sort.Search(min(room, len(text)), func(n int) bool { return written(wirejson.Clip(text, n+1), room) > room })
	return wirejson.Clip(text, n) + ellipsis
}

// written is how many bytes a text takes in JSON, between the quotes; of one that
// takes more than most, anything above it.
func written(text string, most int) int {
	if len(text) > most {
		return len(text)
	}
	return len(wirejson.AppendString(nil, text)) - len(`""`)
}

func commas(tools [][]byte) []byte { return bytes.Join(tools, []byte{','}) }
