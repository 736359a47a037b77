package ops

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/gate/policy"
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

// ActivityList is a page of the activity log.
type ActivityList struct {
	Activities []activity.Record `json:"activities"`
	Total      int64             `json:"total" doc:"The number of records that match the filters."`
	Relation   string            `json:"total_relation" enum:"eq,gte" doc:"eq: total is exact. gte: total is a lower bound, because the newest records are missing."`
	Limit      int               `json:"limit"`
	Offset     int               `json:"offset"`
	NextCursor string            `json:"next_cursor" doc:"The cursor of the next page. Empty on the last page."`
	Incomplete bool              `json:"incomplete,omitempty" doc:"Whether the newest records are missing because MCPProxy cannot write to the database now. GET /status has details."`
}

// Activities returns the records that match a filter, newest first.
func (g *Gateway) Activities(ctx context.Context, c Caller, f activity.Filter) (ActivityList, error) {
	if own := c.Actor.String(); c.Actor.SeesOnlyOwn() {
		if len(f.Actors) > 0 && !slices.Contains(f.Actors, own) {
			return ActivityList{Relation: "eq", Limit: f.Limit, Offset: f.Offset}, nil
		}
		f.Actors = []string{own}
	}
	found, err := g.Log.List(ctx, f)
	if err != nil {
		return ActivityList{}, err
	}
	for i := range found.Records {
		fillMissingIntentOperation(&found.Records[i])
	}
	relation := "eq"
	if found.Incomplete {
		relation = "gte"
	}
	return ActivityList{found.Records, found.Total, relation, f.Limit, f.Offset, found.NextCursor, found.Incomplete}, nil
}

// Activity returns the record with the given ID or unique prefix of an ID.
func (g *Gateway) Activity(ctx context.Context, c Caller, in RecordRef) (activity.Record, error) {
	r, err := g.Log.Get(ctx, in.ID)
	if c.Actor.SeesOnlyOwn() && (err != nil || r.Actor != c.Actor.String()) { // the same for records that do not exist
		return activity.Record{}, problem.Newf(problem.NotFound, "You have no record with the ID '%s'.", problem.ClipName(in.ID)).WithHint("Send the whole ID.")
	}
	fillMissingIntentOperation(&r)
	return r, err
}

// fillMissingIntentOperation derives the operation type of a record without an intent from its call_tool variant.
func fillMissingIntentOperation(r *activity.Record) {
	variant, ok := policy.ParseCallToolName(r.Metadata.ToolVariant)
	if !ok || r.Metadata.Intent != nil && r.Metadata.Intent.OperationType != "" {
		return
	}
	intent := activity.Intent{}
	if r.Metadata.Intent != nil {
		intent = *r.Metadata.Intent
	}
	intent.OperationType = variant.Operation().String()
	r.Metadata.Intent = &intent
}

// SummaryQuery selects the calls to summarize.
type SummaryQuery struct {
	activity.Filter
	Period string           `query:"period" doc:"The length of the period that ends at end_time or now, such as 90s, 30m, 24h, 7d or 2w. Default: 24h, unless start_time is set."`
	Step   string           `query:"step" doc:"The length of a bucket, such as 30m. There can be at most 400 buckets. Default: chosen from the length of the period."`
	Group  activity.GroupBy `query:"group" doc:"The field by which calls are grouped, in addition to time."`
}

// Summary summarizes the calls of a period.
type Summary struct {
	Since       time.Time `json:"since"`
	Until       time.Time `json:"until"`
	StepSeconds int64     `json:"step_seconds"`
	activity.Summary
	Last *time.Time `json:"last,omitempty" doc:"The time of the last call that matches the filters, even if it was before since. Absent if there is none."`
}

// The maximum number of buckets if the client sets the step, and if it does not.
const (
	maxBuckets     = 400
	defaultBuckets = 60
)

// bucketLengths are the lengths of buckets if the client sets no step. Longer buckets are whole days.
var bucketLengths = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, historyDay,
}

