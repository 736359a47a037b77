package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store/activity"
)

// minShortIDLength is the minimum length of an ID in a table. The first ten characters of a ULID encode its time and
// usually identify one record.
const minShortIDLength = 10

func writeActivityTable(p *printer, page ops.ActivityList, noIcons bool) {
	if page.Incomplete {
		p.addNote("The newest records are missing because the database cannot store them now. See `mcpproxy status`.")
	}
	length := uniqueIDLength(page.Activities)
	if p.wide {
		length = maxIDLength
	}
	list[activity.Record]{
		none: "No record matches.",
		name: func(a activity.Record) string { return a.ID },
		columns: []column[activity.Record]{
			{title: "ID", text: func(a activity.Record) string { return a.ID[:min(len(a.ID), length)] }},
			{title: "TIME", cell: func(p *printer, a activity.Record) string { return p.formatTime(&a.Timestamp) }},
			{title: "SERVER", text: func(a activity.Record) string { return cmp.Or(a.ServerName, "-") }},
			{title: "TOOL", text: func(a activity.Record) string { return cmp.Or(a.ToolName, "-") }},
			{title: "INTENT", text: func(a activity.Record) string { return cmp.Or(intentCell(a, noIcons), "-") }},
			{title: "STATUS", cell: func(p *printer, a activity.Record) string {
				return formatActivityStatus(p, a.Status) + repeatCountText(a)
			}},
			{title: "DURATION", text: formatCallDuration},
			{title: "OWN TIME", wide: true, text: formatProxyOverhead},
			{title: "ACTOR", wide: true, text: func(a activity.Record) string { return a.Actor }},
			{title: "CLIENT", text: func(a activity.Record) string { return a.ClientName }},
			{title: "SESSION", wide: true, text: func(a activity.Record) string { return a.SessionID }},
			{title: "DETAIL", text: func(a activity.Record) string { return cmp.Or(a.Metadata.Action, a.Metadata.ErrorCode) }},
		},
		narrow: slices.Concat(columnHidingSteps("DURATION"), columnAbbreviationStep("TIME", p.shortenTime), columnTruncationStep("CLIENT", 10), columnTruncationStep("TOOL", 24), columnTruncationStep("SERVER", 10),
			columnHidingSteps("CLIENT"), columnTruncationStep("DETAIL", 12), columnTruncationStep("TOOL", 12), columnTruncationStep("STATUS", 8), columnHidingSteps("INTENT", "SERVER", "DETAIL", "TIME")),
	}.write(p, page.Activities)
	if page.NextCursor != "" {
		p.addNote("%d of %d. For the next page, pass --cursor %s.", len(page.Activities), page.Total, page.NextCursor)
	}
}

// maxIDLength is the length of a complete ID.
const maxIDLength = 26

// uniqueIDLength returns the length at which the shortened IDs of all records differ, so that each can be used as an
// argument.
func uniqueIDLength(records []activity.Record) int {
	for n := minShortIDLength; n < maxIDLength; n++ {
		seen := map[string]bool{}
		for _, a := range records {
			seen[a.ID[:min(len(a.ID), n)]] = true
		}
		if len(seen) == len(records) {
			return n
		}
	}
	return maxIDLength
}

// intentCell returns the operation type with its icon, or "" if the record is not a call.
func intentCell(a activity.Record, noIcons bool) string {
	if a.Metadata.Intent == nil {
		return ""
	}
	return operationWithIcon(a.Metadata.Intent.OperationType, noIcons)
}

func operationWithIcon(word string, noIcons bool) string {
	if noIcons {
		return toOneLine(word)
	}
	switch word {
	case "read":
		return "○ read"
	case "write":
		return "✎ write"
	case "destructive":
		return "⚠ destr"
	}
	return toOneLine(word)
}

func formatActivityStatus(p *printer, s activity.Status) string {
	word := toOneLine(string(s))
	switch s {
	case activity.Success:
		return p.colorize(colorGood, word)
	case activity.Failed, activity.Interrupted:
		return p.colorize(colorBad, word)
	case activity.Blocked, activity.Pending, activity.Held:
		return p.colorize(colorWarning, word)
	}
	return word
}

