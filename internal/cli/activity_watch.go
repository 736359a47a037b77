package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// activityWatch shows records as they are written.
func activityWatch(r *run) command {
	w := activityWatcher{run: r}
	var flags listFlags
	all := filters(&w.filter, &flags)
	all["limit"], all["cursor"], all["no-icons"] = &atMostFlag{&w.limit, 1_000_000}, &w.last, &w.noIcons
	return command{flags: all, run: r.withClient(func(ctx context.Context, c *api.Client, _ []string) (err error) {
		if w.filter, err = filter(r, w.filter, flags); err != nil {
			return err
		}
		for _, given := range []struct {
			flag          string
			values, among []string
		}{
			{"--type", flags.types, vocabulary("record type")}, {"--status", flags.statuses, vocabulary("record status")},
			{"--intent-type", w.filter.IntentTypes, vocabulary("operation")}, {"--sensitivity", w.filter.Sensitivities, vocabulary("sensitivity")},
		} {
			for _, v := range given.values {
				if !slices.Contains(given.among, v) {
					return usage("Invalid value '"+printable(v)+"' for "+given.flag+": must be one of "+strings.Join(given.among, ", "), "")
				}
			}
		}
		w.fresh = w.last == ""
		return w.watch(ctx, c)
	})}
}

// activityWatcher reads events and writes the selected ones.
type activityWatcher struct {
	*run
	filter  activity.Filter
	limit   int
	noIcons bool

	last  string // id of the last event that was shown
	fresh bool   // show earlier records first
	shown int
	was   map[string]bool // records that were shown before their event
	text  []byte          // of an incomplete event
}

var errLimitReached = errors.New("enough was shown")

const (
	// watchRetryInterval is the time until a daemon that is gone is tried again.
	watchRetryInterval = time.Second
	// maxPast limits the earlier records that are shown first.
	maxPast = 10_000
)

// watch shows records until the limit or the end time is reached.
func (w *activityWatcher) watch(ctx context.Context, c *api.Client) error {
	until, stop := context.WithCancel(ctx)
	if !w.filter.Until.IsZero() {
		until, stop = context.WithTimeout(ctx, w.filter.Until.Sub(w.Now()))
	}
	defer stop()
	err := w.follow(until, c)
	if until.Err() != nil && ctx.Err() == nil { // the time is over
		if err = nil; w.fresh {
			err = w.past(ctx, c)
		}
	}
	if errors.Is(err, errLimitReached) {
		err = nil
	}
	if w.last != "" {
		w.say("What comes behind this: --cursor %s", w.last)
	}
	return err
}

// follow reads events, and resumes when the daemon comes back.
func (w *activityWatcher) follow(ctx context.Context, c *api.Client) error {
	for gone := false; ; {
		w.text = nil
		q := ops.EventQuery{LastEventID: w.last, Types: []ops.EventKind{ops.EventCallCompleted, ops.EventPolicyDecision, ops.EventRecorded}}
		err := api.StreamEvents.Stream(ctx, c, q, writerFunc(func(p []byte) error { return w.receive(ctx, c, p) }))
		p := problem.From(err)
		switch {
		case errors.Is(err, errLimitReached) || ctx.Err() != nil || err != nil && (w.last == "" || p.Code != problem.DaemonNotRunning && p.Code != problem.Overloaded):
			return err
		case !gone:
			w.say("MCPProxy has ended; what it does when it is there again is shown from here on.")
		}
		gone = err != nil
		select {
		case <-ctx.Done():
			return problem.New(problem.Interrupted, "Interrupted.", "")
		case <-time.After(watchRetryInterval):
		}
	}
}

// writerFunc adapts a function to io.Writer.
type writerFunc func(p []byte) error

func (f writerFunc) Write(p []byte) (int, error) { return len(p), f(p) }

// receive parses the stream and handles each complete event.
func (w *activityWatcher) receive(ctx context.Context, c *api.Client, p []byte) error {
	w.text = append(w.text, p...)
	for {
		event, rest, whole := bytes.Cut(w.text, []byte("\n\n"))
		if !whole {
			return nil
		}
		if err := w.event(ctx, c, event); err != nil {
			return err
		}
		w.text = rest
	}
}

// event shows an event if it is selected, and then advances the cursor.
func (w *activityWatcher) event(ctx context.Context, c *api.Client, text []byte) error {
	id, kind, data := w.last, "", ""
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = value
		}
	}
	if kind == string(ops.EventReset) {
		w.say("Records were missed that cannot be told any more: see `mcpproxy activity list`.")
	}
	if w.fresh {
		if err := w.past(ctx, c); err != nil {
			return err
		}
	}
	var e ops.EventRecord
	if data == "" || json.Unmarshal([]byte(data), &e) != nil || e.ID == "" {
		w.last = id
		return nil
	}
	wanted, err := w.wants(ctx, c, &e)
	if err != nil {
		return err
	}
	if w.last = id; !wanted {
		return nil
	}
	return w.show(&e, strings.TrimSuffix(data, "}")+`,"cursor":"`+id+`"}`)
}

