package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/process"
)

// toServerViews removes the fields that `upstream list` does not show.
func toServerViews(all ops.ServerList) ops.ServerViews {
	list := ops.ServerViews{Servers: make([]ops.ServerView, 0, len(all.Servers)), Paused: all.Paused}
	for _, s := range all.Servers {
		list.Servers = append(list.Servers, s.ServerView)
	}
	return list
}

func toServerView(s ops.ServerDetail) ops.ServerView { return s.ServerView }

func writeServerTable(p *printer, all ops.ServerViews) {
	list[ops.ServerView]{
		none: "No server is configured. Add one with `mcpproxy upstream add`, or under mcpServers in the file that `mcpproxy config path` names.",
		columns: []column[ops.ServerView]{
			{title: "NAME", text: func(s ops.ServerView) string { return s.Name }},
			{title: "PROTOCOL", text: func(s ops.ServerView) string { return s.Protocol }},
			{title: "STATE", cell: formatServerState},
			{title: "TRUST", wide: true, text: func(s ops.ServerView) string { return s.Trust }},
			{title: "TOOLS", right: true, text: formatToolCount},
			{title: "RESTARTS", wide: true, right: true, text: func(s ops.ServerView) string { return strconv.Itoa(s.Restarts) }},
			{title: "SINCE", wide: true, cell: func(p *printer, s ops.ServerView) string { return p.formatTime(s.Since) }},
			{title: "NOTE", text: serverNote},
		},
		narrow: slices.Concat(columnHidingSteps("PROTOCOL"), addNoteToSteps("To see the full note, run `mcpproxy upstream get NAME`.", columnTruncationStep("NOTE", 24)),
			columnTruncationStep("NAME", 16), columnHidingSteps("TOOLS", "NOTE"), columnTruncationStep("NAME", 8)),
	}.write(p, all.Servers)
	if all.Paused {
		p.addNote("Calls are paused: MCPProxy rejects every call until you run `mcpproxy resume`.")
	}
}

// serverNote returns the note about a server in the list: the next step for the user, or the server's current activity.
func serverNote(s ops.ServerView) string {
	switch {
	case s.NeedsLogin:
		return loginCommandText(s)
	case s.Enabled && s.Quarantined:
		return approveCommandText(s)
	case s.State == "ready" && waitingPrimitivesText(s) != "":
		return waitingPrimitivesText(s)
	case s.Hint != "":
		return "never started: mcpproxy upstream restart " + s.Name
	}
	return strings.TrimPrefix(s.Detail, "failed, ")
}

// loginCommandText returns the command that logs in to a server.
func loginCommandText(s ops.ServerView) string { return "mcpproxy login " + s.Name }

// approveCommandText returns the command that approves a server.
func approveCommandText(s ops.ServerView) string {
	return "mcpproxy upstream approve " + shellQuoteWord(s.Name)
}

// formatToolCount formats the number of tools, with the number of callable tools if it differs.
func formatToolCount(s ops.ServerView) string {
	if s.Tools == nil {
		return strconv.Itoa(s.ToolCount)
	}
	return fmt.Sprintf("%d/%d", s.Tools[policy.Callable], s.ToolCount)
}

