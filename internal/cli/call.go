package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// maxInputBytes limits arguments from a file or stdin, in bytes. The daemon has a lower limit and names it in its
// error.
const maxInputBytes = 64 << 20

// callFlags are the flags of `call tool-read`, `call tool-write` and `call tool-destructive`.
type callFlags struct {
	args, jsonArgs, toolName string
	reason, sensitivity      string
	selection                string
	timeout                  time.Duration
}

func newCallCommand(r *invocation, v policy.CallToolVariant) commandSpec {
	var f callFlags
	return commandSpec{
		flags: map[string]any{
			"args": &f.args, "json_args": &f.jsonArgs, "tool-name": &f.toolName,
			"reason": &f.reason, "sensitivity": &f.sensitivity, "timeout": &f.timeout, "select": &f.selection,
		},
		args: atMostArguments(1),
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			in, err := newCallInput(r, v, f, args)
			if err != nil {
				return err
			}
			answer, err := api.CallTool.Call(ctx, c, in)
			if err != nil {
				return withCLIHint(err, in.Name)
			}
			return printCallAnswer(r, in.Name, answer)
		}),
	}
}

// newCallInput builds the call from flags and arguments.
func newCallInput(r *invocation, v policy.CallToolVariant, f callFlags, args []string) (api.CallInput, error) {
	in := api.CallInput{Variant: v.String(), Select: f.selection, Intent: api.CallIntent{
		OperationType: v.Operation().String(), DataSensitivity: f.sensitivity, Reason: f.reason,
	}}
	var err error
	if in.Name, err = atMostOneValue("the tool", append(args, f.toolName)...); err != nil {
		return in, err
	}
	if in.Name == "" {
		return in, newUsageError("Missing argument: server:tool.", "Find tools with `mcpproxy tools search`.")
	}
	if f.timeout > 0 {
		in.Timeout = f.timeout.String()
	}
	given, err := atMostOneValue("the arguments", f.args, f.jsonArgs)
	if err != nil || given == "" {
		return in, err
	}
	in.Args, err = r.readToolArguments(given)
	return in, err
}

// withCLIHint replaces the hint of a rejected call. The daemon's hint is for an agent; the new hint names a shell
// command.
func withCLIHint(err error, name string) error {
	p := *problem.From(err)
	p.Message = policy.WithoutModelAdvice(p.Message)
	switch p.Code {
	case problem.ServerMismatch, problem.ArgumentMismatch:
		raw, _ := p.Detail("call_with").(json.RawMessage)
		said, _ := wirejson.String(raw)
		variant, known := policy.ParseCallToolName(said)
		if !known {
			variant = policy.CallToolDestructive // every tool can be called with this variant
		}
		p.Hint = "Use `mcpproxy call tool-" + variant.Operation().String() + " " + name + "` with the same arguments."
	case problem.ArgsMismatch:
		p.Hint = "See its input schema with `mcpproxy tools show " + name + "`."
	case problem.InvalidArgs:
		p.Hint = "Give one JSON object, in single quotes for the shell: --args '{\"key\": \"value\"}'."
	case problem.ToolLocked:
		if hint := unlockToolHint(p, name); hint != "" {
			p.Hint = hint
		}
	case problem.ApprovalPending:
		raw, _ := p.Detail("approval_id").(json.RawMessage)
		if id, ok := wirejson.String(raw); ok {
			p.Hint = "Approve it with `mcpproxy pending approve " + shellQuoteWord(id) + "`, then run this again."
		}
	case problem.InvalidName, problem.ServerNotFound, problem.ToolNotFound:
		p.Hint = "Find the name with `mcpproxy tools search` or `mcpproxy tools list`."
	}
	return &p
}

// unlockToolHint returns how a user unlocks a tool.
func unlockToolHint(p problem.Problem, name string) string {
	raw, _ := p.Detail("status").(json.RawMessage)
	said, _ := wirejson.String(raw)
	id, err := tool.ParseID(name)
	if err != nil {
		return ""
	}
	of, server := shellQuoteWord(id.String()), shellQuoteWord(id.Server)
	if blocked, _ := p.Detail("blocked").(json.RawMessage); string(blocked) == "true" {
		return policy.BlockedCommandRemedy(of)
	}
	for _, s := range policy.Statuses() {
		if s.String() == said {
			return s.CommandRemedy(server, of)
		}
	}
	return policy.DisabledUnknown.CommandRemedy(server, of)
}

// atMostOneValue returns the value that is not empty, or "" if all are empty. It returns an error if there are several.
func atMostOneValue(what string, values ...string) (string, error) {
	var found string
	for _, v := range values {
		if v != "" && found != "" {
			return "", newUsageError("Two values for "+what+" are given.", "Give one.")
		}
		if v != "" {
			found = v
		}
	}
	return found, nil
}

