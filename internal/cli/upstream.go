package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// toServerViews removes from the servers what `upstream list` does not show.
func toServerViews(all ops.ServerList) ops.ServerViews {
	list := ops.ServerViews{Servers: make([]ops.ServerView, 0, len(all.Servers))}
	for _, s := range all.Servers {
		list.Servers = append(list.Servers, s.ServerView)
	}
	return list
}

func toServerView(s ops.ServerDetail) ops.ServerView { return s.ServerView }

func writeServerTable(p *printer, all ops.ServerViews) {
	if len(all.Servers) == 0 {
		p.addNote("No server is configured. Add one with `mcpproxy upstream add`, or under mcpServers in the file that `mcpproxy config path` names.")
		return
	}
	t := table{p: p, header: []string{"NAME", "PROTOCOL", "STATE", "TOOLS", "NOTE"}, rightAligned: map[int]bool{3: true}, narrowingSteps: slices.Concat(
		columnHidingSteps("PROTOCOL"), addNoteToSteps("The whole note: `mcpproxy upstream get NAME`.", columnTruncationStep("NOTE", 24)),
		columnTruncationStep("NAME", 16), columnHidingSteps("TOOLS", "NOTE"), columnTruncationStep("NAME", 8))}
	for _, s := range all.Servers {
		note := strings.TrimPrefix(s.Detail, "failed, ")
		switch {
		case s.NeedsLogin:
			note = loginCommandText(s)
		case s.Enabled && s.Quarantined:
			note = approveCommandText(s)
		case s.State == "ready" && waitingPrimitivesText(s) != "":
			note = waitingPrimitivesText(s)
		case s.Hint != "":
			note = "never started: mcpproxy upstream restart " + s.Name
		}
		t.addRow(toOneLine(s.Name), toOneLine(s.Protocol), formatServerState(p, s), formatToolCount(s), toOneLine(note))
	}
	t.write()
}

// loginCommandText returns the command that logs in to a server.
func loginCommandText(s ops.ServerView) string { return "mcpproxy upstream login " + s.Name }

// approveCommandText returns the command that approves a server.
func approveCommandText(s ops.ServerView) string {
	return "mcpproxy upstream approve " + shellQuoteWord(s.Name)
}

// formatToolCount formats the number of tools, and of callable tools if they differ.
func formatToolCount(s ops.ServerView) string {
	if s.Tools == nil {
		return strconv.Itoa(s.ToolCount)
	}
	return fmt.Sprintf("%d/%d", s.Tools[policy.Callable], s.ToolCount)
}

func writeServerDetail(p *printer, s ops.ServerView) {
	var f fieldList
	f.add("Name", toOneLine(s.Name))
	f.add("State", formatServerState(p, s))
	f.add("Review", reviewStageText(s.Stage))
	f.add("Proposed by", toOneLine(s.ProposedBy))
	f.add("Trust", toOneLine(s.Trust))
	if s.Lazy {
		f.add("Lazy", "not started before its first call")
	}
	if s.Session != "" {
		f.add("Session", "shared by its clients")
	}
	f.add("Since", p.formatTime(s.Since))
	if s.LastError == "" || s.State != "failed" {
		f.add("", toOneLine(s.Detail))
	}
	f.add("Next try", p.formatTime(s.RetryAt))
	f.add("Last error", formatLastError(p, s))
	switch {
	case s.NeedsLogin:
		f.add("Remedy", toOneLine(loginCommandText(s)))
	case s.Enabled && s.Quarantined:
		f.add("Remedy", toOneLine(approveCommandText(s)))
	}
	f.add("Protocol", toOneLine(s.Protocol))
	f.add("MCP revision", toOneLine(s.ProtocolVersion))
	if s.Command != "" {
		f.add("Command", shellQuoteWords(append([]string{s.Command}, s.Args...)...))
	}
	f.add("URL", toOneLine(s.URL))
	if s.PID != 0 {
		f.add("Process", strconv.Itoa(s.PID))
	}
	f.add("Restarts", strconv.Itoa(s.Restarts))
	f.add("Tools", strconv.Itoa(s.ToolCount))
	f.add("", toOneLine(s.Hint))
	if s.Tools != nil {
		f.add("", formatToolCountsByStatus(*s.Tools))
	}
	f.add("Hints", inferHintsAdvice(s.Unhinted))
	addPrimitiveCounts(&f, s.Offers)
	for i, warning := range s.Warnings {
		f.add(map[bool]string{true: "Warnings"}[i == 0], toOneLine(warning))
	}
	f.write(p)
}

