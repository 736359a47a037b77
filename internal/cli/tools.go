package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

func newToolsListCommand(r *invocation) commandSpec {
	var f ops.ToolFilter
	return commandSpec{
		flags: map[string]any{"server": &f.Server, "operation": &f.Operation, "status": &f.Status},
		run: showResultRunFunc(r, func(ctx context.Context, c *api.Client, _ []string) (found toolList, err error) {
			if err := checkOperationType(f.Operation); err != nil {
				return found, err
			}
			found, err = fetchAllTools(ctx, c, ops.ToolQuery{ToolFilter: f, Detail: ops.Full})
			if err == nil && len(found.Tools) == 0 && f.Server != "" {
				err = checkServerExists(ctx, c, f.Server)
			}
			return found, err
		}, func(p *printer, found toolList) {
			writeToolTable(p, found.Tools)
			addUnhintedNotes(p, found.Unhinted)
		}),
	}
}

// checkOperationType rejects an invalid operation type.
func checkOperationType(word string) error {
	if _, ok := policy.ParseOperation(word); word != "" && !ok {
		return newUsageError("Invalid value '"+word+"' for --operation: must be read, write, or destructive", "")
	}
	return nil
}

// maxNamedServers limits the number of server names in an error.
const maxNamedServers = 10

// checkServerExists returns an error for an unknown server name, with the existing names.
func checkServerExists(ctx context.Context, c *api.Client, name string) error {
	all, err := api.ListServers.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return err
	}
	var names []string
	for _, s := range all.Servers {
		if s.Name == name {
			return nil
		}
		names = append(names, toOneLine(s.Name))
	}
	near := search.ClosestName(name, names)
	hint := "No server is configured. Add one with `mcpproxy upstream add`."
	if len(names) > maxNamedServers {
		names = append(names[:maxNamedServers], "…")
	}
	if len(names) > 0 {
		hint = "There are: " + strings.Join(names, ", ") + "."
	}
	if near != "" {
		hint = "Did you mean '" + near + "'? " + hint
	}
	return problem.Newf(problem.ServerNotFound, "Server '%s' not found", toOneLine(name)).WithHint(hint)
}

func writeToolTable(p *printer, tools []ops.ToolView) {
	list[ops.ToolView]{
		none: "No tool matches. See `mcpproxy upstream list` for the state of the servers.",
		name: func(v ops.ToolView) string { return v.Name },
		columns: []column[ops.ToolView]{
			{title: "TOOL", text: toolNameWithAlias},
			{title: "CALL WITH", text: func(v ops.ToolView) string { return v.CallWith }},
			{title: "STATUS", cell: toolStatusCell},
			{title: "HINTS", wide: true, text: func(v ops.ToolView) string { return string(v.Annotations) }},
			{title: "INFERRED", wide: true, text: func(v ops.ToolView) string { return v.InferredOperation }},
			{title: "DESCRIPTION", text: descriptionSummary},
		},
		narrow: slices.Concat(columnTruncationStep("DESCRIPTION", 30), columnAbbreviationStep("CALL WITH", laneOfVariant), columnTruncationStep("DESCRIPTION", 20), columnHidingSteps("DESCRIPTION"),
			columnTruncationStep("TOOL", 24), columnTruncationStep("STATUS", 10), columnHidingSteps("CALL WITH"), columnTruncationStep("TOOL", 8)),
	}.write(p, tools)
}

// toolStatusCell returns the status of a tool for a table or a list of fields.
func toolStatusCell(p *printer, v ops.ToolView) string { return formatToolStatus(p, v.Status) }

// toolNameWithAlias returns the name of a tool, and the user's name for it if there is one.
func toolNameWithAlias(v ops.ToolView) string {
	if v.Settings == nil || v.Settings.Alias == "" {
		return v.Name
	}
	return v.Name + " (" + v.Settings.Alias + ")"
}

// laneOfVariant returns the lane of a call_tool variant, such as read for call_tool_read.
func laneOfVariant(variant string) string { return strings.TrimPrefix(variant, "call_tool_") }

// descriptionSummary returns the first line of a description.
func descriptionSummary(v ops.ToolView) string {
	return firstLine(strings.TrimSpace(cmp.Or(v.Description, v.Title)))
}

