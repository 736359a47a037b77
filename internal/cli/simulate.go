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

func policyTry(r *run) command {
	since := "30d"
	return command{
		flags: map[string]any{"since": &since},
		complete: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // a file
		},
		run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
			from, err := r.parseTime("--since", since)
			if err != nil {
				return err
			}
			back := r.Now().Sub(from)
			if since == "" || back < time.Second {
				return usage("Invalid value '"+since+"' for --since: must be a time that has passed", "Give a span such as 30d, or a date.")
			}
			text, err := readFile(args[0])
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return problem.Newf(problem.NotFound, "There is no file %s.", printable(args[0]))
			case err != nil:
				return usage("The file cannot be read: "+err.Error(), "").Because(err)
			}
			out, err := api.TryPolicy.Call(ctx, c, ops.TrialRequest{Text: string(text), Period: strconv.FormatInt(int64(back/time.Second), 10) + "s"})
			if err != nil {
				return withFileName(err, args[0])
			}
			return r.print(out, func(p *printer) { writeTrial(p, out) })
		}),
	}
}

// withFileName adds the name of the file to the mistakes of its text.
func withFileName(err error, path string) error {
	p := problem.From(err)
	raw, _ := p.Detail("mistakes").(json.RawMessage)
	var mistakes []ops.Mistake
	if json.Unmarshal(raw, &mistakes) != nil || len(mistakes) == 0 {
		return err
	}
	var lines []config.Mistake
	for _, m := range mistakes {
		lines = append(lines, config.Mistake{Line: m.Line, Column: m.Column, Path: m.Key, Message: m.Message, Hint: m.Hint})
	}
	whole := config.NewMistakesError(filepath.Base(path), lines)
	return problem.New(p.Code, whole.Message, "Nothing was tried. `mcpproxy config validate "+quotedWord(path)+"` checks the file.").With("mistakes", mistakes)
}

func writeTrial(p *printer, out ops.Trial) {
	if out.Calls == 0 {
		p.note("There is no call on record since %s.", p.moment(&out.Since))
		return
	}
	p.line("%d calls since %s: %d would have gone as they did.", out.Calls, p.moment(&out.Since), out.Same)
	for _, one := range []struct {
		n    int64
		hue  hue
		text string
	}{{out.Refused, hueBad, "would have been refused instead of allowed"}, {out.Allowed, hueWarning, "would have been allowed instead of refused, or of waiting for a person"}, {out.Asked, hueWarning, "would have waited for a person"}, {out.Unknown, hueWarning, "cannot be told"}} {
		if one.n > 0 {
			p.line("%s %s", p.paint(one.hue, strconv.FormatInt(one.n, 10)), one.text)
		}
	}
	if len(out.Groups) > 0 {
		t := table{p: p, header: []string{"CALLS", "TOOL", "LANE", "WAS", "WOULD BE", "REASON", "EXAMPLE"}, right: map[int]bool{0: true}, narrow: slices.Concat(
			leaveOut("WAS"), shorten("TOOL", 20), shorten("EXAMPLE", 12), leaveOut("LANE"), shorten("REASON", 12), leaveOut("EXAMPLE"))}
		for _, g := range out.Groups {
			lane := strings.TrimPrefix(g.Variant, "call_tool_")
			if g.Called == string(activity.CalledByName) {
				lane = "by name"
			}
			t.add(strconv.FormatInt(g.Calls, 10), oneLine(g.Tool), oneLine(lane), string(g.Was), string(g.Would), reasonCell(g), strings.Join(g.Examples[:min(1, len(g.Examples))], ""))
		}
		fmt.Fprintln(p)
		t.write()
		fmt.Fprintln(p)
		for _, why := range reasons(out.Groups) {
			p.text("", printable(why))
		}
	}
	if out.LeftOut > 0 {
		p.note("%d more calls are not the same: -o json has the groups with the most.", out.LeftOut)
	}
	if out.Others > 0 {
		p.note("%d of the calls were decided about under another configuration than the one in force.", out.Others)
	}
}

