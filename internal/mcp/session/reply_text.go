package session

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// maxShown bounds, in bytes, each of the details that the text of a refusal has
// beside message and hint.
const maxShown = 4 << 10

// help are the details that help to mend a call, and what to call them. What only
// says in other words what the message says already is none of them.
var help = [...]struct{ key, label, whole string }{
	{"call_with", "Call with", ""},
	{"nearest", "Nearest names", ""},
	{"allowed", "Allowed", ""},
	{"upstream_data", "The server's own data", ""},
	{"inputSchema", "The tool's inputSchema", `retrieve_tools with the tool's name as query, limit 1 and detail "full" gives the whole`},
}

// text returns a problem as it is read by who is shown nothing else of it: the
// message, the hint, and what of the details they do not say.
func text(p *problem.Problem) string {
	var out strings.Builder
	out.WriteString(p.Message)
	if p.Hint != "" {
		out.WriteString("\nHint: " + p.Hint)
	}
	for _, h := range help {
		value, unsaid := detail(p.Detail(h.key), out.String())
		if !unsaid {
			continue
		}
		out.WriteString("\n" + h.label + ": " + wirejson.Clip(value, maxShown))
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

// detail returns a detail on one line, and whether it says anything that is not
// said yet.
func detail(value any, said string) (line string, unsaid bool) {
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

// Warned returns a server's result with the warnings as a text block of its own
// behind the server's.
func Warned(result json.RawMessage, warnings []string) json.RawMessage {
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