// repeatCountText returns the number of refusals that a record represents, such as " ×3", or "" if it represents one.
func repeatCountText(a activity.Record) string {
	if a.Repeated < 2 {
		return ""
	}
	return fmt.Sprintf(" ×%d", a.Repeated)
}

// formatCallDuration formats the duration of a call.
func formatCallDuration(a activity.Record) string {
	switch {
	case a.Type != activity.ToolCall && a.DurationMS == 0, a.Status == activity.Pending, a.Status == activity.Interrupted, a.Status == activity.Held:
		return "-"
	case a.DurationMS < 10_000:
		return strconv.FormatInt(a.DurationMS, 10) + "ms"
	}
	return (time.Duration(a.DurationMS) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// formatProxyOverhead formats the time that MCPProxy added to the duration, if it is known.
func formatProxyOverhead(a activity.Record) string {
	if a.OwnUS == 0 {
		return ""
	}
	return (time.Duration(a.OwnUS) * time.Microsecond).String()
}

func writeActivityRecord(p *printer, a activity.Record, noIcons bool) {
	var f fieldList
	f.add("ID", toOneLine(a.ID))
	f.add("Type", toOneLine(string(a.Type)))
	f.add("Status", formatActivityStatus(p, a.Status))
	f.add("Time", a.Timestamp.In(p.timeZone).Format("2006-01-02 15:04:05.000 -07:00"))
	if a.Repeated > 1 && a.LastTime != nil {
		f.add("Repeated", fmt.Sprintf("%d times, the last at %s", a.Repeated, a.LastTime.In(p.timeZone).Format("2006-01-02 15:04:05.000 -07:00")))
	}
	f.add("Duration", formatCallDuration(a))
	f.add("Own time", formatProxyOverhead(a))
	f.add("Server", toOneLine(a.ServerName))
	f.add("Tool", toOneLine(a.ToolName))
	f.add("Action", toOneLine(a.Metadata.Action))
	f.add("Detail", toPrintable(a.Metadata.Detail))
	if done := a.Metadata.Redacted; done != nil {
		f.add("Erased", strings.Join(mapSlice(done.Fields, func(f activity.ErasableField) string { return toOneLine(string(f)) }), ", ")+" of "+toOneLine(done.ID))
	}
	f.add("Searched", formatSearchBeforeCall(a.Metadata.Search))
	f.add("Actor", toOneLine(a.Actor))
	f.add("Source", toOneLine(string(a.Source)))
	f.add("Client", toOneLine(a.ClientName+" "+a.ClientVersion))
	f.add("Session", toOneLine(a.SessionID))
	f.add("Request", toOneLine(a.RequestID))
	f.add("Parent", toOneLine(a.ParentID))
	f.write(p)
	writeIntentSection(p, a.Metadata, noIcons)
	writeDecisionSection(p, a.Metadata.Decision)
	if a.ErrorMessage != "" {
		fmt.Fprintf(p, "\nError %s\n", toOneLine(a.Metadata.ErrorCode))
		p.writeWrapped("  ", toPrintable(a.ErrorMessage))
	}
	if len(a.Erased) > 0 {
		fmt.Fprint(p, "\nErased\n")
		gone := fieldList{indent: "  "}
		for _, e := range a.Erased {
			gone.add(toOneLine(string(e.Field)), e.At.In(p.timeZone).Format("2006-01-02 15:04:05 -07:00"))
		}
		gone.write(p)
	}
	for i, warning := range a.Metadata.Warnings {
		if i == 0 {
			fmt.Fprint(p, "\nWarnings\n")
		}
		p.writeWrapped("  ", toPrintable(warning))
	}
	if len(a.Arguments) > 0 {
		fmt.Fprintf(p, "\nArguments\n%s\n", indentLines("  ", formatPrintableJSON(a.Arguments)))
	}
	if len(a.Response) > 0 {
		fmt.Fprintf(p, "\nResponse (%s)\n%s\n", responseSizeText(a), indentLines("  ", formatPrintableJSON(a.Response)))
	}
}

func writeIntentSection(p *printer, m activity.Metadata, noIcons bool) {
	if m.Intent == nil {
		return
	}
	fmt.Fprint(p, "\nIntent\n")
	f := fieldList{indent: "  "}
	word := toOneLine(m.Intent.OperationType)
	if icon, _, ok := strings.Cut(operationWithIcon(word, noIcons), " "); ok {
		word = icon + " " + word
	}
	f.add("Operation type", word)
	f.add("Variant", toOneLine(m.ToolVariant))
	f.add("Data sensitivity", toPrintable(cmp.Or(m.Intent.DataSensitivity, "(none given)")))
	f.add("Reason", toPrintable(cmp.Or(m.Intent.Reason, "(none given)")))
	f.add("Declared", oneLineJSON(m.Intent.Declared))
	f.write(p)
}

func writeDecisionSection(p *printer, d *activity.Decision) {
	if d == nil {
		return
	}
	fmt.Fprint(p, "\nDecision\n")
	f := fieldList{indent: "  "}
	f.add("Outcome", toOneLine(string(d.Outcome)))
	if d.Outcome == activity.Asked {
		f.add("Rule", toOneLine(d.Check))
	} else {
		f.add("Refused by", toOneLine(d.Check))
	}
	f.add("Approval", toOneLine(d.Approval))
	f.add("Alias", toOneLine(d.Alias))
	f.add("Called", toOneLine(map[activity.CallStyle]string{activity.CalledInLane: "in a lane", activity.CalledByName: "by its own name"}[d.Called]))
	f.add("Hints", formatHintsWithSources(d.Hints))
	f.add("Overridden", formatHintsWithSources(d.Overridden))
	f.add("Inferred", inferredOperationText(&d.DecisionFacts))
	f.add("Call with", toOneLine(d.CallWith))
	f.add("Tool status", toOneLine(strings.Join(slices.DeleteFunc(append([]string{d.Status}, d.Further...), func(s string) bool { return s == "" }), ", ")))
	f.add("Arguments", toOneLine(map[activity.SchemaFit]string{activity.ArgumentsFit: "fit the schema", activity.ArgumentsUnfit: "do not fit the schema"}[d.Arguments]))
	f.add("Definition", toOneLine(d.Fingerprint))
	if d.ApprovedAt != nil {
		f.add("Approved", d.ApprovedAt.In(p.timeZone).Format("2006-01-02 15:04:05 -07:00")+" by "+toOneLine(d.ApprovedBy))
	}
	f.add("Configuration", toOneLine(d.ConfigRevision))
	f.write(p)
}

// inferredOperationText describes the inferred operation of a tool without hints.
func inferredOperationText(j *tool.DecisionFacts) string {
	if j.Inferred == "" || !j.Unsure {
		return toOneLine(j.Inferred)
	}
	return toOneLine(j.Inferred) + " (inferred with low confidence)"
}

// formatHintsWithSources lists the hints with their sources.
func formatHintsWithSources(h *tool.JudgedHints) string {
	if h == nil {
		return ""
	}
	var said []string
	for _, hint := range []struct {
		name string
		fact *tool.HintFact
	}{{"read-only", h.ReadOnly}, {"destructive", h.Destructive}, {"idempotent", h.Idempotent}, {"open world", h.OpenWorld}} {
		if hint.fact == nil {
			continue
		}
		not := "not "
		if hint.fact.Value {
			not = ""
		}
		said = append(said, fmt.Sprintf("%s%s (%s)", not, hint.name, toOneLine(string(hint.fact.From))))
	}
	return strings.Join(said, ", ")
}

// formatSearchBeforeCall describes the search that preceded the call of the tool.
func formatSearchBeforeCall(s *activity.Search) string {
	switch {
	case s == nil:
		return ""
	case s.Rank == 0:
		return toOneLine(s.Query) + " (the results did not have this tool)"
	}
	return fmt.Sprintf("%s (rank %d)", toOneLine(s.Query), s.Rank)
}

func responseSizeText(a activity.Record) string {
	if a.ResponseTruncated {
		return formatByteSize(a.ResponseBytes) + ", only its beginning is kept"
	}
	return formatByteSize(a.ResponseBytes)
}