func newToolsSearchCommand(r *invocation) commandSpec {
	var q ops.SearchQuery
	return commandSpec{
		list:  true,
		flags: map[string]any{"limit": &boundedIntFlag{&q.Limit, 100}, "operation": &q.Operation, "explain": &q.Explain},
		args: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, "")) == "" {
				return newUsageError("Missing argument: words.", "Usage: `"+cmd.UseLine()+"`.")
			}
			return nil
		},
		run: showResultRunFunc(r, func(ctx context.Context, c *api.Client, args []string) (found searchOutput, err error) {
			q.Query = strings.Join(args, " ")
			if err := checkOperationType(q.Operation); err != nil {
				return found, err
			}
			a, err := api.SearchTools.Call(ctx, c, q)
			if err != nil {
				return found, err
			}
			found = toSearchOutput(a)
			if status, err := api.GetStatus.Call(ctx, c, ops.Nothing{}); err == nil { // the hits are shown in any case
				found.addNotReady(status.Servers.NotReady)
			}
			return found, nil
		}, writeFoundTools),
	}
}

// searchOutput is the output of a search.
type searchOutput struct {
	Query    string         `json:"query"`
	Total    int            `json:"total"`
	Tools    []ops.ToolView `json:"tools"`
	NotReady []ops.NotReady `json:"not_ready,omitempty"`
}

func toSearchOutput(a ops.SearchAnswer) searchOutput {
	f := searchOutput{Query: a.Query, Total: a.Total, Tools: make([]ops.ToolView, 0, len(a.Tools))}
	for _, t := range a.Tools {
		f.Tools = append(f.Tools, t.ToolView)
	}
	return f
}

// addNotReady adds the servers that are not ready and may have more tools, as retrieve_tools names them: those that the query or a found tool names;
// if nothing was found, all.
func (f *searchOutput) addNotReady(all []ops.NotReady) {
	mentioned := search.NewNameMatcher(f.Query)
	for _, s := range all {
		if len(f.Tools) == 0 || mentioned(s.Name) || slices.ContainsFunc(f.Tools, func(t ops.ToolView) bool { return t.Server == s.Name }) {
			f.NotReady = append(f.NotReady, s)
		}
	}
}

// noteNotReady names the servers that are not ready, with their progress.
func (f *searchOutput) noteNotReady(p *printer) {
	var names []string
	for _, s := range f.NotReady {
		if len(names) == maxNamedServers {
			names = append(names, "…")
			break
		}
		names = append(names, toOneLine(s.Name)+" ("+toOneLine(cmp.Or(s.Detail, s.State))+")")
	}
	if len(names) > 0 {
		p.addNote("Some tools may be missing, because these servers are not ready yet: %s.", strings.Join(names, ", "))
	}
}

func writeFoundTools(p *printer, found searchOutput) {
	none := "No callable tool matches. Try other words, or `mcpproxy tools list`."
	if len(found.NotReady) > 0 {
		none = "No callable tool of the servers that are ready matches. Search again when the others are ready. To see their state, run `mcpproxy upstream list`."
	}
	list[ops.ToolView]{
		none: none,
		name: func(v ops.ToolView) string { return v.Name },
		columns: []column[ops.ToolView]{
			{title: "SCORE", text: func(v ops.ToolView) string { return fmt.Sprintf("%.2f", v.Score) }},
			{title: "TOOL", text: toolNameWithAlias},
			{title: "CALL WITH", text: func(v ops.ToolView) string { return v.CallWith }},
			{title: "DESCRIPTION", text: descriptionSummary},
		},
		narrow: slices.Concat(columnTruncationStep("DESCRIPTION", 30), columnAbbreviationStep("CALL WITH", laneOfVariant), columnHidingSteps("SCORE"), columnTruncationStep("DESCRIPTION", 20), columnHidingSteps("DESCRIPTION"),
			columnTruncationStep("TOOL", 24), columnHidingSteps("CALL WITH"), columnTruncationStep("TOOL", 8)),
	}.write(p, found.Tools)
	if p.quiet && len(found.Tools) > 0 {
		return
	}
	found.noteNotReady(p)
	writeMatchReasons(p, found.Tools)
	if found.Total > len(found.Tools) {
		p.addNote("%d of %d matches. For more, pass --limit.", len(found.Tools), found.Total)
	}
}

// writeMatchReasons writes the reasons why each tool was found, if they were requested.
func writeMatchReasons(p *printer, tools []ops.ToolView) {
	for _, v := range tools {
		if len(v.Why) == 0 {
			continue
		}
		fmt.Fprintf(p, "\n%s\n", toOneLine(v.Name))
		t := table{p: p, header: []string{"  QUERY", "FOUND", "MATCH", "FIELD", "SHARE"}, narrowingSteps: slices.Concat(
			columnTruncationStep("FOUND", 16), columnTruncationStep("  QUERY", 16), columnTruncationStep("FIELD", 8), columnHidingSteps("FIELD", "SHARE"), columnTruncationStep("FOUND", 8), columnTruncationStep("  QUERY", 8))}
		for _, why := range v.Why {
			share := ""
			if why.Share > 0 {
				share = fmt.Sprintf("%.0f %%", why.Share*100)
			}
			t.addRow("  "+toOneLine(why.Asked), toOneLine(strings.Join(why.Found, " ")), toOneLine(why.How), toOneLine(strings.Join(why.Fields, " ")), share)
		}
		t.write()
	}
}