// sessionText says which clients share the session with a server, and why; "" if there is none.
func sessionText(s ops.ServerView) string {
	switch {
	case s.Session == "", s.ProtocolVersion == mcp.Modern: // a modern server has no sessions
		return ""
	case s.Session == string(config.SessionPerClient):
		return "one for each client"
	case s.Session == string(config.SessionShared):
		return "shared by its clients"
	}
	var able []string
	for _, k := range s.SessionNeeds {
		switch k.Need {
		case upstream.NeedState:
			return "one for each client: it keeps state for each session"
		case upstream.NeedCapabilities:
			return "shared by its clients, except those with sampling, elicitation or roots, because it lists other tools to them"
		}
		able = append(able, string(k.Need))
	}
	if len(able) == 0 {
		return `shared by its clients; if it keeps state for each client, set "session": "per_client"`
	}
	return "shared by its clients, except those with " + strings.Join(able, " or ") + ", because it has asked for that"
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
	f.add("Session", sessionText(s))
	f.add("Since", p.formatTime(s.Since))
	if s.LastError == "" || s.State != "failed" {
		f.add("", toOneLine(s.Detail))
	}
	f.add("Next retry", p.formatTime(s.RetryAt))
	f.add("Last error", formatLastError(p, s))
	switch {
	case s.NeedsLogin:
		f.add("Remedy", toOneLine(loginCommandText(s)))
		if s.Login != nil {
			f.add("Login", toOneLine(s.Login.Reason))
		}
	case s.Login != nil:
		f.add("Login", toOneLine(s.Login.Reason))
		f.add("Remedy", toOneLine(s.Login.Remedy))
	case s.Enabled && s.Quarantined:
		f.add("Remedy", toOneLine(approveCommandText(s)))
	default:
		if note := serverNote(s); note != s.Detail { // the list may have cut it
			f.add("Note", toOneLine(note))
		}
	}
	f.add("Protocol", toOneLine(s.Protocol))
	f.add("MCP revision", toOneLine(s.ProtocolVersion))
	if s.Command != "" {
		f.add("Command", shellQuoteWords(append([]string{s.Command}, s.Args...)...))
		f.add("Pinned", toOneLine(s.Pin))
	}
	addSandbox(&f, s.Sandbox)
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

// addSandbox adds what the process of a server may do.
func addSandbox(f *fieldList, s *ops.SandboxView) {
	if s == nil {
		return
	}
	f.add("Sandbox", toOneLine(s.Text))
	if s.Trusted {
		f.add("", "its tools without hints count as read-only (trust_sandbox)")
	}
	for _, gap := range s.NotEnforced {
		f.add("", "not enforced: "+toOneLine(gap))
	}
	for _, note := range s.Notes {
		f.add("", toOneLine(note))
	}
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
		out = append(out, fmt.Sprintf("%d for_clients, which support sampling, elicitation or roots", n))
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
			p.writeLine("Restarted %s%s.", toOneLine(s.Name), serverOutcomeText(p, s))
		}); err != nil {
			return err
		}
		return notReadyError(s, "did not restart", "See `mcpproxy upstream logs "+s.Name+"`.")
	})}
}

// notReadyError returns an error if a server did not start. It returns nil if the server is ready or still starting.
func notReadyError(s ops.ServerView, how, hint string) error {
	switch {
	case s.State == "ready" || s.State == "connecting" && s.Trouble == "" || s.State == "idle":
		return nil
	case s.NeedsLogin:
		return problem.New(problem.LoginNeeded, "Server '"+s.Name+"' "+how+": it requires a login.", "Log in with `"+loginCommandText(s)+"`.")
	}
	message := "Server '" + s.Name + "' " + how + "."
	if why := cmp.Or(s.Trouble, s.LastError); why != "" {
		message = "Server '" + s.Name + "' " + how + ": " + why
	}
	return problem.New(problem.ServerUnavailable, message, hint)
}

// serverLogTail is the displayed part of a server's log.
type serverLogTail struct {
	Server string   `json:"server"`
	Lines  []string `json:"lines"`
}

func writeServerLog(p *printer, tail serverLogTail) {
	for _, line := range tail.Lines {
		fmt.Fprintln(p, toPrintable(line))
	}
	if len(tail.Lines) == 0 {
		p.addNote("The log of %s is empty.", toOneLine(tail.Server))
	}
}

