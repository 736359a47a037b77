package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/api"
	"mcpproxy/internal/gateway"
)

func activityCommand(r *run) *cobra.Command {
	return group("activity", "The log of every call and refusal",
		"  mcpproxy activity list\n  mcpproxy activity list --intent-type destructive --since 24h\n  mcpproxy activity show 01JG2K4",
		activityList(r), activityShow(r))
}

// listFlags are the filters as they are typed.
type listFlags struct {
	types, statuses []string
	since, until    string
	start, end      string
	noIcons         bool
}

func activityList(r *run) *cobra.Command {
	var flags listFlags
	var f activity.Filter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "The log, newest first",
		Long: `Shows the log, newest first. Filters may be combined; several values of one
filter mean any of them. Times are a span back from now (90s, 15m, 2h, 7d, 2w),
a date, or a time such as 2026-01-15T10:30:00Z or "2026-01-15 10:30:00".`,
		Example: "  mcpproxy activity list\n  mcpproxy activity list --intent-type write,destructive --since 2h\n" +
			"  mcpproxy activity list --tool github:create_issue --status error\n" +
			"  mcpproxy activity list --since 2026-01-15 --until 2026-01-16 -o json",
		Args: atMost(0),
		RunE: does(r, api.ListActivity, func([]string) (activity.Filter, error) { return filter(r, f, flags) },
			func(p *printer, page gateway.ActivityList) { writeActivities(p, page, flags.noIcons) }),
	}
	addFilterFlags(r, cmd, &f, &flags)
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "how many records at most, up to 1000")
	cmd.Flags().StringVar(&f.Cursor, "cursor", "", "where the page before ended (its next_cursor)")
	cmd.Flags().BoolVar(&flags.noIcons, "no-icons", false, "plain words in the INTENT column")
	return cmd
}

// addFilterFlags adds the filters of every command over the log.
func addFilterFlags(r *run, cmd *cobra.Command, f *activity.Filter, flags *listFlags) {
	s := cmd.Flags()
	s.StringSliceVar(&flags.types, "type", nil, "only these `types`: "+strings.Join(api.ListActivity.Words("type"), ", "))
	s.StringSliceVar(&f.Servers, "server", nil, "only these `servers`")
	s.StringArrayVar(&f.Tools, "tool", nil, "only this `tool`: its name, or server:tool; may be repeated")
	s.StringSliceVar(&flags.statuses, "status", nil, "only these `statuses`: "+strings.Join(api.ListActivity.Words("status"), ", "))
	s.StringVar(&f.SessionID, "session", "", "only this session (`id`)")
	s.StringVar(&f.RequestID, "request-id", "", "only this request (`id`)")
	s.StringSliceVar(&f.IntentTypes, "intent-type", nil, "only these operation `types`: read, write, destructive")
	s.StringSliceVar(&f.Sensitivities, "sensitivity", nil, "only these declared `levels`: public, internal, private, unknown")
	s.StringArrayVar(&f.Actors, "actor", nil, "only this `actor`: admin, agent, or agent:NAME; may be repeated")
	s.StringVar(&flags.since, "since", "", "only from this `time` on, such as 2h or 2026-01-15")
	s.StringVar(&flags.until, "until", "", "only before this `time`")
	s.StringVar(&flags.start, "start-time", "", "the same as --since (`time`)")
	s.StringVar(&flags.end, "end-time", "", "the same as --until (`time`)")
	s.StringVar(&f.Search, "search", "", "`words` in arguments, responses and reasons")
	for name, complete := range map[string]cobra.CompletionFunc{
		"type": words(api.ListActivity.Words("type")...), "status": words(api.ListActivity.Words("status")...),
		"intent-type": words(api.ListActivity.Words("intent_type")...), "sensitivity": words(api.ListActivity.Words("sensitivity")...),
		"server": r.completeFlag(serverNames), "tool": r.completeFlag(toolNames), "actor": words("admin", "agent"),
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, complete)
	}
}

// filter makes the filter that the daemon takes of what was typed.
func filter(r *run, f activity.Filter, flags listFlags) (activity.Filter, error) {
	for _, t := range flags.types {
		f.Types = append(f.Types, activity.Type(t))
	}
	for _, s := range flags.statuses {
		f.Statuses = append(f.Statuses, activity.Status(s))
	}
	since, err := one("--since", flags.since, flags.start)
	if err != nil {
		return f, err
	}
	until, err := one("--until", flags.until, flags.end)
	if err != nil {
		return f, err
	}
	if f.Since, err = r.parseTime("--since", since); err != nil {
		return f, err
	}
	f.Until, err = r.parseTime("--until", until)
	return f, err
}

func activityShow(r *run) *cobra.Command {
	var noIcons bool
	cmd := &cobra.Command{
		Use:               "show <id>",
		Short:             "One record in full",
		Long:              "Shows one record of the log with its complete intent. The beginning of an id is enough when no other has it.",
		Example:           "  mcpproxy activity show 01JG2K4\n  mcpproxy activity show 01JG2K4 -o json",
		Args:              exactly("id"),
		ValidArgsFunction: r.complete(recordIDs),
		RunE: does(r, api.GetActivity, func(args []string) (gateway.RecordRef, error) {
			return gateway.RecordRef{ID: strings.TrimRight(args[0], "….")}, nil
		}, func(p *printer, record activity.Record) { writeRecord(p, record, noIcons) }),
	}
	cmd.Flags().BoolVar(&noIcons, "no-icons", false, "plain words for the operation type")
	return cmd
}
