package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/tool"
)

// operations are the operation types, as flags take them.
func operations() []string { return []string{"read", "write", "destructive"} }

// maxInput bounds arguments that are read from a file or stdin, in bytes. The
// daemon's bound is lower and it names it.
const maxInput = 64 << 20

// callFlags are the flags of call tool-*.
type callFlags struct {
	args, jsonArgs, toolName string
	reason, sensitivity      string
	timeout                  time.Duration
}

func callCommand(r *run) *cobra.Command {
	return group("call", "Call a tool with declared intent",
		"  mcpproxy call tool-read notes:list_notes\n"+
			"  mcpproxy call tool-write notes:write_note --args '{\"title\": \"shopping\", \"text\": \"milk\"}' --reason \"for later\"\n"+
			"  mcpproxy call tool-destructive notes:delete_note --args @note.json",
		callTool(r, policy.CallToolRead, "Call a tool that only looks",
			"Calls a tool to query without changing anything. Refused when the server marks the tool destructive."),
		callTool(r, policy.CallToolWrite, "Call a tool that creates or updates",
			"Calls a tool to create or update. Refused when the server marks the tool destructive."),
		callTool(r, policy.CallToolDestructive, "Call a tool that deletes or cannot be undone",
			"Calls a tool to delete, or to do what cannot be undone. Allowed whatever the server says about the tool."))
}

func callTool(r *run, v policy.Variant, short, long string) *cobra.Command {
	var f callFlags
	name := "tool-" + v.Operation().String()
	cmd := &cobra.Command{
		Use:   name + " <server:tool>",
		Short: short,
		Long: long + `

Prints the content of the answer. When the tool itself reports a failure, the
content is printed all the same, and the exit code is 1. When MCPProxy refuses
the call, the exit code is 3. -o json gives the raw result.`,
		Example:           callExamples(v),
		Args:              atMost(1),
		ValidArgsFunction: r.complete(toolNames),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			in, err := callInput(r, v, f, args)
			if err != nil {
				return err
			}
			answer, err := api.CallTool.Call(ctx, c, in)
			if err != nil {
				return forShell(err, in.Name)
			}
			return showAnswer(r, in.Name, answer)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.args, "args", "", "arguments: `JSON`, @file, or - for stdin")
	flags.StringVar(&f.jsonArgs, "json_args", "", "the same as --args (`JSON`)")
	flags.StringVar(&f.toolName, "tool-name", "", "the same as the argument (`server:tool`)")
	flags.StringVar(&f.reason, "reason", "", "why, for the log (`text`, at most 1000 characters)")
	flags.StringVar(&f.sensitivity, "sensitivity", "", "how sensitive the data is: `level` public, internal, private or unknown")
	flags.DurationVar(&f.timeout, "timeout", 0, "give up earlier than the configuration does, such as after `30s`; it can only shorten")
	_ = cmd.RegisterFlagCompletionFunc("tool-name", r.completeFlag(toolNames))
	_ = cmd.RegisterFlagCompletionFunc("sensitivity", words(policy.Sensitivities()...))
	return cmd
}

// callExamples are calls that work against the servers of the demo.
func callExamples(v policy.Variant) string {
	command, args := "read notes:read_note", `{"title": "shopping"}`
	switch v {
	case policy.CallToolWrite:
		command, args = "write notes:write_note", `{"title": "shopping", "text": "milk"}`
	case policy.CallToolDestructive:
		command = "destructive notes:delete_note"
	}
	command = "mcpproxy call tool-" + command
	return "  " + command + " --args '" + args + "'\n" +
		"  " + command + " --args @note.json --reason \"weekly review\" --sensitivity private\n" +
		"  echo '" + args + "' | " + command + " --args -"
}

// callInput makes the call of flags and arguments.
func callInput(r *run, v policy.Variant, f callFlags, args []string) (api.CallInput, error) {
	in := api.CallInput{Variant: v.String(), Intent: api.CallIntent{
		OperationType: v.Operation().String(), DataSensitivity: f.sensitivity, Reason: f.reason,
	}}
	var err error
	if in.Name, err = one("the tool", append(args, f.toolName)...); err != nil {
		return in, err
	}
	if in.Name == "" {
		return in, usage("Missing argument: server:tool.", "Find tools with `mcpproxy tools search`.")
	}
	if f.timeout < 0 {
		return in, usage("Invalid value '"+f.timeout.String()+"' for --timeout: must be positive", "")
	}
	if f.timeout > 0 {
		in.Timeout = f.timeout.String()
	}
	given, err := one("the arguments", f.args, f.jsonArgs)
	if err != nil || given == "" {
		return in, err
	}
	in.Args, err = r.readArgs(given)
	return in, err
}