func newUpstreamLogsCommand(r *invocation) commandSpec {
	q, follow := ops.LogQuery{Lines: 100}, false
	return commandSpec{
		flags: map[string]any{"lines": &boundedIntFlag{&q.Lines, 10_000}, "follow": &follow},
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			if q.Name = args[0]; follow {
				return r.followServerLog(ctx, c, q)
			}
			tail, err := api.GetServerLogs.Call(ctx, c, q)
			if err != nil {
				return err
			}
			shown := serverLogTail{tail.Server, tail.Lines}
			return r.printOutput(shown, func(p *printer) { writeServerLog(p, shown) })
		}),
	}
}

// maxLogEvent limits the size of one line of a followed log, in bytes.
const maxLogEvent = 1 << 20

// followServerLog writes the lines of a log as they arrive. With -o json, it writes each line as a JSON object.
func (r *invocation) followServerLog(ctx context.Context, c *api.Client, q ops.LogQuery) error {
	stream, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := api.FollowServerLogs.Stream(ctx, c, q, w)
		_ = w.Close()
		ended <- err
	}()
	events := wirejson.NewSSEReader(stream, maxLogEvent)
	var err error
	for err == nil {
		var line wirejson.SSEEvent
		if line, err = events.Next(); err == nil {
			err = r.writeLogEntry(line.Data)
		}
	}
	_ = stream.CloseWithError(err)
	if streamErr := <-ended; errors.Is(err, io.EOF) {
		return streamErr
	}
	return err
}

func (r *invocation) writeLogEntry(data []byte) error {
	if r.output == formatJSON {
		_, err := fmt.Fprintf(r.Stdout, "%s\n", escapeHiddenInJSON(data))
		return err
	}
	var l ops.LogLine
	if err := json.Unmarshal(data, &l); err != nil {
		return fmt.Errorf("read a line of the log: %w", err)
	}
	shown := process.LogLine{Stream: process.Stream(l.Stream), Text: l.Text}
	if l.At != nil {
		shown.At = *l.At
	}
	_, err := fmt.Fprintln(r.Stdout, toPrintable(shown.String()))
	return err
}

func newUpstreamSetCommand(r *invocation) commandSpec {
	var infer string
	var unset bool
	members := map[string]*envOrHeaderChangeFlags{"env": {flag: "--env", between: "="}, "headers": {flag: "--header", between: ":"}}
	env, headers := members["env"], members["headers"]
	return commandSpec{
		flags: map[string]any{
			"unset": &unset, "env": &env.given, "unset-env": &env.unset, "header": &headers.given, "unset-header": &headers.unset,
			"infer-hints": &infer,
		},
		args: func(cmd *cobra.Command, args []string) error {
			if env.anyGiven() || headers.anyGiven() || infer != "" {
				return exactArguments("server")(cmd, args)
			}
			return exactArguments("server", "key")(cmd, args[:min(len(args), 2)])
		},
		complete: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(args) == 0:
				return r.completeFromDaemon(serverNames)(cmd, args, typed)
			case len(args) == 1:
				return ops.ChangeableServerKeys(), cobra.ShellCompDirectiveNoFileComp
			case args[1] == "trust":
				return config.TrustValues(), cobra.ShellCompDirectiveNoFileComp
			case args[1] == "infer_hints":
				return config.InferValues(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			in := api.Change{ServerChange: ops.ServerChange{ServerRef: ops.ServerRef{Name: args[0]}}}
			var err error
			switch {
			case env.anyGiven() && (headers.anyGiven() || infer != "" || unset), headers.anyGiven() && (infer != "" || unset):
				return newUsageError("Change one setting at a time: pass --env, --header, --infer-hints, or --unset with a key.", "")
			case infer != "":
				args = append(args, "infer_hints", infer)
				in.Key = "infer_hints"
			case env.anyGiven():
				in.Key = "env"
			case headers.anyGiven():
				in.Key = "headers"
			default:
				in.Key = args[1]
				if m := members[in.Key]; m != nil {
					m.setFromArguments(in.Key, args[2:], unset)
				}
			}
			if given := members[in.Key]; given != nil && given.anyGiven() {
				in.Value, err = given.toJSON()
			} else {
				in.Value, err = encodeSettingValue(in.Key, args[2:], unset)
			}
			if err != nil {
				return err
			}
			v, err := callDaemonOrOffline(r, ctx, c, api.ChangeServer, in, func(f ops.OfflineAdmin, in api.Change) (ops.ServerView, error) {
				return f.ChangeServer(in.ServerChange)
			})
			if err != nil {
				return err
			}
			return r.printOutput(v, func(p *printer) {
				p.writeLine("%s %s of %s.", map[bool]string{false: "Set", true: "Removed"}[in.Value == nil], in.Key, toOneLine(v.Name))
				noteServerWarnings(p, v)
				if v.Quarantined {
					p.addNote("To review it, run `mcpproxy upstream approve %s`.", shellQuoteWord(v.Name))
				}
			})
		}),
	}
}

