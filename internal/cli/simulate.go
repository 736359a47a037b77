package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

func newPolicyTryCommand(r *invocation) commandSpec {
	since := "30d"
	return commandSpec{
		flags: map[string]any{"since": &since},
		complete: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // completes file names
		},
		run: showResultRunFunc(r, func(ctx context.Context, c *api.Client, args []string) (out ops.Trial, err error) {
			from, err := r.parseTimeFlag("--since", since)
			if err != nil {
				return out, err
			}
			back := r.Now().Sub(from)
			if since == "" || back < time.Second {
				return out, newUsageError("Invalid value '"+since+"' for --since: must be a time that has passed", "Give a span such as 30d, or a date.")
			}
			text, err := readLimitedFile(args[0])
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return out, problem.Newf(problem.NotFound, "The file %s does not exist.", toPrintable(args[0]))
			case err != nil:
				return out, newUsageError("The file cannot be read: "+err.Error(), "").Because(err)
			}
			if out, err = api.TryPolicy.Call(ctx, c, ops.TrialRequest{Text: string(text), Period: strconv.FormatInt(int64(back/time.Second), 10) + "s"}); err != nil {
				err = addFileNameToMistakes(err, args[0])
			}
			return out, err
		}, writePolicyTrial),
	}
}

// addFileNameToMistakes adds the name of the file to the errors in its text.
func addFileNameToMistakes(err error, path string) error {
	p := problem.From(err)
	raw, _ := p.Detail("mistakes").(json.RawMessage)
	var mistakes []ops.Mistake
	if json.Unmarshal(raw, &mistakes) != nil || len(mistakes) == 0 {
		return err
	}
	lines := mapSlice(mistakes, func(m ops.Mistake) config.Mistake { return config.Mistake(m) })
	whole := config.NewMistakesError(filepath.Base(path), lines)
	return problem.New(p.Code, whole.Message, "No call was evaluated. `mcpproxy config validate "+shellQuoteWord(path)+"` checks the file.").With("mistakes", mistakes)
}

func writePolicyTrial(p *printer, out ops.Trial) {
	if out.Calls == 0 {
		p.addNote("The log has no calls since %s.", p.formatTime(&out.Since))
		return
	}
	p.writeLine("%d calls since %s: %d would have the same outcome.", out.Calls, p.formatTime(&out.Since), out.Same)
	for _, one := range []struct {
		n    int64
		hue  colorMeaning
		text string
	}{{out.Refused, colorBad, "would have been rejected instead of allowed"}, {out.Allowed, colorWarning, "would have been allowed instead of rejected or held for approval"}, {out.Asked, colorWarning, "would have been held for approval"}, {out.Unknown, colorWarning, "cannot be told"}} {
		if one.n > 0 {
			p.writeLine("%s %s", p.colorize(one.hue, strconv.FormatInt(one.n, 10)), one.text)
		}
	}
	if len(out.Groups) > 0 {
		t := table{p: p, header: []string{"CALLS", "TOOL", "LANE", "WAS", "WOULD BE", "REASON", "EXAMPLE"}, rightAligned: map[int]bool{0: true}, narrowingSteps: slices.Concat(
			columnHidingSteps("WAS"), columnTruncationStep("TOOL", 20), columnTruncationStep("EXAMPLE", 12), columnHidingSteps("LANE"), columnTruncationStep("REASON", 12), columnHidingSteps("EXAMPLE"))}
		for _, g := range out.Groups {
			lane := strings.TrimPrefix(g.Variant, "call_tool_")
			if g.Called == string(activity.CalledByName) {
				lane = "by name"
			}
			t.addRow(strconv.FormatInt(g.Calls, 10), toOneLine(g.Tool), toOneLine(lane), string(g.Was), string(g.Would), trialReasonCell(g), strings.Join(g.Examples[:min(1, len(g.Examples))], ""))
		}
		fmt.Fprintln(p)
		t.write()
		fmt.Fprintln(p)
		for _, why := range distinctTrialReasons(out.Groups) {
			p.writeWrapped("", toPrintable(why))
		}
	}
	if out.LeftOut > 0 {
		p.addNote("%d more calls differ. To see the largest groups, pass -o json.", out.LeftOut)
	}
	if out.Others > 0 {
		p.addNote("%d of the calls were decided under another configuration than the current one.", out.Others)
	}
}