// forShell puts into a refused call the hint that helps at a prompt, where the
// daemon's speaks to an agent. The message stays.
func forShell(err error, name string) error {
	p := *problem.From(err)
	switch p.Code {
	case problem.ServerMismatch:
		p.Hint = "Use `mcpproxy call tool-destructive " + name + "` with the same arguments."
	case problem.ArgsMismatch:
		p.Hint = "See its input schema with `mcpproxy tools show " + name + "`."
	case problem.InvalidArgs:
		p.Hint = "Give one JSON object, in single quotes for the shell: --args '{\"key\": \"value\"}'."
	case problem.ToolLocked:
		if hint := unlock(p.Detail("status"), name); hint != "" {
			p.Hint = hint
		}
	case problem.InvalidName, problem.ServerNotFound, problem.ToolNotFound:
		p.Hint = "Find the name with `mcpproxy tools search` or `mcpproxy tools list`."
	}
	return &p
}

// unlock is what a person at a prompt does about a tool that is locked.
func unlock(status any, name string) string {
	raw, _ := status.(json.RawMessage)
	said, _ := rawjson.String(raw)
	id, err := tool.ParseID(name)
	if err != nil {
		return ""
	}
	of, server := quotedWord(id.String()), quotedWord(id.Server)
	for _, s := range policy.Statuses() {
		if s.String() == said {
			return s.PromptRemedy(server, of)
		}
	}
	return policy.DisabledUnknown.PromptRemedy(server, of)
}

// one returns the value that is given, which must be only one.
func one(what string, values ...string) (string, error) {
	var found string
	for _, v := range values {
		if v != "" && found != "" {
			return "", usage("Two values for "+what+" are given.", "Give one.")
		}
		if v != "" {
			found = v
		}
	}
	return found, nil
}

// readArgs returns the arguments that a flag names. They must be JSON to be sent;
// all else about them the daemon says.
func (r *run) readArgs(given string) (json.RawMessage, error) {
	raw := []byte(given)
	var err error
	switch {
	case given == "-", given == "@-":
		raw, err = io.ReadAll(io.LimitReader(r.Stdin, maxInput))
	case strings.HasPrefix(given, "@"):
		raw, err = readFile(given[1:])
	}
	if err != nil {
		return nil, usage("The arguments cannot be read: "+err.Error(), "Give --args JSON, --args @file, or --args - for stdin.").Because(err)
	}
	raw = bytes.TrimSpace(raw)
	if err := rawjson.Check(raw, rawjson.Limits{Bytes: maxInput}); err != nil {
		return nil, problem.New(problem.InvalidArgs, "Invalid arguments: "+err.Error(),
			"Give one JSON object, in single quotes for the shell: --args '{\"key\": \"value\"}'.")
	}
	return raw, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxInput))
}

// showAnswer prints what a tool answered. A failure that the tool reports is a
// failure of the command, with its content on stdout.
func showAnswer(r *run, name string, a api.CallAnswer) error {
	if err := r.print(a.Result, func(p *printer) { writeContent(p, a.Result) }); err != nil {
		return err
	}
	for _, warning := range a.Warnings {
		fmt.Fprintln(r.Stderr, r.printer(r.Stderr).paint(care, "Warning:")+" "+printable(warning))
	}
	if a.Handle != "" {
		r.say("The result was cut to result_limit (see `mcpproxy config show`); an agent reads the rest with read_result and the handle %s.", a.Handle)
	}
	if !a.IsError {
		return nil
	}
	return problem.Newf(problem.UpstreamError, "Tool '%s' answered with a failure.", name).
		WithHint("Its answer says what to change; see `mcpproxy activity show "+a.ActivityID+"`.").
		With("activity_id", a.ActivityID)
}