// Summary summarizes the calls of a period in buckets. Buckets start at multiples of their length.
func (h *ActivityHistory) Summary(ctx context.Context, _ Caller, in SummaryQuery) (Summary, error) {
	f, err := in.toFilter(h.now())
	if err != nil {
		return Summary{}, err
	}
	step, err := in.chooseBucketLength(f.Since, f.Until)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Since: f.Since.UTC(), Until: f.Until.UTC(), StepSeconds: int64(step / time.Second)}
	s.Summary, err = h.log.Summary(ctx, activity.SummaryQuery{Filter: f, Step: step, Group: in.Group, Most: maxCountedRecords})
	if err != nil || len(f.Types) > 0 && !slices.Contains(f.Types, activity.ToolCall) {
		return s, err
	}
	f.Since, f.Types, f.Limit = time.Time{}, []activity.Type{activity.ToolCall}, 1
	newest, err := h.log.List(ctx, f)
	if len(newest.Records) > 0 {
		s.Last = &newest.Records[0].Timestamp
	}
	return s, err
}

// toFilter returns the filter with its start and end set.
func (in *SummaryQuery) toFilter(now time.Time) (activity.Filter, error) {
	f := in.Filter
	if f.Until.IsZero() {
		f.Until = now
	}
	if !f.Since.IsZero() && in.Period != "" {
		return f, invalidValueError("period", in.Period, "absent if start_time is set")
	}
	period, err := parsePeriod("period", in.Period, historyDay)
	if err != nil {
		return f, err
	}
	if f.Since.IsZero() {
		f.Since = f.Until.Add(-period)
	}
	if f.Since.Unix() < 0 || !f.Since.Before(f.Until) {
		return f, invalidValueError("start_time", f.Since.Format(time.RFC3339), "a time after 1970 and before end_time (or now)")
	}
	return f, nil
}

// chooseBucketLength returns the length of a bucket.
func (in *SummaryQuery) chooseBucketLength(since, until time.Time) (time.Duration, error) {
	if in.Step == "" {
		for _, step := range bucketLengths {
			if bucketCount(since, until, step) <= defaultBuckets {
				return step, nil
			}
		}
		return time.Duration((until.Unix()-since.Unix())/int64(defaultBuckets*historyDay/time.Second)+1) * historyDay, nil
	}
	step, err := parsePeriod("step", in.Step, 0)
	if err == nil && bucketCount(since, until, step) > maxBuckets {
		least := time.Duration((until.Unix()-since.Unix())/(maxBuckets-2)+1) * time.Second
		return 0, invalidValueError("step", in.Step, fmt.Sprintf("at least %ds for this period, because there can be at most %d buckets", least/time.Second, maxBuckets)).
			WithHint("Leave step out to use a suitable value.")
	}
	return step, err
}

// bucketCount returns the number of buckets for a period.
func bucketCount(since, until time.Time, step time.Duration) int64 {
	s := int64(step / time.Second)
	return (until.Unix()+s)/s - since.Unix()/s
}

// ExportQuery selects records to export.
type ExportQuery struct {
	activity.Filter
	Format ExportFormat `query:"format" enum:"jsonl,csv" doc:"The format. jsonl (application/x-ndjson): one record per line, as GET /activity/{id} returns it, with its proof; the last lines have no id and prove the whole export. csv (text/csv): a table of the main fields. Default: jsonl."`
	Bodies bool         `query:"include_bodies" doc:"Whether the export contains arguments and responses."`
}

// ExportFormat is the format of an export.
type ExportFormat string

// The formats of an export.
const (
	JSONL ExportFormat = "jsonl"
	CSV   ExportFormat = "csv"
)

// Export returns the selected records as a file to download. The newest records come first.
func (h *ActivityHistory) Export(_ context.Context, _ Caller, in ExportQuery) (Download, error) {
	if in.Format == "" {
		in.Format = JSONL
	}
	kind := "application/x-ndjson"
	if in.Format == CSV {
		kind = "text/csv; charset=utf-8"
	}
	return Download{
		Type: kind, Name: "mcpproxy-activity-" + h.now().UTC().Format("20060102T150405Z") + "." + string(in.Format),
		Stream: func(ctx context.Context, w io.Writer) error { return h.writeExport(ctx, &in, w) },
	}, nil
}

// exportWriteSize is the approximate size of one write.
const exportWriteSize = 64 << 10

