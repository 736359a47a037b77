package ops

import (
	"strconv"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/activity"
)

// appendHead writes what stands before the data of an event.
func appendHead(dst []byte, at activity.Place, kind EventKind) []byte {
	dst = at.Append(append(dst, "id: "...))
	dst = append(append(dst, "\nevent: "...), kind...)
	return append(dst, "\ndata: "...)
}

// kindOf returns the kind of the event of an entry; "" for one that is none. A call
// that is on record whole has nothing to start.
func kindOf(s *activity.Step) EventKind {
	switch {
	case s.Kind == activity.KindRepeat: // a count, which lists have
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

// appendStep writes the event of an entry. Its data is a Record.
func appendStep(dst []byte, kind EventKind, s *activity.Step) []byte {
	f := &s.Facts
	dst = appendHead(dst, s.Place, kind)
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

// What is said of changes that are no record: look again.
type (
	serverChange struct {
		Server string `json:"server"`
		State  string `json:"state"` // as lists show it, or removed
	}
	toolChange struct {
		Server string `json:"server"`
	}
	configChange struct {
		Keys  []string `json:"keys"`
		Error string   `json:"error,omitempty"` // why the file was refused
	}
)

// appendChange writes the event of a change. It has the place of the last entry
// that was told.
func appendChange(dst []byte, at activity.Place, kind EventKind, change any) []byte {
	data, err := wirejson.Marshal(change)
	if err != nil {
		data = []byte("{}") // which cannot be: it has texts only
	}
	return append(append(appendHead(dst, at, kind), data...), "\n\n"...)
}

// appendReset writes that everything is to be loaded again. What follows comes
// after the place.
func appendReset(dst []byte, at activity.Place) []byte {
	return append(appendHead(dst, at, EventReset), "{}\n\n"...)
}
