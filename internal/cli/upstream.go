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

// plainServers and plainServer select what the commands show.
func plainServers(all ops.ServerList) ops.ServerViews {
	list := ops.ServerViews{Servers: make([]ops.ServerView, 0, len(all.Servers))}
	for _, s := range all.Servers {
		list.Servers = append(list.Servers, s.ServerView)
	}
	return list
}

func plainServer(s ops.ServerDetail) ops.ServerView { return s.ServerView }

func writeServers(p *printer, all ops.ServerViews) {
	if len(all.Servers) == 0 {
		p.note("No server is configured. Add one with `mcpproxy upstream add`, or under mcpServers in the file that `mcpproxy config path` names.")
		return
	}
	t := table{p: p, header: []string{"NAME", "PROTOCOL", "STATE", "TOOLS", "NOTE"}, right: map[int]bool{3: true}, narrow: slices.Concat(
		leaveOut("PROTOCOL"), withNote("The whole note: `mcpproxy upstream get NAME`.", shorten("NOTE", 24)),
		shorten("NAME", 16), leaveOut("TOOLS", "NOTE"), shorten("NAME", 8))}
	for _, s := range all.Servers {
		note := strings.TrimPrefix(s.Detail, "failed, ")
		switch {
		case s.NeedsLogin:
			note = loginNote(s)
		case s.Enabled && s.Quarantined:
			note = approveNote(s)
		case s.State == "ready" && primitivesNote(s) != "":
			note = primitivesNote(s)
		case s.Hint != "":
			note = "never started: mcpproxy upstream restart " + s.Name
		}
		t.add(oneLine(s.Name), oneLine(s.Protocol), state(p, s), toolCount(s), oneLine(note))
	}
	t.write()
}

// loginNote returns the fix for a server that needs a login.
func loginNote(s ops.ServerView) string { return "mcpproxy upstream login " + s.Name }

// approveNote returns the fix for a server that waits for review.
func approveNote(s ops.ServerView) string {
	return "mcpproxy upstream approve " + quotedWord(s.Name)
}

// toolCount returns the number of tools, and of callable ones if they differ.
func toolCount(s ops.ServerView) string {
	if s.Tools == nil {
		return strconv.Itoa(s.ToolCount)
	}
	return fmt.Sprintf("%d/%d", s.Tools[policy.Callable], s.ToolCount)
}

func writeServer(p *printer, s ops.ServerView) {
	var f fields
	f.add("Name", oneLine(s.Name))
	f.add("State", state(p, s))
	f.add("Review", reviewStage(s.Stage))
	f.add("Proposed by", oneLine(s.ProposedBy))
	f.add("Trust", oneLine(s.Trust))
	if s.Lazy {
		f.add("Lazy", "not started before its first call")
	}
	if s.Session != "" {
		f.add("Session", "shared by its clients")
	}
	f.add("Since", p.moment(s.Since))
	if s.LastError == "" || s.State != "failed" {
		f.add("", oneLine(s.Detail))
	}
	f.add("Next try", p.moment(s.RetryAt))
	f.add("Last error", lastError(p, s))
	switch {
	case s.NeedsLogin:
		f.add("Remedy", oneLine(loginNote(s)))
	case s.Enabled && s.Quarantined:
		f.add("Remedy", oneLine(approveNote(s)))
	}
	f.add("Protocol", oneLine(s.Protocol))
	f.add("MCP revision", oneLine(s.ProtocolVersion))
	if s.Command != "" {
		f.add("Command", quotedWords(append([]string{s.Command}, s.Args...)...))
	}
	f.add("URL", oneLine(s.URL))
	if s.PID != 0 {
		f.add("Process", strconv.Itoa(s.PID))
	}
	f.add("Restarts", strconv.Itoa(s.Restarts))
	f.add("Tools", strconv.Itoa(s.ToolCount))
	f.add("", oneLine(s.Hint))
	if s.Tools != nil {
		f.add("", statusCounts(*s.Tools))
	}
	f.add("Hints", unhintedNote(s.Unhinted))
	addPrimitives(&f, s.Offers)
	for i, warning := range s.Warnings {
		f.add(map[bool]string{true: "Warnings"}[i == 0], oneLine(warning))
	}
	f.write(p)
}

// lastError returns the last error and its time.
func lastError(p *printer, s ops.ServerView) string {
	if s.LastError == "" || s.LastErrorAt == nil {
		return printable(s.LastError)
	}
	return p.moment(s.LastErrorAt) + ", " + printable(s.LastError)
}

// statusCounts lists the tools of a server by status.
func statusCounts(c ops.Counts) string {
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

func upstreamRestart(r *run) command {
	return command{run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		s, err := api.RestartServer.Call(ctx, c, ops.ServerRef{Name: args[0]})
		if err != nil {
			return err
		}
		if err := r.print(s, func(p *printer) {
			p.line("Restarted %s: %s.", oneLine(s.Name), stateSentence(p, s))
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
		return problem.New(problem.LoginNeeded, "Server '"+s.Name+"' "+how+": it asks for a login.", "Log in with `"+loginNote(s)+"`.")
	}
	message := "Server '" + s.Name + "' " + how + "."
	if why := cmp.Or(s.Trouble, s.LastError); why != "" {
		message = "Server '" + s.Name + "' " + how + ": " + why
	}
	return problem.New(problem.ServerUnavailable, message, hint)
}

// logTail is the displayed part of a log.
type logTail struct {
	Server string   `json:"server"`
	Lines  []string `json:"lines"`
}

func plainTail(t ops.LogTail) logTail { return logTail{t.Server, t.Lines} }

func writeLog(p *printer, tail logTail) {
	for _, line := range tail.Lines {
		fmt.Fprintln(p, printable(line))
	}
	if len(tail.Lines) == 0 {
		p.note("The log of %s is empty.", oneLine(tail.Server))
	}
}

func upstreamLogs(r *run) command {
	lines := 100
	return command{flags: map[string]any{"lines": &atMostFlag{&lines, 10_000}}, run: runOperationAs(r, api.GetServerLogs, func(args []string) (in ops.LogQuery, err error) {
		return ops.LogQuery{ServerRef: ops.ServerRef{Name: args[0]}, Lines: lines}, nil
	}, plainTail, writeLog)}
}
