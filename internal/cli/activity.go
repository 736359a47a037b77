package cli

import (
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store/activity"
)

// listFlags are the activity filters as typed.
type listFlags struct {
	types, statuses []string
	since, until    string
	start, end      string
	noIcons         bool
}

// filters returns the flags of all commands that select records.
func filters(f *activity.Filter, flags *listFlags) map[string]any {
	return map[string]any{
		"type": (*commaList)(&flags.types), "status": (*commaList)(&flags.statuses), "server": (*commaList)(&f.Servers), "tool": &f.Tools,
		"session": &f.SessionID, "request-id": &f.RequestID, "intent-type": (*commaList)(&f.IntentTypes),
		"sensitivity": (*commaList)(&f.Sensitivities), "actor": &f.Actors, "client": &f.Clients, "since": &flags.since, "until": &flags.until,
		"start-time": &flags.start, "end-time": &flags.end, "search": &f.Search,
	}
}

func activityList(r *run) command {
	var flags listFlags
	f := activity.Filter{Limit: 50}
	all := filters(&f, &flags)
	all["limit"], all["cursor"], all["no-icons"] = &atMostFlag{&f.Limit, 1000}, &f.Cursor, &flags.noIcons
	return command{
		flags: all,
		run: runOperation(r, api.ListActivity, func([]string) (activity.Filter, error) { return filter(r, f, flags) },
			func(p *printer, page ops.ActivityList) { writeActivities(p, page, flags.noIcons) }),
	}
}

// filter converts the typed filters for the daemon.
func filter(r *run, f activity.Filter, flags listFlags) (activity.Filter, error) {
	for _, t := range flags.types {
		f.Types = append(f.Types, activity.Type(t))
	}
	for _, s := range flags.statuses {
		f.Statuses = append(f.Statuses, activity.Status(s))
	}
	since, err := onlyValue("--since", flags.since, flags.start)
	if err != nil {
		return f, err
	}
	until, err := onlyValue("--until", flags.until, flags.end)
	if err != nil {
		return f, err
	}
	if f.Since, err = r.parseTime("--since", since); err != nil {
		return f, err
	}
	f.Until, err = r.parseTime("--until", until)
	return f, err
}

func activityShow(r *run) command {
	var noIcons bool
	return command{flags: map[string]any{"no-icons": &noIcons}, run: runOperation(r, api.GetActivity, func(args []string) (ops.RecordRef, error) {
		return ops.RecordRef{ID: strings.TrimRight(args[0], "….")}, nil
	}, func(p *printer, record activity.Record) { writeRecord(p, record, noIcons) })}
}
