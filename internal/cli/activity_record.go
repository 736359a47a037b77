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

// minID is the minimum length of an id in a table: the ten characters of a ULID that encode its time, which usually identify one record.
const minID = 10

func writeActivities(p *printer, page ops.ActivityList, noIcons bool) {
	if page.Incomplete {
		p.note("The newest records are missing: the database cannot take them at this time, see `mcpproxy status`.")
	}
	if len(page.Activities) == 0 {
		p.note("No record fits.")
		return
	}
	short := shortIDs(mapStrings(page.Activities, func(a activity.Record) string { return a.ID }))
	t := table{p: p, header: []string{"ID", "TIME", "SERVER", "TOOL", "INTENT", "STATUS", "DURATION", "CLIENT", "WHAT"}, narrow: slices.Concat(
		leaveOut("DURATION"), brief("TIME", p.clock), shorten("CLIENT", 10), shorten("TOOL", 24), shorten("SERVER", 10),
		leaveOut("CLIENT"), shorten("ID", 12), shorten("WHAT", 12), shorten("TOOL", 12), shorten("STATUS", 8),
		leaveOut("INTENT", "SERVER", "WHAT", "TIME"))}
	for i, a := range page.Activities {
		t.add(oneLine(short[i]), p.moment(&a.Timestamp), dashIfEmpty(oneLine(a.ServerName)), dashIfEmpty(oneLine(a.ToolName)),
			dashIfEmpty(intentCell(a, noIcons)), status(p, a.Status)+timesNote(a), duration(a), oneLine(a.ClientName), eventCell(a))
	}
	t.write()
	if page.NextCursor != "" {
		p.note("%d of %d; the next page: --cursor %s", len(page.Activities), page.Total, page.NextCursor)
	}
}

// shortIDs cuts each id to a prefix that no other has.
func shortIDs(ids []string) []string {
	sorted := slices.Sorted(slices.Values(ids))
	needed := map[string]int{}
	for i, id := range sorted {
		n := minID
		if i > 0 {
			n = max(n, commonPrefix(id, sorted[i-1])+1)
		}
		if i+1 < len(sorted) {
			n = max(n, commonPrefix(id, sorted[i+1])+1)
		}
		needed[id] = n
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id
		if n := needed[id]; n < len(id)-1 {
			out[i] = id[:n] + "…"
		}
	}
	return out
}

// commonPrefix returns the length of the common prefix of a and b.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// intentCell returns the operation type with its icon; "" for a record that is no call.
func intentCell(a activity.Record, noIcons bool) string {
	if a.Metadata.Intent == nil {
		return ""
	}
	return operation(a.Metadata.Intent.OperationType, noIcons)
}

// eventCell returns the action of a record, or the code of a refusal or failure.
func eventCell(a activity.Record) string {
	return oneLine(cmp.Or(a.Metadata.Action, a.Metadata.ErrorCode))
}

func operation(word string, noIcons bool) string {
	if noIcons {
		return oneLine(word)
	}
	switch word {
	case "read":
		return "○ read"
	case "write":
		return "✎ write"
	case "destructive":
		return "⚠ destr"
	}
	return oneLine(word)
}

func status(p *printer, s activity.Status) string {
	word := oneLine(string(s))
	switch s {
	case activity.Success:
		return p.paint(hueGood, word)
	case activity.Failed, activity.Interrupted:
		return p.paint(hueBad, word)
	case activity.Blocked, activity.Pending, activity.Held:
		return p.paint(hueWarning, word)
	}
	return word
}

// timesNote returns how many refusals a record stands for.
func timesNote(a activity.Record) string {
	if a.Repeated < 2 {
		return ""
	}
	return fmt.Sprintf(" ×%d", a.Repeated)
}