func writeToolDetail(p *printer, d ops.ToolDetail) {
	v := d.ToolView
	var f fieldList
	f.add("Tool", toOneLine(v.Name))
	f.add("Title", toOneLine(v.Title))
	f.add("Status", toolStatusCell(p, v))
	if v.Status == ops.ForClients {
		f.add("", "available only to clients that support sampling, elicitation or roots, on /mcp/servers/"+toOneLine(v.Server))
	}
	addToolSettingFields(&f, v)
	f.add("Call with", toOneLine(v.CallWith))
	f.add("Hints", oneLineJSON(v.Annotations))
	f.add("Declared hints", oneLineJSON(v.DeclaredAnnotations))
	if v.InferredOperation != "" {
		f.add("Inferred", toOneLine(v.InferredOperation+": "+v.InferredReason))
	}
	addApprovalFields(p, &f, v.Trust)
	f.write(p)
	if text := strings.TrimSpace(toPrintable(v.Description)); text != "" {
		heading := "Description"
		if s := v.Settings; s != nil && s.Description+s.AddDescription != "" {
			heading = "Description for agents, with your text"
		}
		fmt.Fprintf(p, "\n%s\n", heading)
		p.writeWrapped("  ", text)
	}
	if text := strings.TrimSpace(toPrintable(v.DeclaredDescription)); text != "" {
		fmt.Fprint(p, "\nServer's description\n")
		p.writeWrapped("  ", text)
	}
	for _, part := range []struct {
		name   string
		schema []byte
	}{{"Input schema", v.InputSchema}, {"Output schema", v.OutputSchema}} {
		if len(part.schema) > 0 {
			fmt.Fprintf(p, "\n%s\n%s\n", part.name, indentLines("  ", formatPrintableJSON(part.schema)))
		}
	}
}

// oneLineJSON returns JSON made printable, on one line.
func oneLineJSON(raw []byte) string { return toOneLine(string(raw)) }

// toolList contains the tools that a filter selects.
type toolList struct {
	Tools    []ops.ToolView `json:"tools"`
	Total    int            `json:"total"`
	Unhinted []ops.Unhinted `json:"unhinted,omitempty"`
}

// The page size, and the number of times that the list is restarted after the daemon has dropped it.
const (
	toolsPageSize  = 1000
	maxListRetries = 3
)

// fetchAllTools requests all pages of a tool list from one snapshot.
func fetchAllTools(ctx context.Context, c *api.Client, q ops.ToolQuery) (toolList, error) {
	q.Limit = toolsPageSize
	for range maxListRetries {
		all := toolList{Tools: []ops.ToolView{}}
		for q.Offset, q.Snapshot = 0, ""; ; q.Offset = len(all.Tools) {
			page, err := api.ListTools.Call(ctx, c, q)
			if err != nil {
				return toolList{}, err
			}
			if q.Offset > 0 && page.Snapshot != q.Snapshot {
				break
			}
			for i := range page.Tools {
				all.Tools = append(all.Tools, page.Tools[i].ToToolView())
			}
			q.Snapshot = page.Snapshot
			if len(page.Tools) == 0 || len(all.Tools) >= page.Total {
				all.Total, all.Unhinted = page.Total, page.Unhinted
				return all, nil
			}
		}
	}
	return toolList{}, problem.New(problem.Conflict, "The list of tools expired while it was read.", "Too many lists are being read at the same time. Try again.")
}

func newToolsSetCommand(r *invocation) commandSpec {
	var given ops.ToolSettings
	var changes []config.ToolSettingChange
	return commandSpec{
		flags: map[string]any{"alias": &given.Alias, "description": &given.Description, "add-description": &given.AddDescription, "always": &given.Always},
		args: func(cmd *cobra.Command, args []string) error {
			for _, one := range []struct {
				flag, key string
				value     any
			}{
				{"alias", "alias", given.Alias}, {"description", "description", given.Description},
				{"add-description", "add_description", given.AddDescription}, {"always", "always", given.Always},
			} {
				if !cmd.Flags().Changed(one.flag) {
					continue
				}
				change := config.ToolSettingChange{Key: one.key}
				if one.value != "" && one.value != false { // else the setting is removed
					value, err := wirejson.MarshalWithoutHTMLEscape(one.value)
					if err != nil {
						return err
					}
					change.Value = value
				}
				changes = append(changes, change)
			}
			if len(changes) == 0 {
				return newUsageError("Nothing to set: pass --alias, --description, --add-description or --always.", "Usage: `"+cmd.UseLine()+"`.")
			}
			return exactArguments("server:tool")(cmd, args)
		},
		run: operationRunFunc(r, api.ChangeTool, func(ctx context.Context, c *api.Client, args []string) (api.ToolChange, error) {
			id, err := parseToolID(args[0])
			return api.ToolChange{ToolChange: ops.ToolChange{ToolRef: ops.ToolRef(id), Changes: changes}}, err
		}, writeToolSettings),
	}
}

