package ops

import (
	"strconv"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/activity"
)

// appendEventHead appends the lines in front of an event's data.
func appendEventHead(dst []byte, at activity.ChainPosition, kind EventKind) []byte {
	dst = at.AppendText(append(dst, "id: "...))
	dst = append(append(dst, "\nevent: "...), kind...)
	return append(dst, "\ndata: "...)
}

// eventKindOf returns the event kind of a log entry; "" when it has no event. A call recorded as a whole has no start event.
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

// appendActivityEvent appends the event of a log entry. Its data is an EventRecord.
func appendActivityEvent(dst []byte, kind EventKind, s *activity.EntryEvent) []byte {
	f := &s.Facts
	dst = appendEventHead(dst, s.ChainPosition, kind)
	dst = append(append(append(dst, `{"id":"`...), s.ID...), '"')
	text := func(head, v string) {
		if v != "" {
			dst = wirejson.AppendString(append(dst, head...), v)
		}
	}
	text(`,"type":`, string(f.Type))
	text(`,"status":`, string(f.Status))
	text(`,"server_name":`, f.Server)
	text(`,"tool_name":`, f.Tool)
	dst = time.UnixMicro(f.Time).UTC().AppendFormat(append(dst, `,"timestamp":"`...), time.RFC3339Nano)
	dst = append(dst, '"')
	if f.Duration != 0 {
		dst = strconv.AppendInt(append(dst, `,"duration_ms":`...), f.Duration, 10)
	}
	text(`,"operation_type":`, f.Intent)
	text(`,"data_sensitivity":`, f.Sensitivity)
	text(`,"session_id":`, f.Session)
	text(`,"request_id":`, f.Request)
	text(`,"client_name":`, f.Client)
	text(`,"actor":`, f.Actor)
	text(`,"error_code":`, f.ErrorCode)
	text(`,"reason":`, f.Reason)
	return append(dst, "}\n\n"...)
}

// Data of change events. The listener reloads the details.
type (
	serverChangedData struct {
		Server string `json:"server"`
		State  string `json:"state"` // as lists show it, or removed
	}
	toolsChangedData struct {
		Server string `json:"server"`
	}
	configChangedData struct {
		Keys  []string `json:"keys"`
		Error string   `json:"error,omitempty"` // why the file was refused
	}
)

// appendChangeEvent appends a change event. It has the position of the last sent entry.
func appendChangeEvent(dst []byte, at activity.ChainPosition, kind EventKind, change any) []byte {
	data, err := wirejson.MarshalWithoutHTMLEscape(change)
	if err != nil {
		data = []byte("{}") // unreachable: the data has strings only
	}
	return append(append(appendEventHead(dst, at, kind), data...), "\n\n"...)
}

// appendResetEvent appends a reset event. Later events follow the position.
func appendResetEvent(dst []byte, at activity.ChainPosition) []byte {
	return append(appendEventHead(dst, at, EventReset), "{}\n\n"...)
}