// reasonCell returns a reason in a word or two.
func reasonCell(g ops.TrialGroup) string {
	switch {
	case g.Status != "":
		return oneLine(g.Status)
	case g.Code != "":
		return oneLine(g.Code)
	}
	return "unknown"
}

// reasons returns the first few reasons.
func reasons(groups []ops.TrialGroup) (all []string) {
	const most = 10
	for _, g := range groups {
		text := g.Why
		if g.Would == ops.Allowed {
			text = "No more: " + text
		}
		if text = policy.TextForUser(text); !slices.Contains(all, text) && len(all) < most {
			all = append(all, text)
		}
	}
	return all
}

func canCommand(r *run) command {
	var args string
	return command{
		flags:    map[string]any{"args": &args},
		complete: r.callers(),
		run: r.withClient(func(ctx context.Context, c *api.Client, given []string) error {
			in := ops.ExplainRequest{Who: given[0], Name: given[1]}
			if args != "" {
				var err error
				if in.Args, err = r.readArgs(args); err != nil {
					return err
				}
			}
			out, err := api.Can.Call(ctx, c, in)
			if err != nil {
				return err
			}
			if err := r.print(out, func(p *printer) { writeProspect(p, out) }); err != nil || out.Can {
				return err
			}
			return cannotCall(out)
		}),
	}
}

// cannotCall returns the error of a call that is rejected in every lane: that of the tool's own lane.
func cannotCall(out ops.Prospect) error {
	of := out.Lanes[len(out.Lanes)-1]
	for _, lane := range out.Lanes {
		if lane.Tool == out.CallWith {
			of = lane
		}
	}
	return problem.Newf(problem.Code(of.Code), "%s cannot call %s.", out.As.Name, out.Name).WithHint(of.Hint)
}

func writeProspect(p *printer, out ops.Prospect) {
	var f fields
	f.add("Tool", oneLine(out.Name))
	f.add("Hints", judgedHints(out.Hints))
	f.add("Overridden", judgedHints(out.Overridden))
	f.add("Seems to", inferredNote(&out.DecisionFacts))
	f.add("Call with", oneLine(out.CallWith))
	f.add("Status", oneLine(strings.Join(append([]string{cmp.Or(out.Status, policy.Callable.Word())}, out.Further...), ", ")))
	f.add("As", oneLine(callerText(out.As)))
	f.write(p)
	fmt.Fprintln(p)
	for _, lane := range out.Lanes {
		h, mark := hueGood, "✓"
		switch lane.Outcome {
		case activity.Refused:
			h, mark = hueBad, "✗"
		case activity.Asked:
			h, mark = hueWarning, "?"
		}
		does := map[activity.Verdict]string{activity.Allowed: "is let through", activity.Warned: "is let through, with a warning", activity.Refused: "is refused", activity.Asked: "waits for a person"}[lane.Outcome]
		if lane.Check != "" {
			does += " (" + oneLine(lane.Check) + ")"
		}
		p.line("%s %s %s", p.paint(h, mark), visibleLine(lane.Tool), does)
		p.text("    ", printable(lane.Why))
		if lane.Client != nil {
			p.text("    ", visibleLine("In "+out.As.Name+" it "+clientVerdict(lane.Client)))
		}
	}
	for _, note := range out.Notes {
		p.note("%s", printable(note))
	}
}

// clientVerdict describes what a client does, and by which rule.
func clientVerdict(c *ops.ProspectClient) string {
	text := c.Verdict.Words() + ": " + ruleWithPosition(c.Rule)
	if c.Verdict == "unknown" {
		text = "is " + text
	}
	if c.Why != "" {
		text += " (" + c.Why + ")"
	}
	return text
}

// callerText describes the caller and its limits.
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
