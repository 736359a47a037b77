package ops

import (
	"context"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// ActivityHistory implements the operations on the whole activity log.
type ActivityHistory struct {
	log      *activity.Log
	unproven func(context.Context) (string, error)
	now      func() time.Time
}

// NewActivityHistory returns an ActivityHistory. unproven describes the decisions without a valid signature, or returns
// "" if all signatures are valid. If unproven is nil, signatures are not checked.
func NewActivityHistory(l *activity.Log, unproven func(context.Context) (string, error)) *ActivityHistory {
	return &ActivityHistory{log: l, unproven: unproven, now: time.Now}
}

// maxCountedRecords limits the number of records that one request counts. It counts the newest.
const maxCountedRecords = 2_000_000

// VerifyLog checks the whole log, and the signatures of all decisions.
func (h *ActivityHistory) VerifyLog(ctx context.Context, _ Caller, _ Nothing) (activity.Verification, error) {
	v, err := h.log.Verify(ctx)
	if err != nil || !v.OK || h.unproven == nil {
		return v, err
	}
	why, err := h.unproven(ctx)
	if why != "" {
		v.OK, v.FirstBreak = false, &activity.Break{Reason: why}
	}
	return v, err
}

// RedactRequest selects the fields to erase.
type RedactRequest struct {
	ID     string                   `path:"id"`
	Fields []activity.ErasableField `json:"fields" required:"true" doc:"The fields to erase. This cannot be undone."`
}

// EraseRecordFields erases fields of a record. The erasure is itself recorded.
func (h *ActivityHistory) EraseRecordFields(ctx context.Context, c Caller, in RedactRequest) (activity.Record, error) {
	by := activity.Record{}
	by.SetCaller(&c)
	r, err := h.log.EraseFields(ctx, by, in.ID, in.Fields)
	fillMissingIntentOperation(&r)
	return r, err
}

// SessionQuery selects sessions.
type SessionQuery struct {
	Period string `query:"period" doc:"The length of the period that ends now, such as 90s, 30m, 24h, 7d or 2w. Default: 24h."`
	Limit  int    `query:"limit" min:"1" max:"1000" default:"50" doc:"The maximum number of sessions."`
	Offset int    `query:"offset" min:"0" max:"2147483648" doc:"The number of sessions to skip."`
}

// SessionList is a page of sessions.
type SessionList struct {
	Sessions   []activity.Session `json:"sessions"`
	Total      int64              `json:"total"`
	Limit      int                `json:"limit"`
	Offset     int                `json:"offset"`
	Cut        bool               `json:"cut,omitempty" doc:"Whether older records of the period were left out."`
	Incomplete bool               `json:"incomplete,omitempty" doc:"Whether the newest records are missing because MCPProxy cannot write to the database now. GET /status has details."`
}

// Sessions returns the sessions with records in a period, newest first.
func (h *ActivityHistory) Sessions(ctx context.Context, _ Caller, in SessionQuery) (SessionList, error) {
	period, err := parsePeriod("period", in.Period, historyDay)
	if err != nil {
		return SessionList{}, err
	}
	now := h.now()
	p, err := h.log.Sessions(ctx, activity.SessionQuery{Since: now.Add(-period), Limit: in.Limit, Offset: in.Offset, Most: maxCountedRecords})
	return SessionList{p.Sessions, p.Total, in.Limit, in.Offset, p.Cut, p.Incomplete}, err
}

const historyDay = 24 * time.Hour

// parsePeriod parses a duration. preset is the default.
func parsePeriod(name, s string, preset time.Duration) (time.Duration, error) {
	if s == "" {
		return preset, nil
	}
	if d, ok := activity.ParseDuration(s); ok && d >= time.Second && d%time.Second == 0 {
		return d, nil
	}
	return 0, invalidValueError(name, s, "whole seconds, minutes, hours, days or weeks, such as 90s, 30m, 24h, 7d or 2w")
}

func invalidValueError(name, value, allowed string) *problem.Problem {
	return problem.Newf(problem.InvalidParameter, "Invalid value '%s' for %s: must be %s", problem.ClipName(value), name, allowed).
		With("parameter", name).With("value", problem.ClipName(value)).With("allowed", []string{allowed})
}