// past shows the completed records since --since, oldest first.
func (w *activityWatcher) past(ctx context.Context, c *api.Client) error {
	w.fresh = false
	if w.filter.Since.IsZero() {
		return nil
	}
	var all []ops.EventRecord
	f := w.filter
	for f.Limit = 1000; len(all) < maxPast; {
		page, err := api.ListActivity.Call(ctx, c, f)
		if err != nil {
			return err
		}
		for i := range page.Activities {
			if r := &page.Activities[i]; r.Status != activity.Pending {
				all = append(all, toEvent(r))
			}
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			break
		}
	}
	if f.Cursor != "" {
		w.say("There are more records than %d since then, of which the oldest are left out: see `mcpproxy activity list`.", len(all))
	}
	w.was = map[string]bool{}
	for i := range slices.Backward(all) {
		w.was[all[i].ID] = true
		data, err := wirejson.Marshal(&all[i])
		if err == nil {
			err = w.show(&all[i], string(data))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// toEvent converts a record to an event.
func toEvent(r *activity.Record) ops.EventRecord {
	f := activity.NewRecordFacts(r)
	return ops.EventRecord{ID: r.ID, Type: f.Type, Status: f.Status, ServerName: f.Server, ToolName: f.Tool, Timestamp: r.Timestamp, DurationMS: f.Duration,
		OperationType: f.Intent, DataSensitivity: f.Sensitivity, SessionID: f.Session, RequestID: f.Request, ClientName: f.Client, Actor: f.Actor, ErrorCode: f.ErrorCode, Reason: f.Reason}
}

// wants reports whether the filter selects a record that was not shown yet. It looks up what an event does not contain.
func (w *activityWatcher) wants(ctx context.Context, c *api.Client, e *ops.EventRecord) (bool, error) {
	f := &w.filter
	if w.was[e.ID] {
		delete(w.was, e.ID)
		return false, nil
	}
	wanted := matchesAny(f.Types, e.Type) && matchesAny(f.Statuses, e.Status) && matchesAny(f.Servers, e.ServerName) && w.wantsTool(e) &&
		matchesAny(f.IntentTypes, e.OperationType) && matchesAny(f.Sensitivities, e.DataSensitivity) && matchesAny(f.Actors, e.Actor) && matchesAny(f.Clients, e.ClientName) &&
		(f.SessionID == "" || f.SessionID == e.SessionID) && (f.RequestID == "" || f.RequestID == e.RequestID) &&
		!e.Timestamp.Before(f.Since) && (f.Until.IsZero() || e.Timestamp.Before(f.Until))
	if !wanted || f.Search == "" {
		return wanted, nil
	}
	page, err := api.ListActivity.Call(ctx, c, activity.Filter{Search: f.Search, Since: e.Timestamp, Until: e.Timestamp.Add(time.Microsecond), Limit: 1000})
	return slices.ContainsFunc(page.Activities, func(r activity.Record) bool { return r.ID == e.ID }), err
}

func (w *activityWatcher) wantsTool(e *ops.EventRecord) bool {
	return matchesAny(w.filter.Tools, e.ToolName) || slices.Contains(w.filter.Tools, e.ServerName+":"+e.ToolName)
}

func matchesAny[T comparable](wanted []T, v T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, v)
}

// show writes a record on one line. It returns errLimitReached when the limit is reached.
func (w *activityWatcher) show(e *ops.EventRecord, data string) error {
	if err := w.line(e, data); err != nil {
		return err
	}
	if w.shown++; w.shown == w.limit {
		return errLimitReached
	}
	return nil
}

func (w *activityWatcher) line(e *ops.EventRecord, data string) error {
	if w.output == formatJSON {
		_, err := fmt.Fprintf(w.Stdout, "%s\n", escapeHidden([]byte(data)))
		return err
	}
	p := w.printer(w.Stdout)
	what := e.ServerName
	if e.ToolName != "" {
		what += ":" + e.ToolName
	}
	a := activity.Record{Type: e.Type, Status: e.Status, DurationMS: e.DurationMS}
	_, err := fmt.Fprintf(p, "%s  %s  %s  %-11s  %s  %s  %s\n", e.Timestamp.In(w.Local).Format(time.TimeOnly), oneLine(e.ID), padRight(operation(e.OperationType, w.noIcons), 7),
		oneLine(string(e.Status)), dashIfEmpty(oneLine(what)), duration(a), oneLine(strings.TrimSpace(e.ClientName+"  "+e.ErrorCode)))
	return err
}

// padRight pads a text with spaces to a number of cells.
func padRight(s string, cells int) string {
	return s + strings.Repeat(" ", max(0, cells-len([]rune(s))))
}