// readToolArguments reads the arguments of a tool from a flag, a file or stdin. It only checks that they are valid
// JSON. The daemon validates the rest.
func (r *invocation) readToolArguments(given string) (json.RawMessage, error) {
	raw := []byte(given)
	var err error
	switch {
	case given == "-", given == "@-":
		raw, err = io.ReadAll(io.LimitReader(r.Stdin, maxInputBytes))
	case strings.HasPrefix(given, "@"):
		raw, err = readLimitedFile(given[1:])
	}
	if err != nil {
		return nil, newUsageError("The arguments cannot be read: "+err.Error(), "Give --args JSON, --args @file, or --args - for stdin.").Because(err)
	}
	raw = bytes.TrimSpace(raw)
	if err := wirejson.Check(raw, wirejson.Limits{Bytes: maxInputBytes}); err != nil {
		return nil, problem.New(problem.InvalidArgs, "Invalid arguments: "+err.Error(),
			"Give one JSON object, in single quotes for the shell: --args '{\"key\": \"value\"}'.")
	}
	return raw, nil
}

func readLimitedFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxInputBytes))
}

// printCallAnswer prints a tool's result to stdout. If the result is a tool error, it also returns an error.
func printCallAnswer(r *invocation, name string, a api.CallAnswer) error {
	if err := r.printOutput(a.Result, func(p *printer) { writeToolResult(p, a.Result) }); err != nil {
		return err
	}
	for _, warning := range a.Warnings {
		fmt.Fprintln(r.Stderr, r.newPrinter(r.Stderr).colorize(colorWarning, "Warning:")+" "+toPrintable(warning))
	}
	if a.Handle != "" {
		r.printMessage("The result was cut to result_limit (see `mcpproxy config show`); an agent reads the rest with read_result and the handle %s.", a.Handle)
	}
	if !a.IsError {
		return nil
	}
	return problem.Newf(problem.UpstreamError, "Tool '%s' returned an error.", name).
		WithHint("See its answer, or `mcpproxy activity show "+a.ActivityID+"`.").
		With("activity_id", a.ActivityID)
}

// contentBlock holds the displayed fields of an MCP content block.
type contentBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Resource struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	} `json:"resource"`
}

// writeToolResult prints a tool result for a user: text unchanged, JSON indented, links as URLs and a note for other
// content.
func writeToolResult(w io.Writer, result json.RawMessage) {
	var r struct {
		Content    []contentBlock  `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		fmt.Fprintln(w, formatPrintableJSON(result))
		return
	}
	for _, b := range r.Content {
		fmt.Fprintln(w, strings.TrimRight(b.format(), "\n"))
	}
	if len(r.Content) > 0 {
		return
	}
	if len(r.Structured) > 0 {
		fmt.Fprintln(w, formatPrintableJSON(r.Structured))
		return
	}
	fmt.Fprintln(w, "(no content)")
}

func (b contentBlock) format() string {
	switch b.Type {
	case "text":
		return formatTextOrJSON(b.Text)
	case "image", "audio":
		return fmt.Sprintf("[%s: %s, %s]", b.Type, typeOrUnknown(b.MIMEType), formatBase64Size(b.Data))
	case "resource_link":
		return formatLink(b.titleOrName(), b.URI)
	case "resource":
		if b.Resource.Text != nil {
			return formatLink("", b.Resource.URI) + "\n" + formatTextOrJSON(*b.Resource.Text)
		}
		return fmt.Sprintf("[resource: %s, %s, %s]", toOneLine(b.Resource.URI), typeOrUnknown(b.Resource.MIMEType), formatBase64Size(b.Resource.Blob))
	}
	return "[" + typeOrUnknown(b.Type) + "]"
}

func (b contentBlock) titleOrName() string {
	if b.Title != "" {
		return b.Title
	}
	return b.Name
}

func formatLink(label, uri string) string {
	if label = toOneLine(label); label != "" {
		return label + ": " + toOneLine(uri)
	}
	return toOneLine(uri)
}

// formatTextOrJSON indents s if it is a JSON object or array.
func formatTextOrJSON(s string) string {
	raw := []byte(strings.TrimSpace(s))
	if kind := wirejson.Kind(raw); (kind == '{' || kind == '[') && json.Valid(raw) {
		return formatPrintableJSON(raw)
	}
	return toPrintable(s)
}

func typeOrUnknown(s string) string {
	return cmp.Or(toOneLine(s), "unknown type")
}

// formatBase64Size formats the decoded size of base64 data.
func formatBase64Size(data string) string {
	return formatByteSize(int64(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "=")))))
}

// formatByteSize formats a number of bytes.
func formatByteSize(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
}
