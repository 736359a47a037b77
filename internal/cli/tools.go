package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

func toolsList(r *run) command {
	var f ops.ToolFilter
	return command{
		flags: map[string]any{"server": &f.Server, "operation": &f.Operation, "status": &f.Status},
		run: r.withClient(func(ctx context.Context, c *api.Client, _ []string) error {
			if err := checkOperation(f.Operation); err != nil {
				return err
			}
			found, err := allTools(ctx, c, ops.ToolQuery{ToolFilter: f, Detail: ops.Full})
			if err != nil {
				return err
			}
			if len(found.Tools) == 0 && f.Server != "" {
				if err := checkServerExists(ctx, c, f.Server); err != nil {
					return err
				}
			}
			return r.print(found, func(p *printer) {
				writeTools(p, found.Tools)
				noteUnhinted(p, found.Unhinted)
			})
		}),
	}
}

// checkOperation rejects an invalid operation type.
func checkOperation(word string) error {
	if _, ok := policy.ParseOperation(word); word != "" && !ok {
		return usage("Invalid value '"+word+"' for --operation: must be read, write, or destructive", "")
	}
	return nil
}

// maxNamedServers limits the server names in an error.
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
		names = append(names, oneLine(s.Name))
	}
	hint := "There are none: add one with `mcpproxy upstream add`."
	if len(names) > maxNamedServers {
		names = append(names[:maxNamedServers], "…")
	}
	if len(names) > 0 {
		hint = "There are: " + strings.Join(names, ", ") + "."
	}
	return problem.Newf(problem.ServerNotFound, "Server '%s' not found", oneLine(name)).WithHint(hint)
}

func writeTools(p *printer, tools []ops.ToolView) {
	if len(tools) == 0 {
		p.note("No tool fits. See `mcpproxy upstream list` for the state of the servers.")
		return
	}
	t := table{p: p, header: []string{"TOOL", "CALL WITH", "STATUS", "DESCRIPTION"}, narrow: slices.Concat(
		shorten("DESCRIPTION", 30), brief("CALL WITH", lane), shorten("DESCRIPTION", 20), leaveOut("DESCRIPTION"), shorten("TOOL", 24), shorten("STATUS", 10), leaveOut("CALL WITH"), shorten("TOOL", 8))}
	for _, v := range tools {
		t.add(oneLine(v.Name), oneLine(v.CallWith), toolStatus(p, v), summary(v))
	}
	t.write()
}

func toolStatus(p *printer, v ops.ToolView) string { return statusWord(p, v.Status) }

// lane returns the operation of a variant.
func lane(variant string) string { return strings.TrimPrefix(variant, "call_tool_") }

// summary returns the first line of a description.
func summary(v ops.ToolView) string {
	text := v.Description
	if text == "" {
		text = v.Title
	}
	return oneLine(firstLine(strings.TrimSpace(text)))
}

func toolsSearch(r *run) command {
	var q ops.SearchQuery
	return command{
		flags: map[string]any{"limit": &atMostFlag{&q.Limit, 100}, "operation": &q.Operation, "explain": &q.Explain},
		args: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, "")) == "" {
				return usage("Missing argument: words.", "Usage: `"+cmd.UseLine()+"`.")
			}
			return nil
		},
		run: runOperationAs(r, api.SearchTools, func(args []string) (ops.SearchQuery, error) {
			q.Query = strings.Join(args, " ")
			return q, checkOperation(q.Operation)
		}, plainSearch, writeFoundTools),
	}
}

// searchOutput is the output of a search.
type searchOutput struct {
	Query string         `json:"query"`
	Total int            `json:"total"`
	Tools []ops.ToolView `json:"tools"`
}

func plainSearch(a ops.SearchAnswer) searchOutput {
	f := searchOutput{a.Query, a.Total, make([]ops.ToolView, 0, len(a.Tools))}
	for _, t := range a.Tools {
		f.Tools = append(f.Tools, t.ToolView)
	}
	return f
}

func writeFoundTools(p *printer, found searchOutput) {
	if len(found.Tools) == 0 {
		p.note("No callable tool fits. Try other words, or `mcpproxy tools list`.")
		return
	}
	t := table{p: p, header: []string{"SCORE", "TOOL", "CALL WITH", "DESCRIPTION"}, narrow: slices.Concat(
		shorten("DESCRIPTION", 30), brief("CALL WITH", lane), leaveOut("SCORE"), shorten("DESCRIPTION", 20), leaveOut("DESCRIPTION"), shorten("TOOL", 24), leaveOut("CALL WITH"), shorten("TOOL", 8))}
	for _, v := range found.Tools {
		t.add(fmt.Sprintf("%.2f", v.Score), oneLine(v.Name), oneLine(v.CallWith), summary(v))
	}
	t.write()
	writeReasons(p, found.Tools)
	if found.Total > len(found.Tools) {
		p.note("%d of %d that fit; --limit shows more.", len(found.Tools), found.Total)
	}
}

// writeReasons writes for each tool why it was found, if requested.
func writeReasons(p *printer, tools []ops.ToolView) {
	for _, v := range tools {
		if len(v.Why) == 0 {
			continue
		}
		fmt.Fprintf(p, "\n%s\n", oneLine(v.Name))
		t := table{p: p, header: []string{"  ASKED", "FOUND", "HOW", "IN", "SHARE"}, narrow: slices.Concat(
			shorten("FOUND", 16), shorten("  ASKED", 16), shorten("IN", 8), leaveOut("IN", "SHARE"), shorten("FOUND", 8), shorten("  ASKED", 8))}
		for _, why := range v.Why {
			share := ""
			if why.Share > 0 {
				share = fmt.Sprintf("%.0f %%", why.Share*100)
			}
			t.add("  "+oneLine(why.Asked), oneLine(strings.Join(why.Found, " ")), oneLine(why.How), oneLine(strings.Join(why.Fields, " ")), share)
		}
		t.write()
	}
}

func writeTool(p *printer, d ops.ToolDetail) {
	v := d.ToolView
	var f fields
	f.add("Tool", oneLine(v.Name))
	f.add("Title", oneLine(v.Title))
	f.add("Status", toolStatus(p, v))
	if v.Status == ops.ForClients {
		f.add("", "only clients that can be asked something have it, on /mcp/servers/"+oneLine(v.Server))
	}
	f.add("Call with", oneLine(v.CallWith))
	f.add("Hints", compactJSON(v.Annotations))
	f.add("Declared hints", compactJSON(v.DeclaredAnnotations))
	if v.InferredOperation != "" {
		f.add("Inferred", oneLine(v.InferredOperation+": "+v.InferredReason))
	}
	addTrust(p, &f, v.Trust)
	f.write(p)
	if text := strings.TrimSpace(printable(v.Description)); text != "" {
		fmt.Fprint(p, "\nDescription\n")
		p.text("  ", text)
	}
	for _, part := range []struct {
		name   string
		schema []byte
	}{{"Input schema", v.InputSchema}, {"Output schema", v.OutputSchema}} {
		if len(part.schema) > 0 {
			fmt.Fprintf(p, "\n%s\n%s\n", part.name, indentBy("  ", prettyJSON(part.schema)))
		}
	}
}

func compactJSON(raw []byte) string { return oneLine(string(raw)) }