// duration formats how long a call took.
func duration(a activity.Record) string {
	switch {
	case a.Type != activity.ToolCall && a.DurationMS == 0, a.Status == activity.Pending, a.Status == activity.Interrupted, a.Status == activity.Held:
		return "-"
	case a.DurationMS < 10_000:
		return strconv.FormatInt(a.DurationMS, 10) + "ms"
	}
	return (time.Duration(a.DurationMS) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// ownTime formats MCPProxy's own part of the duration, if known.
func ownTime(a activity.Record) string {
	if a.OwnUS == 0 {
		return ""
	}
	return (time.Duration(a.OwnUS) * time.Microsecond).String()
}

func writeRecord(p *printer, a activity.Record, noIcons bool) {
	var f fields
	f.add("ID", oneLine(a.ID))
	f.add("Type", oneLine(string(a.Type)))
	f.add("Status", status(p, a.Status))
	f.add("Time", a.Timestamp.In(p.local).Format("2006-01-02 15:04:05.000 -07:00"))
	if a.Repeated > 1 && a.LastTime != nil {
		f.add("Repeated", fmt.Sprintf("%d times, the last at %s", a.Repeated, a.LastTime.In(p.local).Format("2006-01-02 15:04:05.000 -07:00")))
	}
	f.add("Duration", duration(a))
	f.add("Own time", ownTime(a))
	f.add("Server", oneLine(a.ServerName))
	f.add("Tool", oneLine(a.ToolName))
	f.add("Action", oneLine(a.Metadata.Action))
	f.add("Detail", printable(a.Metadata.Detail))
	if done := a.Metadata.Redacted; done != nil {
		f.add("Erased", strings.Join(mapStrings(done.Fields, func(f activity.ErasableField) string { return oneLine(string(f)) }), ", ")+" of "+oneLine(done.ID))
	}
	f.add("Searched", searchedFor(a.Metadata.Search))
	f.add("Actor", oneLine(a.Actor))
	f.add("Source", oneLine(string(a.Source)))
	f.add("Client", oneLine(a.ClientName+" "+a.ClientVersion))
	f.add("Session", oneLine(a.SessionID))
	f.add("Request", oneLine(a.RequestID))
	f.add("Parent", oneLine(a.ParentID))
	f.write(p)
	writeIntent(p, a.Metadata, noIcons)
	writeDecision(p, a.Metadata.Decision)
	if a.ErrorMessage != "" {
		fmt.Fprintf(p, "\nError %s\n", oneLine(a.Metadata.ErrorCode))
		p.text("  ", printable(a.ErrorMessage))
	}
	if len(a.Erased) > 0 {
		fmt.Fprint(p, "\nErased\n")
		gone := fields{indent: "  "}
		for _, e := range a.Erased {
			gone.add(oneLine(string(e.Field)), e.At.In(p.local).Format("2006-01-02 15:04:05 -07:00"))
		}
		gone.write(p)
	}
	for i, warning := range a.Metadata.Warnings {
		if i == 0 {
			fmt.Fprint(p, "\nWarnings\n")
		}
		p.text("  ", printable(warning))
	}
	if len(a.Arguments) > 0 {
		fmt.Fprintf(p, "\nArguments\n%s\n", indentBy("  ", prettyJSON(a.Arguments)))
	}
	if len(a.Response) > 0 {
		fmt.Fprintf(p, "\nResponse (%s)\n%s\n", responseNote(a), indentBy("  ", prettyJSON(a.Response)))
	}
}

func writeIntent(p *printer, m activity.Metadata, noIcons bool) {
	if m.Intent == nil {
		return
	}
	fmt.Fprint(p, "\nIntent\n")
	f := fields{indent: "  "}
	word := oneLine(m.Intent.OperationType)
	if icon, _, ok := strings.Cut(operation(word, noIcons), " "); ok {
		word = icon + " " + word
	}
	f.add("Operation type", word)
	f.add("Variant", oneLine(m.ToolVariant))
	f.add("Data sensitivity", orNone(m.Intent.DataSensitivity))
	f.add("Reason", orNone(m.Intent.Reason))
	f.add("Declared", compactJSON(m.Intent.Declared))
	f.write(p)
}

func writeDecision(p *printer, d *activity.Decision) {
	if d == nil {
		return
	}
	fmt.Fprint(p, "\nDecision\n")
	f := fields{indent: "  "}
	f.add("Outcome", oneLine(string(d.Outcome)))
	if d.Outcome == activity.Asked {
		f.add("Asked by", oneLine(d.Check))
	} else {
		f.add("Refused by", oneLine(d.Check))
	}
	f.add("Approval", oneLine(d.Approval))
	f.add("Called", oneLine(map[activity.CallStyle]string{activity.CalledInLane: "in a lane", activity.CalledByName: "by its own name"}[d.Called]))
	f.add("Hints", judgedHints(d.Hints))
	f.add("Overridden", judgedHints(d.Overridden))
	f.add("Seems to", inferredNote(&d.DecisionFacts))
	f.add("Call with", oneLine(d.CallWith))
	f.add("Tool status", oneLine(strings.Join(slices.DeleteFunc(append([]string{d.Status}, d.Further...), func(s string) bool { return s == "" }), ", ")))
	f.add("Arguments", oneLine(map[activity.SchemaFit]string{activity.ArgumentsFit: "fit the schema", activity.ArgumentsUnfit: "do not fit the schema"}[d.Arguments]))
	f.add("Definition", oneLine(d.Fingerprint))
	if d.ApprovedAt != nil {
		f.add("Approved", d.ApprovedAt.In(p.local).Format("2006-01-02 15:04:05 -07:00")+" by "+oneLine(d.ApprovedBy))
	}
	f.add("Configuration", oneLine(d.ConfigRevision))
	f.write(p)
}

// inferredNote describes the inferred operation of a tool without hints.
func inferredNote(j *tool.DecisionFacts) string {
	if j.Inferred == "" || !j.Unsure {
		return oneLine(j.Inferred)
	}
	return oneLine(j.Inferred) + " (a careful guess)"
}

// judgedHints lists the hints with their sources.
func judgedHints(h *tool.JudgedHints) string {
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
		said = append(said, fmt.Sprintf("%s%s (%s)", not, hint.name, oneLine(string(hint.fact.From))))
	}
	return strings.Join(said, ", ")
}

// searchedFor describes the search that found the tool.
func searchedFor(s *activity.Search) string {
	switch {
	case s == nil:
		return ""
	case s.Rank == 0:
		return oneLine(s.Query) + " (the answers had not this tool)"
	}
	return fmt.Sprintf("%s (place %d)", oneLine(s.Query), s.Rank)
}

func orNone(s string) string {
	if s == "" {
		return "(none given)"
	}
	return printable(s)
}

func responseNote(a activity.Record) string {
	if a.ResponseTruncated {
		return size(a.ResponseBytes) + ", only its beginning is kept"
	}
	return size(a.ResponseBytes)
}