// formatLastError formats the last error of a server and its time.
func formatLastError(p *printer, s ops.ServerView) string {
	if s.LastError == "" || s.LastErrorAt == nil {
		return toPrintable(s.LastError)
	}
	return p.formatTime(s.LastErrorAt) + ", " + toPrintable(s.LastError)
}

// formatToolCountsByStatus formats the numbers of a server's tools by status.
func formatToolCountsByStatus(c ops.Counts) string {
	out := []string{fmt.Sprintf("%d callable", c[policy.Callable])}
	for _, s := range policy.Statuses() {
		if c[s] > 0 {
			out = append(out, fmt.Sprintf("%d %s", c[s], s))
		}
	}
	if n := c[ops.CountForClients]; n > 0 {
		out = append(out, fmt.Sprintf("%d %s, which can be asked something", n, ops.ForClients))
	}
	if n := c[ops.CountBlocked]; n > 0 {
		out = append(out, fmt.Sprintf("%d %s", n, ops.Blocked))
	}
	return strings.Join(out, "\n")
}

func newUpstreamRestartCommand(r *invocation) commandSpec {
	return commandSpec{run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
		s, err := api.RestartServer.Call(ctx, c, ops.ServerRef{Name: args[0]})
		if err != nil {
			return err
		}
		if err := r.printOutput(s, func(p *printer) {
			p.writeLine("Restarted %s: %s.", toOneLine(s.Name), serverStateSentence(p, s))
		}); err != nil {
			return err
		}
		return notReadyError(s, "did not come up again", "See `mcpproxy upstream logs "+s.Name+"`.")
	})}
}

// notReadyError returns the error of a server that did not start; nil when it is ready or still starting.
func notReadyError(s ops.ServerView, how, hint string) error {
	switch {
	case s.State == "ready" || s.State == "connecting" && s.Trouble == "" || s.State == "idle":
		return nil
	case s.NeedsLogin:
		return problem.New(problem.LoginNeeded, "Server '"+s.Name+"' "+how+": it asks for a login.", "Log in with `"+loginCommandText(s)+"`.")
	}
	message := "Server '" + s.Name + "' " + how + "."
	if why := cmp.Or(s.Trouble, s.LastError); why != "" {
		message = "Server '" + s.Name + "' " + how + ": " + why
	}
	return problem.New(problem.ServerUnavailable, message, hint)
}

// serverLogTail is the displayed part of a log.
type serverLogTail struct {
	Server string   `json:"server"`
	Lines  []string `json:"lines"`
}

func toServerLogTail(t ops.LogTail) serverLogTail { return serverLogTail{t.Server, t.Lines} }

func writeServerLog(p *printer, tail serverLogTail) {
	for _, line := range tail.Lines {
		fmt.Fprintln(p, toPrintable(line))
	}
	if len(tail.Lines) == 0 {
		p.addNote("The log of %s is empty.", toOneLine(tail.Server))
	}
}

func newUpstreamLogsCommand(r *invocation) commandSpec {
	lines := 100
	return commandSpec{flags: map[string]any{"lines": &boundedIntFlag{&lines, 10_000}}, run: convertedOperationRunFunc(r, api.GetServerLogs, func(args []string) (in ops.LogQuery, err error) {
		return ops.LogQuery{ServerRef: ops.ServerRef{Name: args[0]}, Lines: lines}, nil
	}, toServerLogTail, writeServerLog)}
}
