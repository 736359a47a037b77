package session

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// maxShown limits, in bytes, each detail that the text of a rejection contains in addition to message and hint.
const maxShown = 4 << 10

// textDetails are the details that help to fix a call, with their labels. Details that only repeat the
// message are not listed.
var textDetails = [...]struct{ key, label, whole string }{
	{"call_with", "Call with", ""},
	{"nearest", "Nearest names", ""},
	{"allowed", "Allowed", ""},
	{"upstream_data", "The server's own data", ""},
	{"inputSchema", "The tool's inputSchema", `retrieve_tools with the tool's name as query, limit 1 and detail "full" gives the whole`},
}

// problemText returns a problem as text: the message, the hint, and the details that they do not contain.
func problemText(p *problem.Problem) string {
	var out strings.Builder
	out.WriteString(p.Message)
	if p.Hint != "" {
		out.WriteString("\nHint: " + p.Hint)
	}
	for _, h := range textDetails {
		value, unsaid := detailText(p.Detail(h.key), out.String())
		if !unsaid {
			continue
		}
		out.WriteString("\n" + h.label + ": " + wirejson.ClipText(value, maxShown))
		if len(value) > maxShown {
			out.WriteString("… (the first " + strconv.Itoa(maxShown) + " of " + strconv.Itoa(len(value)) + " bytes")
			if h.whole != "" {
				out.WriteString("; " + h.whole)
			}
			out.WriteString(")")
		}
	}
	return out.String()
}

// detailText returns a detail as one line, and reports whether said does not contain it yet.
func detailText(value any, said string) (line string, unsaid bool) {
	switch value := value.(type) {
	case nil:
		return "", false
	case string:
		return value, value != "" && !strings.Contains(said, value)
	case []string:
		for _, one := range value {
			unsaid = unsaid || !strings.Contains(said, one)
		}
		return strings.Join(value, ", "), unsaid
	case json.RawMessage:
		var compact bytes.Buffer
		err := json.Compact(&compact, value)
		return compact.String(), err == nil
	}
	return "", false
}

// AppendWarnings appends the warnings to a server's result as a separate text block.
func AppendWarnings(result json.RawMessage, warnings []string) json.RawMessage {
	if len(warnings) == 0 {
		return result
	}
	block := wirejson.AppendString([]byte(`{"type":"text","text":`), "Warning: "+strings.Join(warnings, "\nWarning: "))
	content := json.RawMessage(wirejson.Find(result, "content"))
	if content == nil {
		content = json.RawMessage("[]")
	}
	return wirejson.SetMember(result, "content", wirejson.AddElement(content, append(block, '}')))
}
