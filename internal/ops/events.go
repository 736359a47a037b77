package ops

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/store/redact"
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
	dst = at.AppendText(append(dst, "id: "...))
	return fmt.Appendf(dst, "\nevent: %s\ndata: %s\n\n", kind, data)
}

// eventChunk contains the encoded events between two log positions.
type eventChunk struct {
	from, to activity.ChainPosition
	data     []byte
	events   []chunkEvent
}

// chunkEvent is one event of a chunk.
type chunkEvent struct {
	kind EventKind
	seq  int64 // sequence number of its log position
	end  int   // offset of its end in data
}

// add appends an event at the end position.
func (c *eventChunk) add(kind EventKind, of any) {
	c.data = appendEvent(c.data, c.to, kind, of)
	c.events = append(c.events, chunkEvent{kind, c.to.Seq, len(c.data)})
}

// eventsAfter returns the events of the given kinds after a log entry; nil means all kinds. It includes change events
// at the position of that entry, because they are new.
func (c *eventChunk) eventsAfter(seq int64, kinds map[EventKind]bool) []byte {
	if seq <= c.from.Seq && kinds == nil {
		return c.data
	}
	var part []byte
	begin := 0
	for _, e := range c.events {
		fresh := e.seq > seq || c.from == c.to // the chunk contains no log entries, only change events
		if fresh && (kinds == nil || kinds[e.kind] || e.kind == EventReset) {
			part = append(part, c.data[begin:e.end]...)
		}
		begin = e.end
	}
	return part
}

// addActivityEntry appends the event for a log entry, if it has one.
func (c *eventChunk) addActivityEntry(s *activity.EntryEvent) {
	c.to = s.ChainPosition
	if kind := eventKindOf(s); kind != "" {
		c.add(kind, NewEventRecord(s.ID, &s.Facts))
	}
}

// maxBufferBytes limits the total size of the buffered chunks. A listener that is too slow reads from the log instead.
const maxBufferBytes = 4 << 20

// eventBuffer contains the newest chunks. They are numbered, so that each listener can store the number of its next
// chunk.
type eventBuffer struct {
	live   bool                   // whether events are collected, because there are listeners
	head   activity.ChainPosition // position up to which everything was sent
	chunks []*eventChunk
	next   uint64 // number of the next chunk
	bytes  int
	more   chan struct{} // closed and replaced when a chunk is added
}

// addChunk appends a chunk.
func (r *eventBuffer) addChunk(c *eventChunk) {
	r.chunks = append(r.chunks, c)
	r.bytes += len(c.data)
	r.next++
	r.head = c.to
	for r.bytes > maxBufferBytes && len(r.chunks) > 1 {
		r.bytes -= len(r.chunks[0].data)
		r.chunks[0] = nil
		r.chunks = r.chunks[1:]
	}
	r.wakeListeners()
}

// start begins to collect events after a position. stop drops all collected events.
func (r *eventBuffer) start(at activity.ChainPosition) {
	r.live, r.head = true, at
	r.wakeListeners()
}

func (r *eventBuffer) stop() { *r = eventBuffer{next: r.next, more: r.more} }

func (r *eventBuffer) wakeListeners() {
	close(r.more)
	r.more = make(chan struct{})
}

// chunksFrom returns the chunks from a number on. ok is false if some of them were dropped.
func (r *eventBuffer) chunksFrom(number uint64) (chunks []*eventChunk, ok bool) {
	first := r.next - uint64(len(r.chunks))
	if number < first {
		return nil, false
	}
	return append(chunks, r.chunks[number-first:]...), true
}

// chunkNumberAfter returns the number of the chunk that continues at a position. ok is false if chunks after the
// position were dropped, or if the buffer has not reached it yet.
func (r *eventBuffer) chunkNumberAfter(at activity.ChainPosition) (number uint64, ok bool) {
	number = r.next
	for i := len(r.chunks) - 1; i >= 0 && r.chunks[i].to.Seq > at.Seq; i-- {
		number--
	}
	if number == r.next {
		return number, at.Seq == r.head.Seq
	}
	return number, r.chunks[len(r.chunks)-int(r.next-number)].from.Seq <= at.Seq
}

