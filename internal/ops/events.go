package ops

import (
	"time"

	"mcpproxy/internal/store/activity"
)

// EventKind is the name of an event.
type EventKind string

// The kinds of events. After EventReset, the listener must reload everything.
const (
	EventCallStarted    EventKind = "activity.tool_call.started"
	EventCallCompleted  EventKind = "activity.tool_call.completed"
	EventPolicyDecision EventKind = "activity.policy_decision"
	EventRecorded       EventKind = "activity.recorded" // any other record
	EventServerChanged  EventKind = "server.changed"
	EventToolChanged    EventKind = "tool.changed"
	EventConfigChanged  EventKind = "config.changed"
	EventPendingChanged EventKind = "pending.changed" // pending calls or leases changed
	EventPauseChanged   EventKind = "pause.changed"   // calls were paused or resumed
	EventLoginNeeded    EventKind = "login.needed"    // a server requires a login of the user
	EventLoginFailed    EventKind = "login.failed"    // a login of the user to a server has failed
	EventReset          EventKind = "reset"
)

// Words returns the kinds that a client can select.
func (EventKind) Words() []string {
	return []string{string(EventCallStarted), string(EventCallCompleted), string(EventPolicyDecision), string(EventRecorded),
		string(EventServerChanged), string(EventToolChanged), string(EventConfigChanged), string(EventPendingChanged), string(EventPauseChanged), string(EventLoginNeeded), string(EventLoginFailed)}
}

// EventRecord is the data of an activity event: a record without arguments and response.
type EventRecord struct {
	ID              string          `json:"id"`
	Type            activity.Type   `json:"type"`
	Status          activity.Status `json:"status"`
	ServerName      string          `json:"server_name,omitempty"`
	ToolName        string          `json:"tool_name,omitempty"`
	Timestamp       time.Time       `json:"timestamp"`
	DurationMS      int64           `json:"duration_ms,omitempty"`
	OperationType   string          `json:"operation_type,omitempty"`
	DataSensitivity string          `json:"data_sensitivity,omitempty"`
	SessionID       string          `json:"session_id,omitempty"`
	RequestID       string          `json:"request_id,omitempty"`
	ClientName      string          `json:"client_name,omitempty"`
	Actor           string          `json:"actor,omitempty"`
	ErrorCode       string          `json:"error_code,omitempty"`
	Reason          string          `json:"reason,omitempty"`
}

// NewEventRecord returns the event data for a record.
func NewEventRecord(id string, f *activity.RecordFacts) EventRecord {
	return EventRecord{ID: id, Type: f.Type, Status: f.Status, ServerName: f.Server, ToolName: f.Tool, Timestamp: time.UnixMicro(f.Time).UTC(), DurationMS: f.Duration,
		OperationType: f.Intent, DataSensitivity: f.Sensitivity, SessionID: f.Session, RequestID: f.Request, ClientName: f.Client, Actor: f.Actor, ErrorCode: f.ErrorCode, Reason: f.Reason}
}

// EventQuery selects the events of a stream.
type EventQuery struct {
	LastEventID string      `header:"Last-Event-ID" doc:"The id of the last received event. The stream continues with the events after it."`
	Types       []EventKind `query:"types" split:"," doc:"The types of events to send. Events of the type reset are always sent."`
}
