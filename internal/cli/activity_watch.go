package cli

import (
	"bytes"
	"cmp"
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

// newActivityWatchCommand returns `activity watch`, which prints records as they are written.
func newActivityWatchCommand(r *invocation) commandSpec {
	w := activityWatcher{invocation: r}
	var flags activityFilterFlags
	all := activityFilterFlagVars(&w.filter, &flags)
	all["limit"], all["cursor"], all["no-icons"] = &boundedIntFlag{&w.limit, 1_000_000}, &w.lastEventID, &w.noIcons
	return commandSpec{flags: all, completeFlags: r.activityFlagCompletions(), run: r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) (err error) {
		if w.filter, err = toActivityFilter(r, w.filter, flags); err != nil {
			return err
		}
		for _, given := range []struct {
			flag          string
			values, among []string
		}{
			{"--type", flags.types, fixedValuesOfKind("record type")}, {"--status", flags.statuses, fixedValuesOfKind("record status")},
			{"--intent-type", w.filter.IntentTypes, fixedValuesOfKind("operation")}, {"--sensitivity", w.filter.Sensitivities, fixedValuesOfKind("sensitivity")},
		} {
			for _, v := range given.values {
				if !slices.Contains(given.among, v) {
					return newUsageError("Invalid value '"+toPrintable(v)+"' for "+given.flag+": must be one of "+strings.Join(given.among, ", "), "")
				}
			}
		}
		w.showPastFirst = w.lastEventID == ""
		return w.watch(ctx, c)
	})}
}

// activityWatcher reads events and writes the selected ones.
type activityWatcher struct {
	*invocation
	filter  activity.Filter
	limit   int
	noIcons bool

	lastEventID   string // ID of the last shown event
	showPastFirst bool   // show earlier records first
	shown         int
	alreadyShown  map[string]bool // records that were shown before their event
	partialEvent  []byte          // received bytes of an incomplete event
}

var (
	errLimitReached = errors.New("enough was shown")
	errEndedByUser  = errors.New("the user has ended the command")
)

const (
	// watchRetryInterval is the time between attempts to reconnect to a daemon that has stopped.
	watchRetryInterval = time.Second
	// maxPastRecords limits the number of earlier records that are shown first.
	maxPastRecords = 10_000
)

// watch shows records until the limit or the end time is reached.
func (w *activityWatcher) watch(ctx context.Context, c *api.Client) error {
	until, stop := context.WithCancel(ctx)
	if !w.filter.Until.IsZero() {
		until, stop = context.WithTimeout(ctx, w.filter.Until.Sub(w.Now()))
	}
	defer stop()
	err := w.followEventStream(until, c)
	if until.Err() != nil && ctx.Err() == nil { // the end time is reached
		if err = nil; w.showPastFirst {
			err = w.showPastRecords(ctx, c)
		}
	}
	if errors.Is(err, errLimitReached) {
		err = nil
	}
	if w.lastEventID != "" {
		w.printMessage("To continue after this record, pass --cursor %s", w.lastEventID)
	}
	if err != nil && ctx.Err() != nil { // the user has ended it, which needs no message
		return errEndedByUser
	}
	return err
}