func (h *ActivityHistory) writeExport(ctx context.Context, in *ExportQuery, w io.Writer) error {
	if in.Format == JSONL {
		return h.writeJSONLines(ctx, in, w)
	}
	var buf bytes.Buffer
	table := csv.NewWriter(&buf)
	if err := table.Write(csvColumns(in.Bodies)); err != nil {
		return err
	}
	err := h.log.EachRecord(ctx, in.Filter, func(r *activity.Record) error {
		fillMissingIntentOperation(r)
		if err := table.Write(csvRow(r, in.Bodies)); err != nil {
			return err
		}
		table.Flush()
		if buf.Len() < exportWriteSize {
			return nil
		}
		_, err := buf.WriteTo(w)
		return err
	})
	if err != nil {
		return err
	}
	table.Flush()
	_, err = buf.WriteTo(w)
	return err
}

// writeJSONLines writes each record with its proof on one line, then the lines that prove the whole export.
func (h *ActivityHistory) writeJSONLines(ctx context.Context, in *ExportQuery, w io.Writer) error {
	out := hashingLineWriter{to: w, sum: sha256.New()}
	end := exportEndLine{Format: exportFormat, Filtered: !in.Filter.SelectsAll(), Bodies: in.Bodies, Time: h.now().UTC(), Signer: h.log.SigningKey().String()}
	at, err := h.log.EachStoredRecord(ctx, in.Filter, func(s *activity.StoredRecord) error {
		end.Records++
		line, err := encodeStoredRecord(s, end.Records, in.Bodies)
		if err != nil {
			return err
		}
		return out.writeLine(line)
	})
	if err != nil {
		return err
	}
	end.setChainPosition(at)
	if err := h.log.EachGapAndCheckpoint(ctx, func(p activity.ChainPart) error { return out.writeLine(encodeChainPart(&p)) }); err != nil {
		return err
	}
	end.SHA256 = hex.EncodeToString(out.sum.Sum(nil))
	line, err := end.toSignedLine(h.log.SigningKey().SignText)
	if err == nil {
		err = out.writeLine(line)
	}
	return errors.Join(err, out.flush())
}

// hashingLineWriter buffers and hashes lines.
type hashingLineWriter struct {
	to  io.Writer
	sum hash.Hash
	buf bytes.Buffer
}

func (w *hashingLineWriter) writeLine(line []byte) error {
	w.buf.Write(line)
	w.buf.WriteByte('\n')
	w.sum.Write(line)
	w.sum.Write([]byte{'\n'})
	if w.buf.Len() < exportWriteSize {
		return nil
	}
	return w.flush()
}

func (w *hashingLineWriter) flush() error {
	_, err := w.buf.WriteTo(w.to)
	return err
}

func csvColumns(bodies bool) []string {
	all := []string{"id", "time", "type", "status", "server", "tool", "operation_type", "duration_ms", "own_us", "session", "actor", "client", "error_code", "reason", "repeated"}
	if bodies {
		all = append(all, "arguments", "response")
	}
	return all
}

// csvRow returns the cells of a record, in the order of csvColumns.
func csvRow(r *activity.Record, bodies bool) []string {
	intent := activity.Intent{}
	if r.Metadata.Intent != nil {
		intent = *r.Metadata.Intent
	}
	all := []string{
		r.ID, r.Timestamp.UTC().Format(time.RFC3339Nano), string(r.Type), string(r.Status), r.ServerName, r.ToolName, intent.OperationType,
		strconv.FormatInt(r.DurationMS, 10), strconv.FormatInt(r.OwnUS, 10), r.SessionID, r.Actor, r.ClientName, r.Metadata.ErrorCode, intent.Reason,
		strconv.FormatInt(max(r.Repeated, 1), 10), // identical refusals are one record
	}
	if bodies {
		all = append(all, string(r.Arguments), string(r.Response))
	}
	for i, cell := range all {
		all[i] = escapeFormula(cell)
	}
	return all
}

// escapeFormula prevents spreadsheets from evaluating a cell as a formula (OWASP, "CSV Injection").
func escapeFormula(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) || strings.HasPrefix(cell, "＝") || strings.HasPrefix(cell, "＋") || strings.HasPrefix(cell, "－") || strings.HasPrefix(cell, "＠") {
		return "'" + cell
	}
	return cell
}
