package cli

import (
	"strconv"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store/activity"
)

// activitySummary shows a summary of calls.
func activitySummary(r *run) command {
	var flags listFlags
	q := ops.SummaryQuery{Group: activity.ByTool}
	all := filters(&q.Filter, &flags)
	all["period"], all["group"] = &q.Period, (*string)(&q.Group)
	return command{flags: all, run: runOperation(r, api.GetSummary, func([]string) (in ops.SummaryQuery, err error) {
		in = q
		in.Filter, err = filter(r, q.Filter, flags)
		return in, err
	}, func(p *printer, s ops.Summary) { writeSummary(p, s, string(q.Group)) })}
}

func writeSummary(p *printer, s ops.Summary, group string) {
	if s.Cut {
		p.note("There are older records that were not counted.")
	}
	if s.Incomplete {
		p.note("The newest records are missing: the database cannot take them at this time, see `mcpproxy status`.")
	}
	var f fields
	f.add("From", s.Since.In(p.local).Format(time.DateTime))
	f.add("To", s.Until.In(p.local).Format(time.DateTime))
	f.add("Calls", strconv.FormatInt(s.Calls, 10))
	f.add("Refused", strconv.FormatInt(s.Refused, 10))
	f.add("Failed", strconv.FormatInt(s.Failed, 10)+" ("+strconv.FormatInt(s.FailedTool, 10)+" by the tool, "+strconv.FormatInt(s.FailedServer, 10)+" by the server)")
	f.add("Duration", millis(s.P50)+" half, "+millis(s.P95)+" 19 of 20")
	f.add("Own time", micros(s.OwnP50)+" half, "+micros(s.OwnP95)+" 19 of 20")
	f.write(p)
	if len(s.Groups) == 0 {
		return
	}
	p.line("")
	name := map[string]string{"tool": "TOOL", "server": "SERVER", "lane": "LANE", "client": "CLIENT"}[group]
	t := table{p: p, header: []string{name, "CALLS", "REFUSED", "FAILED", "ERRORS", "P50", "P95", "OWN P50", "LAST"}, right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true},
		narrow: append(append(leaveOut("OWN P50", "LAST"), shorten(name, 16)...), leaveOut("REFUSED", "P50")...)}
	for _, g := range s.Groups {
		t.add(dashIfEmpty(oneLine(g.Key)), strconv.FormatInt(g.Calls, 10), strconv.FormatInt(g.Refused, 10), strconv.FormatInt(g.Failed, 10), share(g.Failed, g.Calls),
			millis(g.P50), millis(g.P95), micros(g.OwnP50), p.moment(&g.Last))
	}
	t.write()
}

func millis(ms int64) string { return strconv.FormatInt(ms, 10) + "ms" }

func micros(us int64) string { return (time.Duration(us) * time.Microsecond).String() }

// share formats a part of all in percent.
func share(part, all int64) string {
	if all == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(part)/float64(all), 'f', 1, 64) + "%"
}
