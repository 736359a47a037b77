package api

import (
	"context"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/tool"
)

// Bounds of a page of the log.
const (
	defaultPage = 50
	maxPage     = 1000
	maxOffset   = 1 << 31
)

// ActivityList is the answer of GET /activity.
type ActivityList struct {
	Activities []activity.Record `json:"activities"`
	Total      int64             `json:"total" doc:"How many records the filters select."`
	Limit      int               `json:"limit"`
	Offset     int               `json:"offset"`
	NextCursor string            `json:"next_cursor" doc:"Give it as cursor for the next page; empty on the last one."`
}

// RecordTypes are the types of a record, as filters take them.
func RecordTypes() []string {
	return []string{string(activity.ToolCall), string(activity.PolicyDecision), string(activity.Approval),
		string(activity.ServerChange), string(activity.ConfigChange), string(activity.System)}
}

// RecordStatuses are the statuses of a record, as filters take them.
func RecordStatuses() []string {
	return []string{string(activity.Success), string(activity.Failed), string(activity.Blocked),
		string(activity.Pending), string(activity.Interrupted)}
}

// Sensitivities are the data sensitivities, as filters and intents take them.
func Sensitivities() []string { return []string{"public", "internal", "private", "unknown"} }

func activityParams() []param {
	return []param{
		{name: "type", kind: list, split: true, allowed: RecordTypes(), doc: "Only records of these types."},
		{name: "server", kind: list, split: true, doc: "Only records of these servers."},
		{name: "tool", kind: list, doc: "Only records of these tools, by the tool's own name; repeat it for several. One alone, without server, may be server:tool."},
		{name: "status", kind: list, split: true, allowed: RecordStatuses(), doc: "Only records with these statuses."},
		{name: "session_id", doc: "Only records of this session."},
		{name: "request_id", doc: "Only records of this request."},
		{name: "intent_type", kind: list, split: true, allowed: operations(), doc: "Only calls with these operation types."},
		{name: "sensitivity", kind: list, split: true, allowed: Sensitivities(), doc: "Only calls with these declared sensitivities."},
		{name: "actor", kind: list, doc: "Only records of these actors: admin, agent, or agent:NAME; repeat it for several."},
		{name: "start_time", kind: moment, doc: "Only records from this time on."},
		{name: "end_time", kind: moment, doc: "Only records before this time."},
		{name: "q", doc: "Words in arguments, responses and reasons."},
		{name: "limit", kind: number, min: 1, max: maxPage, preset: defaultPage, doc: "How many records at most."},
		{name: "offset", kind: number, min: 0, max: maxOffset, doc: "How many records to leave out. A cursor is faster and misses nothing."},
		{name: "cursor", doc: "The next_cursor of the page before; not together with offset."},
	}
}

func (s *Server) activities(ctx context.Context, r *request) (ActivityList, error) {
	f, err := activityFilter(r.query)
	if err != nil {
		return ActivityList{}, err
	}
	found, err := s.deps.Gateway.Activities(ctx, f)
	if err != nil {
		return ActivityList{}, err
	}
	for i := range found.Records {
		completeIntent(&found.Records[i])
	}
	return ActivityList{nonNil(found.Records), found.Total, f.Limit, f.Offset, found.NextCursor}, nil
}

func (s *Server) activity(ctx context.Context, r *request) (activity.Record, error) {
	record, err := s.deps.Gateway.Activity(ctx, r.path("id"))
	completeIntent(&record)
	return record, err
}

func activityFilter(q query) (activity.Filter, error) {
	f := activity.Filter{
		Types: as[activity.Type](q.list("type")), Statuses: as[activity.Status](q.list("status")),
		Servers: q.list("server"), Tools: q.list("tool"),
		SessionID: q.text("session_id"), RequestID: q.text("request_id"),
		IntentTypes: q.list("intent_type"), Sensitivities: q.list("sensitivity"), Actors: q.list("actor"),
		Since: q.moment("start_time"), Until: q.moment("end_time"), Search: q.text("q"),
		Limit: q.number("limit"), Offset: q.number("offset"), Cursor: q.text("cursor"),
	}
	// A tool id is as good as a server and a tool. Who names the server, means
	// the tool's own name, which may hold a colon.
	if len(f.Tools) == 1 && len(f.Servers) == 0 {
		if id, err := tool.ParseID(f.Tools[0]); err == nil {
			f.Servers, f.Tools = []string{id.Server}, []string{id.Tool}
		}
	}
	if f.Cursor != "" && q.given("offset") {
		return f, invalidValue("offset", q.text("offset"), "left out when cursor is given")
	}
	if q.given("start_time") && q.given("end_time") && f.Until.Before(f.Since) {
		return f, invalidValue("end_time", q.text("end_time"), "a time after start_time")
	}
	return f, nil
}

func as[T ~string](s []string) []T {
	var out []T
	for _, v := range s {
		out = append(out, T(v))
	}
	return out
}

// completeIntent makes sure that a call shows its operation type: a record that
// kept no intent has at least the variant.
func completeIntent(r *activity.Record) {
	if r.Metadata.Intent != nil && r.Metadata.Intent.OperationType != "" {
		return
	}
	variant, ok := policy.ParseVariant(r.Metadata.ToolVariant)
	if !ok {
		return
	}
	intent := activity.Intent{}
	if r.Metadata.Intent != nil {
		intent = *r.Metadata.Intent
	}
	intent.OperationType = variant.Operation().String()
	r.Metadata.Intent = &intent
}
