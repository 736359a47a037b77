package cli

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/upstream/registry"
)

// registryFlags are the flags of a server from a registry.
type registryFlags struct {
	name, from, option string
	args               []string
}

func newRegistrySearchCommand(r *invocation) commandSpec {
	var from string
	return commandSpec{flags: map[string]any{"from": &from}, list: true, complete: cobra.NoFileCompletions,
		run: operationRunFunc(r, api.SearchRegistry, func(_ context.Context, _ *api.Client, args []string) (ops.RegistryQuery, error) {
			return ops.RegistryQuery{Query: args[0], Registry: from}, nil
		}, writeRegistryServers)}
}

func newRegistryShowCommand(r *invocation) commandSpec {
	var from string
	return commandSpec{flags: map[string]any{"from": &from}, complete: cobra.NoFileCompletions,
		run: operationRunFunc(r, api.ShowRegistryEntry, func(_ context.Context, _ *api.Client, args []string) (ops.RegistryEntryRef, error) {
			name, version, _ := strings.Cut(args[0], "@")
			return ops.RegistryEntryRef{Name: name, Version: version, Registry: from}, nil
		}, writeRegistryEntry)}
}

func writeRegistryServers(p *printer, all ops.RegistryEntries) {
	list[ops.RegistryEntry]{
		none: "No server in the registries has a name with these characters.",
		columns: []column[ops.RegistryEntry]{
			{title: "NAME", text: func(e ops.RegistryEntry) string { return e.Name }},
			{title: "VERSION", text: func(e ops.RegistryEntry) string { return e.Version }},
			{title: "STATUS", text: func(e ops.RegistryEntry) string { return e.Status }},
			{title: "WAYS", text: usableOptions},
			{title: "FINDINGS", text: func(e ops.RegistryEntry) string { return formatScanVerdict(p, e.Verdict, len(e.Findings)) }},
			{title: "DESCRIPTION", text: func(e ops.RegistryEntry) string { return e.Description }},
		},
		narrow: slices.Concat(columnTruncationStep("DESCRIPTION", 30), columnHidingSteps("STATUS", "DESCRIPTION"), columnTruncationStep("NAME", 30), columnHidingSteps("FINDINGS", "WAYS"), columnTruncationStep("VERSION", 10), columnTruncationStep("NAME", 12), columnHidingSteps("VERSION"), columnTruncationStep("NAME", 8)),
	}.write(p, all.Servers)
	noteRegistryAnswers(p, all)
}

// usableOptions names the ways that MCPProxy can use.
func usableOptions(e ops.RegistryEntry) string {
	var ids []string
	for _, o := range e.Options {
		if o.Problem == "" {
			ids = append(ids, o.ID)
		}
	}
	return cmp.Or(strings.Join(ids, " "), "none")
}

// noteRegistryAnswers notes the age of the answers, and registries that did not answer.
func noteRegistryAnswers(p *printer, all ops.RegistryEntries) {
	for _, a := range all.Registries {
		name := toOneLine(a.Name)
		switch {
		case a.FetchedAt == nil:
			p.addNote("%s: %s.", name, toOneLine(a.Problem))
		case a.Problem != "":
			p.addNote("%s: %s. This is its stored answer (age %s).", name, toOneLine(a.Problem), p.formatAge(a.FetchedAt))
		default:
			p.addNote("Answer of %s (age %s).", name, p.formatAge(a.FetchedAt))
		}
		if a.More {
			p.addNote("%s has more servers: search for a longer name.", name)
		}
		if a.Unreadable > 0 {
			p.addNote("%s of %s left out: too large, or with a wrong type.", countWithNoun(a.Unreadable, "server"), name)
		}
	}
}

func writeRegistryEntry(p *printer, all ops.RegistryEntries) {
	e := all.Servers[0]
	f := fieldList{}
	f.add("Name", toOneLine(e.Name))
	f.add("Title", toOneLine(e.Title))
	f.add("Description", toOneLine(e.Description))
	f.add("Version", toOneLine(e.Version))
	f.add("Status", toOneLine(strings.TrimSpace(e.Status+" "+e.StatusMessage)))
	f.add("Published", p.formatAge(e.Published))
	f.add("Repository", toOneLine(e.Repository))
	f.add("Website", toOneLine(e.Website))
	f.add("Registry", toOneLine(e.Registry))
	f.add("Scanner", formatScanVerdict(p, e.Verdict, len(e.Findings)))
	f.write(p)
	writeScanFindings(p, "", e.Findings)
	for _, o := range e.Options {
		p.writeLine("\n%s: %s", o.ID, toOneLine(cmp.Or(o.URL, shellQuoteWords(o.Command...), "cannot be used: "+o.Problem)))
		for _, in := range o.Inputs {
			p.writeWrapped("  ", "`"+toOneLine(inputFlag(in))+"`: "+toOneLine(inputText(in)))
		}
	}
	noteRegistryAnswers(p, all)
	if e.Status == "" || e.Status == "active" {
		p.addNote("To add it for review, run `mcpproxy upstream add --registry %s@%s`.", e.Name, shellQuoteWord(e.Version))
	}
}

