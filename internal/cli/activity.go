package cli

import (
	"context"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store/activity"
)

// activityFilterFlags holds the values of the activity filter flags as the user typed them.
type activityFilterFlags struct {
	types, statuses []string
	since, until    string
	start, end      string
	noIcons         bool
}

// activityFilterFlagVars returns the variables of the activity filter flags, by flag name.
func activityFilterFlagVars(f *activity.Filter, flags *activityFilterFlags) map[string]any {
	return map[string]any{
		"type": (*commaListFlag)(&flags.types), "status": (*commaListFlag)(&flags.statuses), "server": (*commaListFlag)(&f.Servers), "tool": &f.Tools,
		"session": &f.SessionID, "request-id": &f.RequestID, "intent-type": (*commaListFlag)(&f.IntentTypes),
		"sensitivity": (*commaListFlag)(&f.Sensitivities), "actor": &f.Actors, "client": &f.Clients, "since": &flags.since, "until": &flags.until,
		"start-time": &flags.start, "end-time": &flags.end, "search": &f.Search,
	}
}

func newActivityListCommand(r *invocation) commandSpec {
	var flags activityFilterFlags
	var onlyCalls bool
	f := activity.Filter{Limit: 50}
	all := activityFilterFlagVars(&f, &flags)
	all["limit"], all["cursor"], all["no-icons"] = &boundedIntFlag{&f.Limit, 1000}, &f.Cursor, &flags.noIcons
	return commandSpec{
		flags: all, completeFlags: r.activityFlagCompletions(),
		run: operationRunFunc(r, api.ListActivity, func(_ context.Context, _ *api.Client, _ []string) (activity.Filter, error) {
			if onlyCalls = len(flags.types) == 0; onlyCalls {
				flags.types = callTypes()
			}
			return toActivityFilter(r, f, flags)
		}, func(p *printer, page ops.ActivityList) {
			writeActivityTable(p, page, flags.noIcons)
			if onlyCalls {
				p.addNote("Only calls and rejected calls are listed. To list all records, pass --type all.")
			}
		}),
	}
}

// callTypes returns the types of calls and rejected calls.
func callTypes() []string {
	return []string{string(activity.ToolCall), string(activity.PolicyDecision)}
}

// everyType is the value of --type that selects every record.
const everyType = "all"

// toActivityFilter converts the typed filter flags to a filter for the daemon.
func toActivityFilter(r *invocation, f activity.Filter, flags activityFilterFlags) (activity.Filter, error) {
	for _, t := range flags.types {
		if t == everyType {
			f.Types = nil
			break
		}
		f.Types = append(f.Types, activity.Type(t))
	}
	for _, s := range flags.statuses {
		f.Statuses = append(f.Statuses, activity.Status(s))
	}
	since, err := atMostOneValue("--since", flags.since, flags.start)
	if err != nil {
		return f, err
	}
	until, err := atMostOneValue("--until", flags.until, flags.end)
	if err != nil {
		return f, err
	}
	if f.Since, err = r.parseTimeFlag("--since", since); err != nil {
		return f, err
	}
	f.Until, err = r.parseTimeFlag("--until", until)
	return f, err
}

func newActivityShowCommand(r *invocation) commandSpec {
	var noIcons bool
	return commandSpec{flags: map[string]any{"no-icons": &noIcons}, run: operationRunFunc(r, api.GetActivity, func(_ context.Context, _ *api.Client, args []string) (ops.RecordRef, error) {
		return ops.RecordRef{ID: strings.TrimRight(args[0], "….")}, nil
	}, func(p *printer, record activity.Record) { writeActivityRecord(p, record, noIcons) })}
}
