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
	consent                    consent
}

func permissionsCommand(r *run) command {
	var f permissionsFlags
	return command{
		flags:    map[string]any{"check": &f.check, "write": &f.write, "dry-run": &f.dryRun, "undo": &f.undo, "yes": &f.consent.yes},
		complete: firstOnly(fixed(clients.ClientIDs()...)),
		run: func(cmd *cobra.Command, args []string) error {
			if f.check && (f.write || f.undo || f.dryRun) || f.write && f.undo || f.undo && f.dryRun {
				return usage("--check, --undo, and --write or --dry-run exclude one another.", "Give one of them.")
			}
			env, err := clientsEnv(r)
			if err != nil {
				return err
			}
			switch {
			case f.undo:
				return undoPermissions(r, env, args[0])
			case f.check:
				return checkPermissions(r, env, args[0])
			case f.write || f.dryRun:
				return writePermissions(r, cmd, env, args[0], f)
			}
			return showRules(r, env, args[0])
		},
	}
}

// showRules prints the rules, ready to paste: only they go to stdout.
func showRules(r *run, env clients.Env, client string) error {
	tools, err := builtinTools(r)
	if err != nil {
		return err
	}
	rules, err := permission.RecommendRules(env, client, tools)
	if err != nil {
		return err
	}
	return r.print(rules, func(p *printer) {
		if rules.Path == "" {
			p.line("No file holds the permissions of %s.", printable(rules.Name))
		} else {
			fmt.Fprint(p, visible(rules.Text))
			p.note("These belong into %s. `mcpproxy permissions %s --write` merges them in.", printable(rules.Path), rules.Client)
		}
		if rules.ByHand != "" {
			p.line("%s", visible(rules.ByHand))
		}
		for _, note := range rules.Notes {
			p.note("%s", printable(note))
		}
	})
}

// checkPermissions shows what the client does. A deviation from the recommendation is an error.
func checkPermissions(r *run, env clients.Env, client string) error {
	tools, err := builtinTools(r)
	if err != nil {
		return err
	}
	report, err := permission.CheckClient(env, client, tools)
	if err != nil {
		return err
	}
	if err := r.print(report, func(p *printer) { writeVerdict(p, report) }); err != nil || report.Right {
		return err
	}
	says := "not what MCPProxy recommends."
	if !slices.ContainsFunc(report.Lanes, func(l permission.Lane) bool { return !l.Right && l.Verdict != permission.Unknown }) {
		says = "not known: no file says it."
	}
	return problem.New(problem.PermissionsDiffer, "What "+report.Name+" does is "+says, permissionsHint(env, tools, report))
}

// permissionsHint returns what helps against a deviation.
func permissionsHint(env clients.Env, tools []permission.ProxyTool, report permission.Report) string {
	plan, err := permission.PreparePlan(env, report.Client, tools)
	switch {
	case err == nil && plan.Changed:
		return "`mcpproxy permissions " + report.Client + " --dry-run` shows what would change it."
	case err != nil && report.ByHand == "":
		return problem.From(err).Hint
	}
	return "What a person does about it stands above."
}

// writeVerdict writes the lanes, one per line.
func writeVerdict(p *printer, report permission.Report) {
	for _, lane := range report.Lanes {
		h, mark := hueGood, "✓"
		if !lane.Right {
			h, mark = hueBad, "✗"
		}
		fmt.Fprintf(p, "%s %s %s", p.paint(h, mark), visibleLine(lane.Tool), lane.Verdict.Words())
		if !lane.Right {
			fmt.Fprintf(p, ", recommended: %s", lane.Wanted.Words())
		}
		fmt.Fprintln(p)
		p.text("    ", decidingRule(lane))
	}
	for _, skipped := range report.Ignored {
		p.note("%s skips the rule %s.", printable(report.Name), ruleWithPosition(skipped))
	}
	for _, broken := range report.Broken {
		p.note("%s %s", p.paint(hueWarning, "Cannot be read:"), printable(broken))
	}
	if report.ByHand != "" {
		p.note("%s", printable(report.ByHand))
	}
	for _, note := range report.Notes {
		p.note("%s", printable(note))
	}
	p.note("How sure this is: %s.", report.Basis)
}

// decidingRule returns the rule that decides about a lane.
func decidingRule(lane permission.Lane) string {
	text := ruleWithPosition(lane.Rule)
	if lane.Why != "" {
		text += " (" + visibleLine(lane.Why) + ")"
	}
	return text
}

// ruleWithPosition returns a rule with its file and line.
func ruleWithPosition(rule permission.Rule) string {
	switch {
	case rule.Path == "":
		return visibleLine(rule.Text)
	case rule.Line == 0:
		return visibleLine(rule.Text) + ", " + visibleLine(rule.Path)
	}
	return fmt.Sprintf("%s, %s:%d", visibleLine(rule.Text), visibleLine(rule.Path), rule.Line)
}

// writePermissions shows the planned change, asks, and writes.
func writePermissions(r *run, cmd *cobra.Command, env clients.Env, client string, f permissionsFlags) error {
	tools, err := builtinTools(r)
	if err != nil {
		return err
	}
	plan, err := permission.PreparePlan(env, client, tools)
	if err != nil {
		return err
	}
	if f.dryRun || !plan.Changed {
		return r.print(permission.Outcome{Preview: plan.Preview}, func(p *printer) { writePlan(p, plan); writeVerdict(p, plan.After) })
	}
	if r.output == formatTable {
		writePlan(r.printer(r.Stderr), plan)
	}
	question := "Write this into " + printable(plan.Path) + "?"
	if err := r.confirm(cmd.Context(), f.consent, question, "Look with --dry-run, then give --yes."); err != nil {
		return err
	}
	j, err := clientChanges(r)
	if err != nil {
		return err
	}
	out, err := plan.Apply(j)
	if err != nil {
		return err
	}
	return r.print(out, func(p *printer) {
		writeVerdict(p, out.After)
		p.note("Written to %s. `mcpproxy permissions %s --undo` takes it back.", printable(plan.Path), plan.Client)
	})
}

// writePlan writes the planned change.
func writePlan(p *printer, plan permission.Plan) {
	if !plan.Changed {
		p.line("Nothing changes: the rules are in %s.", printable(plan.Path))
		return
	}
	p.line("%s", printable(plan.Path))
	if plan.Target != "" {
		p.line("which is a link to %s", printable(plan.Target))
	}
	writeDiffLines(p, plan.Difference)
	for _, warning := range plan.Warnings {
		p.line("%s %s", p.paint(hueWarning, "Warning:"), printable(warning))
	}
}

// undoPermissions undoes the last change.
func undoPermissions(r *run, env clients.Env, client string) error {
	j, err := clientChanges(r)
	if err != nil {
		return err
	}
	change, err := permission.UndoLastChange(j, env, client)
	if err != nil {
		return err
	}
	return r.print(change, func(p *printer) {
		p.line("%s", undoneText(change.Path, change.Created, change.PartlyUndone))
	})
}