// trialReasonCell returns a short reason for the result of a group of calls.
func trialReasonCell(g ops.TrialGroup) string {
	switch {
	case g.Status != "":
		return toOneLine(g.Status)
	case g.Code != "":
		return toOneLine(g.Code)
	}
	return "unknown"
}

// distinctTrialReasons returns the first distinct reasons of the groups.
func distinctTrialReasons(groups []ops.TrialGroup) (all []string) {
	const most = 10
	for _, g := range groups {
		text := g.Why
		if g.Would == ops.Allowed {
			text = "No more: " + text
		}
		if text = policy.WithoutModelAdvice(text); !slices.Contains(all, text) && len(all) < most {
			all = append(all, text)
		}
	}
	return all
}

func newCanCommand(r *invocation) commandSpec {
	var args string
	return commandSpec{
		flags:    map[string]any{"args": &args},
		complete: r.completeCallerThenTool(),
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, given []string) error {
			in := ops.ExplainRequest{Who: given[0], Name: given[1]}
			if args != "" {
				var err error
				if in.Args, err = r.readToolArguments(args); err != nil {
					return err
				}
			}
			out, err := api.Can.Call(ctx, c, in)
			if err != nil {
				return err
			}
			if err := r.printOutput(out, func(p *printer) { writeCallProspect(p, out) }); err != nil || out.Can {
				return err
			}
			return cannotCallError(out)
		}),
	}
}

// cannotCallError returns the error for a call that is rejected in every lane. It uses the reason from the tool's own
// lane.
func cannotCallError(out ops.Prospect) error {
	of := out.Lanes[len(out.Lanes)-1]
	for _, lane := range out.Lanes {
		if lane.Tool == out.CallWith {
			of = lane
		}
	}
	return problem.Newf(problem.Code(of.Code), "%s cannot call %s.", out.As.Name, out.Name).WithHint(of.Hint)
}

func writeCallProspect(p *printer, out ops.Prospect) {
	var f fieldList
	f.add("Tool", toOneLine(out.Name))
	f.add("Hints", formatHintsWithSources(out.Hints))
	f.add("Overridden", formatHintsWithSources(out.Overridden))
	f.add("Inferred", inferredOperationText(&out.DecisionFacts))
	f.add("Call with", toOneLine(out.CallWith))
	f.add("Status", toOneLine(strings.Join(append([]string{cmp.Or(out.Status, policy.Callable.Word())}, out.Further...), ", ")))
	f.add("Caller", toOneLine(callerText(out.As)))
	f.write(p)
	fmt.Fprintln(p)
	for _, lane := range out.Lanes {
		h, mark := colorGood, "✓"
		switch lane.Outcome {
		case activity.Refused:
			h, mark = colorBad, "✗"
		case activity.Asked:
			h, mark = colorWarning, "?"
		}
		does := map[activity.Verdict]string{activity.Allowed: "is allowed", activity.Warned: "is allowed with a warning", activity.Refused: "is refused", activity.Asked: "waits for approval"}[lane.Outcome]
		if lane.Check != "" {
			does += " (" + toOneLine(lane.Check) + ")"
		}
		p.writeLine("%s %s %s", p.colorize(h, mark), escapeInvisibleLine(lane.Tool), does)
		p.writeWrapped("    ", toPrintable(lane.Why))
		if lane.Client != nil {
			p.writeWrapped("    ", escapeInvisibleLine("In "+out.As.Name+" it "+clientVerdictText(lane.Client)))
		}
	}
	p.addNotes(mapSlice(out.Notes, toPrintable))
}

// clientVerdictText describes a client's behaviour for a call, with the deciding rule.
func clientVerdictText(c *ops.ProspectClient) string {
	text := c.Verdict.Words() + ": " + formatRuleWithPosition(c.Rule)
	if c.Verdict == "unknown" {
		text = "is " + text
	}
	if c.Why != "" {
		text += " (" + c.Why + ")"
	}
	return text
}

// callerText describes the caller of a simulated call and its limits.
func callerText(w ops.ProspectWho) string {
	out := w.Name
	if w.Kind != "client" {
		out = w.Kind + " " + out
	}
	if w.Address != "" {
		out += " at " + w.Address
	}
	if w.Kind == "client" && !w.Connected {
		out += ", which is not connected"
	}
	if w.Profiles != "" && w.Kind != "profile" {
		out += ", profile " + w.Profiles
	}
	if w.Token != "" && w.Kind != "agent" {
		out += ", token " + w.Token
	}
	return out
}
