package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/problem"
)

// permissionsFlags are the flags of `permissions`.
type permissionsFlags struct {
	check, write, dryRun, undo bool
	consent                    confirmationFlags
}

func newPermissionsCommand(r *invocation) commandSpec {
	var f permissionsFlags
	return commandSpec{
		flags:    map[string]any{"check": &f.check, "write": &f.write, "dry-run": &f.dryRun, "undo": &f.undo, "yes": &f.consent.yes},
		complete: completeFirstArgument(newFixedCompletion(clients.ClientIDs()...)),
		run: func(cmd *cobra.Command, args []string) error {
			if f.check && (f.write || f.undo || f.dryRun) || f.write && f.undo || f.undo && f.dryRun {
				return newUsageError("--check, --undo, and --write or --dry-run cannot be combined.", "Give one of them.")
			}
			env, err := newClientFileEnv(r)
			if err != nil {
				return err
			}
			switch {
			case f.undo:
				return undoPermissionChange(r, env, args[0])
			case f.check:
				return checkPermissions(r, env, args[0])
			case f.write || f.dryRun:
				return confirmAndWritePermissions(r, cmd, env, args[0], f)
			}
			return printRecommendedRules(r, env, args[0])
		},
	}
}

// printRecommendedRules prints the recommended permission rules, ready to paste. It writes nothing else to stdout.
func printRecommendedRules(r *invocation, env clients.Env, client string) error {
	tools, err := configuredBuiltinTools(r)
	if err != nil {
		return err
	}
	rules, err := permission.RecommendRules(env, client, tools, "")
	if err != nil {
		return err
	}
	return r.printOutput(rules, func(p *printer) {
		if rules.Path == "" && rules.Surface != string(clients.SurfaceSearch) {
			p.writeLine("The files of %s have no rule that permits only reads.", toPrintable(rules.Name))
		} else if rules.Path == "" {
			p.writeLine("The permissions of %s are not in a file.", toPrintable(rules.Name))
		} else {
			fmt.Fprint(p, escapeInvisible(rules.Text))
			p.addNote("The rules belong in %s. To merge them, run `mcpproxy permissions %s --write`.", toPrintable(rules.Path), rules.Client)
		}
		if rules.ByHand != "" {
			p.writeLine("%s", escapeInvisible(rules.ByHand))
		}
		p.addNotes(mapSlice(rules.Notes, toPrintable))
	})
}

// checkPermissions shows the effect of the client's permission rules. It returns an error if the effect differs from
// the recommendation.
func checkPermissions(r *invocation, env clients.Env, client string) error {
	tools, err := configuredBuiltinTools(r)
	if err != nil {
		return err
	}
	report, err := permission.CheckClient(env, client, tools)
	if err != nil {
		return err
	}
	if err := r.printOutput(report, func(p *printer) { writePermissionReport(p, report) }); err != nil || report.Right {
		return err
	}
	says := "differ from the recommended ones."
	if !slices.ContainsFunc(report.Lanes, func(l permission.Lane) bool { return !l.Right && l.Verdict != permission.Unknown }) {
		says = "are unknown: they are not in a file."
	}
	return problem.New(problem.PermissionsDiffer, "The permissions of "+report.Name+" "+says, permissionFixHint(env, tools, report))
}

// permissionFixHint returns a hint that explains how to fix a deviation from the recommendation.
func permissionFixHint(env clients.Env, tools []permission.ProxyTool, report permission.Report) string {
	plan, err := permission.PreparePlan(env, report.Client, tools)
	switch {
	case err == nil && plan.Changed:
		return "`mcpproxy permissions " + report.Client + " --dry-run` shows the fix."
	case err != nil && report.ByHand == "":
		return problem.From(err).Hint
	}
	return "The instructions are above."
}