func writeToolSettings(p *printer, v ops.ToolView) {
	if v.Settings == nil {
		p.writeLine("%s has the server's name and description.", toOneLine(v.Name))
		return
	}
	var f fieldList
	f.add("Tool", toOneLine(v.Name))
	addToolSettingFields(&f, v)
	f.add("Your description", toOneLine(v.Settings.Description))
	f.add("You added", toOneLine(v.Settings.AddDescription))
	f.write(p)
}

// addToolSettingFields adds the user's settings for a tool, marked as such.
func addToolSettingFields(f *fieldList, v ops.ToolView) {
	if v.ShadowedBy != "" {
		f.add("Hidden", "its name is the alias of "+toOneLine(v.ShadowedBy)+"; available only on /mcp/servers/"+toOneLine(v.Server))
	}
	s := v.Settings
	if s == nil {
		return
	}
	f.add("Your alias", toOneLine(s.Alias))
	if s.Always {
		f.add("Always", "first in each answer of retrieve_tools")
	}
}

// maxStatsRows is the maximum number of rows of a table; -o json has no such limit.
const maxStatsRows = 20

func newToolsStatsCommand(r *invocation) commandSpec {
	var since string
	return commandSpec{flags: map[string]any{"since": &since}, run: operationRunFunc(r, api.GetToolStats, func(_ context.Context, _ *api.Client, _ []string) (in ops.StatsQuery, err error) {
		in.Since, err = r.parseTimeFlag("--since", since)
		return in, err
	}, writeToolStats)}
}

func writeToolStats(p *printer, s ops.ToolStats) {
	if s.Calls == 0 {
		p.addNote("No tool was called in this period.")
		return
	}
	var f fieldList
	f.add("Since", s.Since.In(p.timeZone).Format("2006-01-02 15:04"))
	f.add("Calls", fmt.Sprint(s.Calls))
	f.add("Searches", fmt.Sprintf("%d followed by calls", s.Searches))
	if s.Searches > 0 {
		f.add("Found at rank 1", formatFractionAsPercent(s.Recall1))
		f.add("Rank up to 3, 5, 10", strings.Join([]string{formatFractionAsPercent(s.Recall3), formatFractionAsPercent(s.Recall5), formatFractionAsPercent(s.Recall10)}, ", "))
		f.add("MRR", fmt.Sprintf("%.2f", s.MRR))
		f.add("Missed", fmt.Sprint(s.Missed))
	}
	f.add("Never called", fmt.Sprintf("%d callable tools", s.DeadAll))
	f.write(p)
	fmt.Fprintln(p)
	t := table{p: p, header: []string{"TOOL", "CALLS", "FOUND", "MISSED", "MEAN RANK", "LAST CALL"}, narrowingSteps: slices.Concat(
		columnHidingSteps("MEAN RANK", "MISSED"), columnTruncationStep("TOOL", 24), columnHidingSteps("FOUND", "LAST CALL"), columnTruncationStep("TOOL", 8))}
	for _, u := range s.Tools[:min(len(s.Tools), maxStatsRows)] {
		place := ""
		if u.Found > 0 {
			place = fmt.Sprintf("%.1f", u.Rank)
		}
		t.addRow(toOneLine(u.Name), fmt.Sprint(u.Calls), fmt.Sprint(u.Found), fmt.Sprint(u.Missed), place, u.Last.In(p.timeZone).Format("2006-01-02 15:04"))
	}
	t.write()
	if len(s.Dead) > 0 {
		fmt.Fprint(p, "\nNever called\n")
	}
	for _, name := range s.Dead[:min(len(s.Dead), maxStatsRows)] {
		p.writeWrapped("  ", toOneLine(name))
	}
	if s.Cut {
		p.addNote("Only the latest %d calls were read.", s.Calls)
	}
	if len(s.Tools) > maxStatsRows || len(s.Dead) > maxStatsRows {
		p.addNote("Each list shows at most %d entries. For more, pass -o json.", maxStatsRows)
	}
}

func formatFractionAsPercent(part float64) string { return fmt.Sprintf("%.0f %%", part*100) }