// eventCaller is the caller that reads servers for events. It sees all servers, because all listeners may see them.
var eventCaller = Caller{Actor: auth.Actor{Kind: auth.Admin}, Source: auth.REST}

// changeScope describes which parts of a server changed.
type changeScope uint8

const (
	serverChanged changeScope = 1 << iota // the server's entry in a list
	toolsChanged                          // its tools or the decisions about them
)

// changeSet collects changes to announce that are not activity records.
type changeSet struct {
	servers map[string]changeScope // "" means all servers
	config  bool
	keys    []string
	refused string
	pending bool // whether pending calls or leases changed
	pause   bool // whether calls were paused or resumed
	logins  []loginChange
}

// loginChange is an event about the login to a server.
type loginChange struct {
	kind   EventKind
	server string
}

func (c *changeSet) isEmpty() bool {
	return len(c.servers) == 0 && !c.config && !c.pending && !c.pause && len(c.logins) == 0
}

func (c *changeSet) addServerChange(server string, what changeScope) {
	if c.servers == nil {
		c.servers = map[string]changeScope{}
	}
	c.servers[server] |= what
}

// removed is the state of a server that no longer exists.
const removed = "removed"

// eventsMaxKeys limits the number of keys in an event.
const eventsMaxKeys = 1000

func (c *changeSet) addConfigChange(keys []string, refused error) {
	c.config, c.refused = true, ""
	if refused != nil {
		c.refused = redact.Text(refused.Error())
	}
	for _, key := range keys {
		if len(c.keys) < eventsMaxKeys && !slices.Contains(c.keys, key) {
			c.keys = append(c.keys, key)
		}
	}
}

// addDifferences adds the differences between two catalog snapshots.
func (c *changeSet) addDifferences(old, now *catalog.Snapshot) {
	for _, s := range now.Servers() {
		was := old.Server(s.Name)
		if was == nil {
			c.addServerChange(s.Name, serverChanged|toolsChanged)
			continue
		}
		if !sameTools(was.Tools, s.Tools) {
			c.addServerChange(s.Name, serverChanged|toolsChanged) // the server list shows the number of tools
		}
		a, b := *was, *s
		if a.Tools, b.Tools = nil, nil; !reflect.DeepEqual(a, b) {
			c.addServerChange(s.Name, serverChanged)
		}
	}
	for _, s := range old.Servers() {
		if now.Server(s.Name) == nil {
			c.addServerChange(s.Name, serverChanged|toolsChanged)
		}
	}
}

func sameTools(a, b []*catalog.Tool) bool {
	return slices.EqualFunc(a, b, func(a, b *catalog.Tool) bool {
		return a.ID == b.ID && a.Status == b.Status && a.CallWith == b.CallWith && a.Effective == b.Effective && bytes.Equal(a.Raw, b.Raw)
	})
}

// newFullChangeSet returns a change set that makes a listener reload everything.
func newFullChangeSet() changeSet {
	return changeSet{servers: map[string]changeScope{"": serverChanged | toolsChanged}, config: true, pending: true, pause: true}
}

// appendEventsTo appends the events of changes to a chunk, at the chunk's end position.
func (c *changeSet) appendEventsTo(ctx context.Context, to *eventChunk, servers ServerLister) {
	list, _ := servers.Servers(ctx, eventCaller, Nothing{}) // after an error, the list is empty
	states := map[string]string{}
	for _, s := range list.Servers {
		states[s.Name] = s.State
	}
	names := map[string]changeScope{}
	if every := c.servers[""]; every != 0 {
		for name := range states {
			names[name] = every
		}
	}
	for name, what := range c.servers {
		names[name] |= what
	}
	delete(names, "")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name]&serverChanged != 0 {
			state, there := states[name]
			if !there {
				state = removed
			}
			to.add(EventServerChanged, serverChangedData{name, state})
		}
		if names[name]&toolsChanged != 0 {
			to.add(EventToolChanged, toolsChangedData{name})
		}
	}
	if c.config {
		to.add(EventConfigChanged, configChangedData{append([]string{}, c.keys...), c.refused})
	}
	if c.pending {
		to.add(EventPendingChanged, struct{}{})
	}
	if c.pause {
		to.add(EventPauseChanged, struct{}{})
	}
	for _, l := range c.logins {
		to.add(l.kind, toolsChangedData{l.server})
	}
}