// writePermissionReport writes the client's behaviour for each lane.
func writePermissionReport(p *printer, report permission.Report) {
	for _, lane := range report.Lanes {
		h, mark := colorGood, "✓"
		if !lane.Right {
			h, mark = colorBad, "✗"
		}
		fmt.Fprintf(p, "%s %s %s", p.colorize(h, mark), escapeInvisibleLine(lane.Tool), lane.Verdict.Words())
		if !lane.Right {
			fmt.Fprintf(p, ", recommended: %s", lane.Wanted.Words())
		}
		fmt.Fprintln(p)
		p.writeWrapped("    ", decidingRuleText(lane))
	}
	for _, skipped := range report.Ignored {
		p.addNote("%s ignores the rule %s.", toPrintable(report.Name), formatRuleWithPosition(skipped))
	}
	for _, broken := range report.Broken {
		p.addNote("%s %s", p.colorize(colorWarning, "Cannot be read:"), toPrintable(broken))
	}
	if report.ByHand != "" {
		p.addNote("%s", toPrintable(report.ByHand))
	}
	p.addNotes(mapSlice(report.Notes, toPrintable))
	p.addNote("Source: %s.", report.Basis)
}

// decidingRuleText describes the rule that decides about a lane.
func decidingRuleText(lane permission.Lane) string {
	text := formatRuleWithPosition(lane.Rule)
	if lane.Why != "" {
		text += " (" + escapeInvisibleLine(lane.Why) + ")"
	}
	return text
}

// formatRuleWithPosition returns a rule with its file and line.
func formatRuleWithPosition(rule permission.Rule) string {
	switch {
	case rule.Path == "":
		return escapeInvisibleLine(rule.Text)
	case rule.Line == 0:
		return escapeInvisibleLine(rule.Text) + ", " + escapeInvisibleLine(rule.Path)
	}
	return fmt.Sprintf("%s, %s:%d", escapeInvisibleLine(rule.Text), escapeInvisibleLine(rule.Path), rule.Line)
}

// confirmAndWritePermissions shows the planned change of the client's rules, asks, and writes it.
func confirmAndWritePermissions(r *invocation, cmd *cobra.Command, env clients.Env, client string, f permissionsFlags) error {
	tools, err := configuredBuiltinTools(r)
	if err != nil {
		return err
	}
	plan, err := permission.PreparePlan(env, client, tools)
	if err != nil {
		return err
	}
	if f.dryRun || !plan.Changed {
		return r.printOutput(permission.Outcome{Preview: plan.Preview}, func(p *printer) { writePermissionPlan(p, plan); writePermissionReport(p, plan.After) })
	}
	if r.output == formatTable {
		writePermissionPlan(r.newPrinter(r.Stderr), plan)
	}
	question := "Write this into " + toPrintable(plan.Path) + "?"
	if err := r.requireConfirmation(cmd.Context(), f.consent, question, "Review with --dry-run, then pass --yes."); err != nil {
		return err
	}
	j, err := openClientJournal(r)
	if err != nil {
		return err
	}
	out, err := plan.Apply(j)
	if err != nil {
		return err
	}
	return r.printOutput(out, func(p *printer) {
		writePermissionReport(p, out.After)
		p.addNote("Written to %s. To undo this, run `mcpproxy permissions %s --undo`.", toPrintable(plan.Path), plan.Client)
	})
}

// writePermissionPlan prints the planned change of the client's rules.
func writePermissionPlan(p *printer, plan permission.Plan) {
	if !plan.Changed {
		p.writeLine("No changes: the rules are already in %s.", toPrintable(plan.Path))
		return
	}
	p.writeLine("%s", toPrintable(plan.Path))
	if plan.Target != "" {
		p.writeLine("which is a link to %s", toPrintable(plan.Target))
	}
	writeColoredDiff(p, plan.Difference)
	for _, warning := range plan.Warnings {
		p.writeLine("%s %s", p.colorize(colorWarning, "Warning:"), toPrintable(warning))
	}
}

// undoPermissionChange undoes the last change of the client's rules.
func undoPermissionChange(r *invocation, env clients.Env, client string) error {
	j, err := openClientJournal(r)
	if err != nil {
		return err
	}
	change, err := permission.UndoLastChange(j, env, client)
	if err != nil {
		return err
	}
	return r.printOutput(change, func(p *printer) {
		p.writeLine("%s", undoneChangeText(change.Path, change.Created, change.PartlyUndone))
	})
}
