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

	"mcpproxy/internal/activity"
	"mcpproxy/internal/api"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
)

// activityWatch shows records as they are made.
func activityWatch(r *run) command {
	w := watch{run: r}
	var flags listFlags
	all := filters(&w.filter, &flags)
	for name := range all { // what an event does not say cannot be watched for
		if !slices.Contains([]string{"type", "status", "server", "tool", "session", "intent-type", "actor", "client"}, name) {
			delete(all, name)
		}
	}
	all["limit"], all["no-icons"] = &atMostFlag{&w.limit, 1_000_000}, &w.noIcons
	return command{flags: all, run: r.ask(func(ctx context.Context, c *api.Client, _ []string) (err error) {
		if w.filter, err = filter(r, w.filter, flags); err != nil {
			return err
		}
		for _, given := range []struct {
			flag          string
			values, among []string
		}{
			{"--type", flags.types, vocabulary("record type")}, {"--status", flags.statuses, vocabulary("record status")}, {"--intent-type", w.filter.IntentTypes, vocabulary("operation")},
		} {
			for _, v := range given.values {
				if !slices.Contains(given.among, v) {
					return usage("Invalid value '"+printable(v)+"' for "+given.flag+": must be one of "+strings.Join(given.among, ", "), "")
				}
			}
		}
		return w.follow(ctx, c)
	})}
}

// watch reads events and writes those that are asked for.
type watch struct {
	*run
	filter  activity.Filter
	limit   int
	noIcons bool

	last  string // the id of the last event
	shown int
	text  []byte // of an event that is not whole yet
}

var errEnough = errors.New("enough was shown")

// retryWatch is how long a daemon that has gone is waited for until it is asked again.
const retryWatch = time.Second

// follow reads until enough is shown, and goes on where it was when the daemon comes
// back.
func (w *watch) follow(ctx context.Context, c *api.Client) error {
	for gone := false; ; {
		w.text = nil
		q := gateway.EventQuery{LastEventID: w.last, Types: []gateway.EventKind{gateway.EventCallCompleted, gateway.EventPolicyDecision, gateway.EventRecorded}}
		err := api.StreamEvents.Pour(ctx, c, q, w)
		p := problem.From(err)
		switch {
		case errors.Is(err, errEnough):
			return nil
		case ctx.Err() != nil || err != nil && (w.last == "" || p.Code != problem.DaemonNotRunning && p.Code != problem.Overloaded):
			return err
		case !gone:
			w.say("MCPProxy has ended; what it does when it is there again is shown from here on.")
		}
		gone = err != nil
		select {
		case <-ctx.Done():
			return problem.New(problem.Interrupted, "Interrupted.", "")
		case <-time.After(retryWatch):
		}
	}
}

// Write takes the events as they come.
func (w *watch) Write(p []byte) (int, error) {
	w.text = append(w.text, p...)
	for {
		event, rest, whole := bytes.Cut(w.text, []byte("\n\n"))
		if !whole {
			return len(p), nil
		}
		w.text = rest
		if err := w.event(event); err != nil {
			return 0, err
		}
	}
}

func (w *watch) event(text []byte) error {
	var kind, data string
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "id":
			w.last = value
		case "event":
			kind = value
		case "data":
			data = value
		}
	}
	if kind == string(gateway.EventReset) {
		w.say("Records were missed that cannot be told any more: see `mcpproxy activity list`.")
	}
	var e gateway.EventRecord
	if data == "" || json.Unmarshal([]byte(data), &e) != nil || e.ID == "" || !w.wants(&e) {
		return nil
	}
	if err := w.show(&e, data); err != nil {
		return err
	}
	if w.shown++; w.shown == w.limit {
		return errEnough
	}
	return nil
}

// wants reports whether the filter selects the record.
func (w *watch) wants(e *gateway.EventRecord) bool {
	f := &w.filter
	return anyOf(f.Types, e.Type) && anyOf(f.Statuses, e.Status) && anyOf(f.Servers, e.ServerName) && w.wantsTool(e) &&
		anyOf(f.IntentTypes, e.OperationType) && anyOf(f.Actors, e.Actor) && anyOf(f.Clients, e.ClientName) && (f.SessionID == "" || f.SessionID == e.SessionID)
}

func (w *watch) wantsTool(e *gateway.EventRecord) bool {
	return anyOf(w.filter.Tools, e.ToolName) || slices.Contains(w.filter.Tools, e.ServerName+":"+e.ToolName)
}

func anyOf[T comparable](wanted []T, v T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, v)
}

// show writes a record in a line.
func (w *watch) show(e *gateway.EventRecord, data string) error {
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
	_, err := fmt.Fprintf(p, "%s  %s  %s  %-11s  %s  %s  %s\n", e.Timestamp.In(w.Local).Format(time.TimeOnly), oneLine(e.ID), padded(operation(e.OperationType, w.noIcons), 7),
		oneLine(string(e.Status)), orDash(oneLine(what)), duration(a), oneLine(strings.TrimSpace(e.ClientName+"  "+e.ErrorCode)))
	return err
}

// padded is a text with blanks behind it, up to a number of cells.
func padded(s string, cells int) string {
	return s + strings.Repeat(" ", max(0, cells-len([]rune(s))))
}
