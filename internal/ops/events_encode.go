package ops

import (
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/activity"
)

// appendEventHead appends the lines that precede an event's data.
func appendEventHead(dst []byte, at activity.ChainPosition, kind EventKind) []byte {
	dst = at.AppendText(append(dst, "id: "...))
	dst = append(append(dst, "\nevent: "...), kind...)
	return append(dst, "\ndata: "...)
}

// eventKindOf returns the event kind of a log entry, or "" if the entry has no event. A call that is recorded in one
// entry has no start event.
func eventKindOf(s *activity.EntryEvent) EventKind {
	switch {
	case s.Kind == activity.KindRepeat: // lists show the count
		return ""
	case s.Facts.Type == activity.PolicyDecision:
		return EventPolicyDecision
	case s.Facts.Type != activity.ToolCall:
		return EventRecorded
	case s.Kind == activity.KindBegin:
		return EventCallStarted
	}
	return EventCallCompleted
}

// The data of change events. The listener reloads the details.
type (
	serverChangedData struct {
		Server string `json:"server"`
		State  string `json:"state"` // the state as shown in lists, or removed
	}
	toolsChangedData struct {
		Server string `json:"server"`
	}
	configChangedData struct {
		Keys  []string `json:"keys"`
		Error string   `json:"error,omitempty"` // the reason why the file was rejected
	}
)

// appendEvent appends an event. The position of a change event is the one of the last sent entry.
func appendEvent(dst []byte, at activity.ChainPosition, kind EventKind, of any) []byte {
	data, err := wirejson.MarshalWithoutHTMLEscape(of)
	if err != nil {
		data = []byte("{}") // unreachable, because the data contains only strings, numbers and times
	}
	return append(append(appendEventHead(dst, at, kind), data...), "\n\n"...)
}

// appendResetEvent appends a reset event. The following events are after the position.
func appendResetEvent(dst []byte, at activity.ChainPosition) []byte {
	return append(appendEventHead(dst, at, EventReset), "{}\n\n"...)
}