// envOrHeaderChangeFlags are the flags that set and remove members of a configuration key, such as env.
type envOrHeaderChangeFlags struct {
	flag, between string
	given, unset  []string
}

func (m *envOrHeaderChangeFlags) anyGiven() bool { return len(m.given)+len(m.unset) > 0 }

// setFromArguments sets or removes members named in the arguments after the key. It ignores a JSON object, which
// replaces the whole key, and an unset without members, which removes it.
func (m *envOrHeaderChangeFlags) setFromArguments(key string, values []string, unset bool) {
	m.flag = key
	switch {
	case unset:
		m.unset = values
	case len(values) > 0 && !strings.HasPrefix(values[0], "{"):
		m.given = values
	}
}

// toJSON returns the changes as a JSON object, in which null removes a member.
func (m *envOrHeaderChangeFlags) toJSON() (json.RawMessage, error) {
	set, err := parsePairs(m.flag, m.given, m.between)
	if err != nil {
		return nil, err
	}
	all := map[string]*string{}
	for name, value := range set {
		all[name] = &value
	}
	for _, name := range m.unset {
		if _, both := all[name]; both || name == "" {
			return nil, newUsageError("Invalid value '"+toPrintable(name)+"' for --unset-"+strings.TrimPrefix(m.flag, "--")+": it must be a name that the command does not also set.", "")
		}
		all[name] = nil
	}
	return wirejson.MarshalWithoutHTMLEscape(all)
}

// encodeSettingValue returns the JSON value of a configuration key, or nil to remove the key.
func encodeSettingValue(key string, values []string, unset bool) (json.RawMessage, error) {
	keys := ops.ChangeableServerKeys()
	switch {
	case !slices.Contains(keys, key):
		hint := "The keys are " + strings.Join(keys, ", ") + "."
		if near := search.ClosestName(key, keys); near != "" {
			hint = "Did you mean " + near + "?"
		}
		return nil, newUsageError("The key '"+toPrintable(key)+"' cannot be set here.", hint)
	case unset && len(values) > 0:
		return nil, newUsageError("Give either a value or --unset.", "")
	case unset:
		return nil, nil
	case len(values) == 0:
		return nil, newUsageError("Missing argument: value.", "To remove the key, pass --unset.")
	case strings.HasSuffix(key, "_tools") || key == "command":
		return json.Marshal(values)
	case len(values) > 1:
		return nil, newUsageError("Unexpected argument '"+toPrintable(values[1])+"'.", "The key "+key+" has one value.")
	case slices.Contains([]string{"trust", "infer_hints", "call_timeout", "url", "working_dir"}, key):
		return wirejson.MarshalWithoutHTMLEscape(values[0])
	}
	if !json.Valid([]byte(values[0])) {
		return nil, newUsageError("Invalid value for "+key+": it must be JSON.", `Give one object, in single quotes for the shell: '{"list_*": {"readOnlyHint": true}}'.`)
	}
	return json.RawMessage(values[0]), nil
}
