package cli

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store/activity"
)

// newActivitySummaryCommand returns `activity summary`, which prints call counts and latencies by group.
func newActivitySummaryCommand(r *invocation) commandSpec {
	var flags activityFilterFlags
	q := ops.SummaryQuery{Group: activity.ByTool}
	all := activityFilterFlagVars(&q.Filter, &flags)
	all["period"], all["group"] = &q.Period, (*string)(&q.Group)
	return commandSpec{flags: all, completeFlags: r.activityFlagCompletions(), run: operationRunFunc(r, api.GetSummary, func(_ context.Context, _ *api.Client, _ []string) (in ops.SummaryQuery, err error) {
		in = q
		in.Filter, err = toActivityFilter(r, q.Filter, flags)
		return in, err
	}, func(p *printer, s ops.Summary) { writeActivitySummary(p, s, string(q.Group)) })}
}

func writeActivitySummary(p *printer, s ops.Summary, group string) {
	if s.Cut {
		p.addNote("There are older records that were not counted.")
	}
	if s.Incomplete {
		p.addNote("The newest records are missing because the database cannot store them now. See `mcpproxy status`.")
	}
	var f fieldList
	f.add("From", s.Since.In(p.timeZone).Format(time.DateTime))
	f.add("To", s.Until.In(p.timeZone).Format(time.DateTime))
	f.add("Calls", strconv.FormatInt(s.Calls, 10))
	f.add("Refused", strconv.FormatInt(s.Refused, 10))
	f.add("Failed", strconv.FormatInt(s.Failed, 10)+" ("+strconv.FormatInt(s.FailedTool, 10)+" by the tool, "+strconv.FormatInt(s.FailedServer, 10)+" by the server)")
	f.add("Duration", "p50 "+formatMilliseconds(s.P50)+", p95 "+formatMilliseconds(s.P95))
	f.add("Own time", "p50 "+formatMicroseconds(s.OwnP50)+", p95 "+formatMicroseconds(s.OwnP95))
	f.write(p)
	if len(s.Groups) == 0 {
		return
	}
	p.writeLine("")
	name := map[string]string{"tool": "TOOL", "server": "SERVER", "lane": "LANE", "client": "CLIENT"}[group]
	t := table{p: p, header: []string{name, "CALLS", "REFUSED", "FAILED", "ERRORS", "P50", "P95", "OWN P50", "LAST"}, rightAligned: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true},
		narrowingSteps: append(append(columnHidingSteps("OWN P50", "LAST"), columnTruncationStep(name, 16)...), columnHidingSteps("REFUSED", "P50")...)}
	for _, g := range s.Groups {
		t.addRow(cmp.Or(toOneLine(g.Key), "-"), strconv.FormatInt(g.Calls, 10), strconv.FormatInt(g.Refused, 10), strconv.FormatInt(g.Failed, 10), formatShareAsPercent(g.Failed, g.Calls),
			formatMilliseconds(g.P50), formatMilliseconds(g.P95), formatMicroseconds(g.OwnP50), p.formatTime(&g.Last))
	}
	t.write()
}

func formatMilliseconds(ms int64) string { return strconv.FormatInt(ms, 10) + "ms" }

func formatMicroseconds(us int64) string { return (time.Duration(us) * time.Microsecond).String() }

// formatShareAsPercent formats part as a percentage of all.
func formatShareAsPercent(part, all int64) string {
	if all == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(part)/float64(all), 'f', 1, 64) + "%"
}