// inputFlag returns the flag that gives an input its value.
func inputFlag(in registry.Input) string {
	switch in.Kind {
	case "env":
		return "--env " + in.Name + "=…"
	case "header":
		return "--header '" + in.Name + ": …'"
	}
	return "--arg " + in.Name + "=…"
}

func inputText(in registry.Input) string {
	words := []string{}
	for text, is := range map[string]bool{"required": in.Required, "secret": in.Secret, "may be repeated": in.Repeated, "file or folder": in.Folder} {
		if is {
			words = append(words, text)
		}
	}
	slices.Sort(words)
	if in.Default != "" {
		words = append(words, "default "+in.Default)
	}
	if len(in.Choices) > 0 {
		words = append(words, "one of "+strings.Join(in.Choices, ", "))
	}
	if in.Description != "" {
		words = append(words, in.Description)
	}
	return cmp.Or(strings.Join(words, "; "), "optional")
}

// addFromRegistry adds a server of a registry. On a terminal it asks for the required secrets that are not given.
func addFromRegistry(r *invocation, ctx context.Context, c *api.Client, f registryFlags, name string, env, headers []string) error {
	entry, version, _ := strings.Cut(f.name, "@")
	in := ops.AddFromRegistryRequest{Entry: entry, Version: version, Registry: f.from, Option: f.option, Name: name, Values: slices.Concat(env, f.args)}
	sent, err := parsePairs("--header", headers, ":")
	if err != nil {
		return err
	}
	for key, value := range sent {
		in.Values = append(in.Values, key+"="+value)
	}
	for _, pair := range in.Values {
		if !strings.Contains(pair, "=") {
			return newUsageError("Invalid value for --env or --arg: it must be a name and a value, separated by '='.", "")
		}
	}
	if terminal, ok := r.Stdin.(*os.File); ok && term.IsTerminal(int(terminal.Fd())) {
		shown, err := api.ShowRegistryEntry.Call(ctx, c, ops.RegistryEntryRef{Name: entry, Version: version, Registry: f.from})
		if err != nil {
			return err
		}
		in.Version = shown.Servers[0].Version // that of the questions
		at := slices.IndexFunc(shown.Servers[0].Options, func(o registry.Option) bool { return o.ID == f.option || f.option == "" && o.Problem == "" })
		for i := 0; at >= 0 && i < len(shown.Servers[0].Options[at].Inputs); i++ {
			one := shown.Servers[0].Options[at].Inputs[i]
			if !one.Secret || !one.Required || slices.ContainsFunc(in.Values, func(pair string) bool { return strings.HasPrefix(pair, one.Name+"=") }) {
				continue
			}
			value, err := r.promptSecret(ctx, terminal, "Value of "+toOneLine(one.Name)+" (not shown; empty: later): ")
			if err != nil {
				return err
			}
			if value != "" {
				in.Values = append(in.Values, one.Name+"="+value)
			}
		}
	}
	added, err := api.AddFromRegistry.Call(ctx, c, in)
	if err != nil {
		return err
	}
	return r.printOutput(added, func(p *printer) { writeAddedFromRegistry(p, added) })
}

func writeAddedFromRegistry(p *printer, a ops.AddedFromRegistry) {
	p.writeLine("Added %s for review: %s %s. Nothing of it was started.", toOneLine(a.Server.Name), toOneLine(a.Entry.Name), toOneLine(a.Entry.Version))
	f := fieldList{indent: "  "}
	f.add("Registry", toOneLine(a.Entry.Registry))
	f.add("Launch", toOneLine(cmp.Or(a.Launch.URL, shellQuoteWords(append([]string{a.Launch.Command}, a.Launch.Args...)...))))
	f.add("Environment", toOneLine(strings.Join(a.Env, " ")))
	f.add("Headers", toOneLine(strings.Join(a.Headers, ", ")))
	f.add("Sandbox", toOneLine(a.Launch.Sandbox))
	f.add("Secrets stored", toOneLine(strings.Join(a.Stored, ", ")))
	f.add("Scanner", formatScanVerdict(p, a.Entry.Verdict, len(a.Entry.Findings)))
	f.write(p)
	writeScanFindings(p, "  ", a.Entry.Findings)
	p.addNotes(mapSlice(a.Notes, toOneLine))
	for _, name := range a.Missing {
		p.addNote("It needs a secret: run `mcpproxy secrets set %s`.", toOneLine(name))
	}
	p.addNote("To review and start it, run `mcpproxy upstream approve %s`.", shellQuoteWord(a.Server.Name))
}
