package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

func writeOutdated(p *printer, all ops.OutdatedList) {
	list[ops.ServerVersions]{
		none: "No server is started with npx, uvx or docker run.",
		columns: []column[ops.ServerVersions]{
			{title: "NAME", text: func(s ops.ServerVersions) string { return s.Name }},
			{title: "PACKAGE", text: func(s ops.ServerVersions) string { return s.Package }},
			{title: "PINNED", text: func(s ops.ServerVersions) string { return versionOf(s.Pinned, "no") }},
			{title: "NEWEST", text: func(s ops.ServerVersions) string { return versionOf(s.Newest, "unknown") }},
			{title: "AGE", text: func(s ops.ServerVersions) string { return versionAge(s.Newest) }},
			{title: "NOTE", text: versionNote},
		},
		narrow: slices.Concat(columnTruncationStep("NOTE", 30), columnTruncationStep("PACKAGE", 20), columnHidingSteps("AGE", "NOTE"), columnTruncationStep("NAME", 12), columnHidingSteps("PACKAGE"), columnTruncationStep("NAME", 8)),
	}.write(p, all.Servers)
	for _, s := range all.Servers {
		for _, w := range s.Warnings {
			p.addNote("%s: %s", toOneLine(s.Name), toOneLine(w))
		}
	}
}

func versionNote(s ops.ServerVersions) string {
	switch {
	case s.Problem != "":
		return s.Problem
	case s.Outdated:
		return "mcpproxy upstream update " + s.Name
	}
	return "up to date"
}

func versionOf(v *ops.VersionView, none string) string {
	if v == nil {
		return none
	}
	return v.Version
}

func versionAge(v *ops.VersionView) string {
	if v == nil || v.Published == nil {
		return "unknown"
	}
	return formatUptime(time.Since(*v.Published))
}

// writeVersions shows the versions of one server.
func writeVersions(p *printer, s ops.ServerVersions) {
	var f fieldList
	f.add("Server", toOneLine(s.Name))
	f.add("Package", toOneLine(s.Package))
	for _, one := range []struct {
		name string
		v    *ops.VersionView
	}{{"Pinned", s.Pinned}, {"New", s.Newest}} {
		if one.v == nil {
			f.add(one.name, "none")
			continue
		}
		text := one.v.Version + ", published " + versionAge(one.v) + " ago"
		if one.v.Published == nil {
			text = one.v.Version
		}
		if one.v.Publisher != "" {
			text += " by " + one.v.Publisher
		}
		f.add(one.name, toOneLine(text))
		f.add("  integrity", toOneLine(one.v.Integrity))
	}
	f.write(p)
	for _, w := range s.Warnings {
		p.writeWrapped("", p.colorize(colorWarning, "Warning:")+" "+toOneLine(w))
	}
}

// writeTrial shows the definitions that differ.
func writeTrial(p *printer, s ops.ServerVersions) {
	p.writeLine("\n%s of the new version: %d changed, added or removed, %d unchanged.", "Definitions", len(s.Changes), s.Unchanged)
	for _, c := range s.Changes {
		p.writeWrapped("", "\n"+p.colorize(colorWarning, c.Change)+" "+cmp.Or(string(c.Kind), "tool")+" "+toOneLine(c.Name))
		for _, d := range c.Changes {
			p.writeWrapped("  ", toPrintable(fmt.Sprintf("%s %s: %s → %s", d.Kind, d.Path, d.Old, d.New)))
		}
		if c.Change == "added" {
			p.writeWrapped("  ", toPrintable(string(c.Definition)))
		}
		for _, found := range c.Findings {
			p.writeWrapped("  ", p.colorize(colorBad, "Finding:")+" "+toPrintable(fmt.Sprint(found.Rule, " ", found.Path)))
		}
	}
}

func newUpstreamUpdateCommand(r *invocation) commandSpec {
	var in ops.UpdateRequest
	var said confirmationFlags
	dry := false
	return commandSpec{flags: map[string]any{"version": &in.Version, "dry-run": &dry, "yes": &said.yes}, run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
		in.Name = args[0]
		s, err := api.UpdateServer.Call(ctx, c, in)
		if err != nil {
			return err
		}
		if dry || !s.Outdated {
			return r.printOutput(s, func(p *printer) {
				writeVersions(p, s)
				if !s.Outdated {
					p.writeLine("The server starts this version already.")
				}
			})
		}
		if r.output == formatTable {
			writeVersions(r.newPrinter(r.Stderr), s)
		}
		isolation := "It is not in a sandbox: its code runs with your rights."
		if s.Sandbox {
			isolation = "It runs in the sandbox of the server."
		}
		if err := r.requireConfirmation(ctx, said, "Start version "+toOneLine(s.Newest.Version)+" next to the running one? "+isolation, "Pass --yes, or --dry-run."); err != nil {
			return err
		}
		in.Version, in.Start = s.Newest.Version, true
		tried, err := api.UpdateServer.Call(ctx, c, in)
		if err != nil {
			return err
		}
		if tried.Newest == nil || tried.Newest.Integrity != s.Newest.Integrity {
			return problem.New(problem.Conflict, "The version was replaced at the registry in the meantime.", "Run the update again.")
		}
		if r.output == formatTable {
			writeTrial(r.newPrinter(r.Stderr), tried)
		}
		switchNow := said
		switchNow.yes = said.yes && len(tried.Changes) == 0
		if err := r.requireConfirmation(ctx, switchNow, "Switch to version "+toOneLine(tried.Newest.Version)+", and approve these definitions?", "Its definitions changed: confirm the update on a terminal."); err != nil {
			return err
		}
		done, err := api.UpdateServer.Call(ctx, c, ops.UpdateRequest{ServerRef: in.ServerRef, Approve: tried.Approval})
		if err != nil {
			return err
		}
		return r.printOutput(done, func(p *printer) { writeSwitched(p, done) })
	})}
}

func newUpstreamRollbackCommand(r *invocation) commandSpec {
	var said confirmationFlags
	return commandSpec{flags: map[string]any{"yes": &said.yes}, run: operationRunFunc(r, api.RollBackServer, func(ctx context.Context, _ *api.Client, args []string) (ops.ServerRef, error) {
		return ops.ServerRef{Name: args[0]}, r.requireConfirmation(ctx, said, "Switch "+toOneLine(args[0])+" back to the version before its last update?", "Pass --yes.")
	}, writeSwitched)}
}

func writeSwitched(p *printer, s ops.ServerVersions) {
	p.writeLine("%s now starts version %s of %s, and nothing else.", escapeInvisibleLine(s.Name), escapeInvisibleLine(versionOf(s.Pinned, "")), escapeInvisibleLine(s.Package))
	if s.Problem != "" {
		p.writeWrapped("", p.colorize(colorWarning, "Warning:")+" "+toOneLine(s.Problem))
	}
	if s.LeftToReview > 0 {
		p.writeLine("%s: review with `mcpproxy approvals`.", waitingDefinitions(s.LeftToReview))
	}
}

func waitingDefinitions(n int) string { return countWithNoun(n, "definition") + " await approval" }