// followEventStream reads events and resumes the stream after the daemon restarts.
func (w *activityWatcher) followEventStream(ctx context.Context, c *api.Client) error {
	for gone := false; ; {
		w.partialEvent = nil
		q := ops.EventQuery{LastEventID: w.lastEventID, Types: []ops.EventKind{ops.EventCallCompleted, ops.EventPolicyDecision, ops.EventRecorded}}
		err := api.StreamEvents.Stream(ctx, c, q, writerFunc(func(p []byte) error { return w.handleStreamData(ctx, c, p) }))
		p := problem.From(err)
		switch {
		case errors.Is(err, errLimitReached) || ctx.Err() != nil || err != nil && (w.lastEventID == "" || p.Code != problem.DaemonNotRunning && p.Code != problem.Overloaded):
			return err
		case !gone:
			w.printMessage("MCPProxy has stopped. This command waits for it and continues.")
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

// handleStreamData parses a part of the stream and shows each complete event.
func (w *activityWatcher) handleStreamData(ctx context.Context, c *api.Client, p []byte) error {
	w.partialEvent = append(w.partialEvent, p...)
	for {
		event, rest, whole := bytes.Cut(w.partialEvent, []byte("\n\n"))
		if !whole {
			return nil
		}
		if err := w.parseAndShowEvent(ctx, c, event); err != nil {
			return err
		}
		w.partialEvent = rest
	}
}

// parseAndShowEvent parses an event and shows it if the filter selects it. It also stores the event's ID as the
// position to resume from.
func (w *activityWatcher) parseAndShowEvent(ctx context.Context, c *api.Client, text []byte) error {
	id, kind, data := w.lastEventID, "", ""
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
		w.printMessage("Some records were missed. See `mcpproxy activity list`.")
	}
	if w.showPastFirst {
		if err := w.showPastRecords(ctx, c); err != nil {
			return err
		}
	}
	var e ops.EventRecord
	if data == "" || json.Unmarshal([]byte(data), &e) != nil || e.ID == "" {
		w.lastEventID = id
		return nil
	}
	wanted, err := w.shouldShow(ctx, c, &e)
	if err != nil {
		return err
	}
	if w.lastEventID = id; !wanted {
		return nil
	}
	return w.showAndCheckLimit(&e, strings.TrimSuffix(data, "}")+`,"cursor":"`+id+`"}`)
}

// showPastRecords shows the completed records since --since, oldest first.
func (w *activityWatcher) showPastRecords(ctx context.Context, c *api.Client) error {
	w.showPastFirst = false
	if w.filter.Since.IsZero() {
		return nil
	}
	var all []ops.EventRecord
	f := w.filter
	for f.Limit = 1000; len(all) < maxPastRecords; {
		page, err := api.ListActivity.Call(ctx, c, f)
		if err != nil {
			return err
		}
		for i := range page.Activities {
			if r := &page.Activities[i]; r.Status != activity.Pending {
				facts := activity.NewRecordFacts(r)
				all = append(all, ops.NewEventRecord(r.ID, &facts))
			}
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			break
		}
	}
	if f.Cursor != "" {
		w.printMessage("Only the newest %d records of this period are shown. To see all, run `mcpproxy activity list`.", len(all))
	}
	w.alreadyShown = map[string]bool{}
	for i := range slices.Backward(all) {
		w.alreadyShown[all[i].ID] = true
		data, err := wirejson.MarshalWithoutHTMLEscape(&all[i])
		if err == nil {
			err = w.showAndCheckLimit(&all[i], string(data))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shouldShow reports whether a record has not been shown yet and matches the filter. It asks the daemon about a text
// search.
func (w *activityWatcher) shouldShow(ctx context.Context, c *api.Client, e *ops.EventRecord) (bool, error) {
	f := &w.filter
	if w.alreadyShown[e.ID] {
		delete(w.alreadyShown, e.ID)
		return false, nil
	}
	wanted := emptyOrContains(f.Types, e.Type) && emptyOrContains(f.Statuses, e.Status) && emptyOrContains(f.Servers, e.ServerName) && w.matchesToolFilter(e) &&
		emptyOrContains(f.IntentTypes, e.OperationType) && emptyOrContains(f.Sensitivities, e.DataSensitivity) && emptyOrContains(f.Actors, e.Actor) && emptyOrContains(f.Clients, e.ClientName) &&
		(f.SessionID == "" || f.SessionID == e.SessionID) && (f.RequestID == "" || f.RequestID == e.RequestID) &&
		!e.Timestamp.Before(f.Since) && (f.Until.IsZero() || e.Timestamp.Before(f.Until))
	if !wanted || f.Search == "" {
		return wanted, nil
	}
	page, err := api.ListActivity.Call(ctx, c, activity.Filter{Search: f.Search, Since: e.Timestamp, Until: e.Timestamp.Add(time.Microsecond), Limit: 1000})
	return slices.ContainsFunc(page.Activities, func(r activity.Record) bool { return r.ID == e.ID }), err
}

func (w *activityWatcher) matchesToolFilter(e *ops.EventRecord) bool {
	return emptyOrContains(w.filter.Tools, e.ToolName) || slices.Contains(w.filter.Tools, e.ServerName+":"+e.ToolName)
}

func emptyOrContains[T comparable](wanted []T, v T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, v)
}

// showAndCheckLimit writes a record on one line. It returns errLimitReached when the limit is reached.
func (w *activityWatcher) showAndCheckLimit(e *ops.EventRecord, data string) error {
	if err := w.writeEventLine(e, data); err != nil {
		return err
	}
	if w.shown++; w.shown == w.limit {
		return errLimitReached
	}
	return nil
}

func (w *activityWatcher) writeEventLine(e *ops.EventRecord, data string) error {
	if w.output == formatJSON {
		_, err := fmt.Fprintf(w.Stdout, "%s\n", escapeHiddenInJSON([]byte(data)))
		return err
	}
	p := w.newPrinter(w.Stdout)
	what := e.ServerName
	if e.ToolName != "" {
		what += ":" + e.ToolName
	}
	a := activity.Record{Type: e.Type, Status: e.Status, DurationMS: e.DurationMS}
	_, err := fmt.Fprintf(p, "%s  %s  %s  %-11s  %s  %s  %s\n", e.Timestamp.In(w.Local).Format(time.TimeOnly), toOneLine(e.ID), padRight(operationWithIcon(e.OperationType, w.noIcons), 7),
		toOneLine(string(e.Status)), cmp.Or(toOneLine(what), "-"), formatCallDuration(a), toOneLine(strings.TrimSpace(e.ClientName+"  "+e.ErrorCode)))
	return err
}

// padRight pads s with spaces to a width of cells terminal cells.
func padRight(s string, cells int) string {
	return s + strings.Repeat(" ", max(0, cells-len([]rune(s))))
}
