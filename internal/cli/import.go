package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// importFlags are the flags of `upstream import`.
type importFlags struct {
	keyring, noKeyring, remove, quarantined, dryRun, undo bool
	consent                                               confirmationFlags
}

func newUpstreamImportCommand(r *invocation) commandSpec {
	var f importFlags
	return commandSpec{
		flags: map[string]any{"keyring": &f.keyring, "no-keyring": &f.noKeyring, "remove": &f.remove, "quarantined": &f.quarantined,
			"dry-run": &f.dryRun, "undo": &f.undo, "yes": &f.consent.yes},
		complete: completeFirstArgument(func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return clients.ImportSourceIDs(), cobra.ShellCompDirectiveDefault // also completes file names
		}),
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			from := ""
			if len(args) > 0 {
				from = args[0]
			}
			switch {
			case f.undo && (f.keyring || f.noKeyring || f.remove || f.quarantined || f.dryRun):
				return newUsageError("--undo cannot be combined with other flags.", "`mcpproxy upstream import --undo` restores what the last import removed.")
			case f.keyring && f.noKeyring:
				return newUsageError("--keyring and --no-keyring cannot be combined.", "Give one of them.")
			case f.undo:
				return undoImportInClientFiles(r, from)
			}
			return importServers(r, ctx, c, from, f)
		}),
	}
}

// importOutput holds the found servers and the results of their import.
type importOutput struct {
	ops.Findings
	ops.Results
}

// importServers shows the found servers, asks and imports them.
func importServers(r *invocation, ctx context.Context, c *api.Client, from string, f importFlags) error {
	h, err := findImportableServers(r, ctx, c, from, f)
	if err != nil {
		return err
	}
	n := countServersToImport(h.Found)
	if r.output == formatTable {
		writeImportableServers(r.newPrinter(r.Stdout), h.Findings)
	}
	ids := serverIDsToImport(h.Found, f.remove)
	if len(ids) == 0 {
		err := r.printOutput(importOutput{h.Findings, ops.Results{Results: []ops.Result{}}}, func(p *printer) { p.writeLine("There is nothing to import.") })
		return cmp.Or(err, unreadFilesError(h.Broken), leftOutServersError(h.Findings))
	}
	o := ops.ImportOptions{Keyring: !f.noKeyring, Remove: f.remove, DryRun: f.dryRun}
	if !f.dryRun {
		if err := confirmImport(r, ctx, f, h, n, &o); err != nil {
			return err
		}
	}
	out, err := h.ImportServers(ctx, serverIDsToImport(h.Found, o.Remove), o)
	if err != nil {
		return err
	}
	if err := r.printOutput(importOutput{h.Findings, out}, func(p *printer) { writeImportResults(p, h, out.Results, o, runningDaemonURL(ctx, r) == "") }); err != nil {
		return err
	}
	return cmp.Or(failedImportError(out.Results), unreadFilesError(h.Broken))
}

// unreadFilesError returns an error for unreadable files, or nil if there are none.
func unreadFilesError(all []ops.BrokenFile) error {
	var files []string
	first := ""
	for _, b := range all {
		if b.Unread {
			files, first = append(files, toPrintable(b.Path)), cmp.Or(first, toPrintable(b.Message))
		}
	}
	switch len(files) {
	case 0:
		return nil
	case 1:
		return problem.Newf(problem.InvalidConfig, "%s cannot be read: %s", files[0], first).WithHint("Correct the file, then run the import again.")
	}
	return problem.Newf(problem.InvalidConfig, "%s cannot be read.", countWithNoun(len(files), "file")).WithHint("The reasons are above. Correct the files, then run the import again.")
}

// leftOutServersError returns an error if all servers that were found cannot be imported, or nil.
func leftOutServersError(h ops.Findings) error {
	if len(h.Found) > 0 || len(h.Broken) == 0 {
		return nil
	}
	return problem.Newf(problem.InvalidConfig, "No server can be imported: %s", toPrintable(h.Broken[0].Message)).WithHint("Correct the file, then run the import again.")
}

// serverIDsToImport returns the IDs of the servers that are not configured yet. With remove it also returns the IDs of
// the others, to remove them from the clients.
func serverIDsToImport(found []ops.Found, remove bool) (ids []string) {
	for _, s := range found {
		if !s.IsProxy && (!s.AlreadyAdded || remove) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// importCounts holds the number of servers that are not configured yet and of their secrets.
type importCounts struct{ servers, secrets int }

// countServersToImport counts the servers that are not configured yet and their plain-text secrets. It counts each name
// once and skips MCPProxy itself.
func countServersToImport(found []ops.Found) (n importCounts) {
	counted := map[string]bool{}
	for _, s := range found {
		if !s.IsProxy && !s.AlreadyAdded && !counted[s.Name] {
			counted[s.Name] = true
			n.servers++
			n.secrets += len(s.Secrets)
		}
	}
	return n
}

// confirmImport asks the user to confirm the import and its options. Without a question, the user has not seen the
// launch commands, so the servers need a review.
func confirmImport(r *invocation, ctx context.Context, f importFlags, h *ops.FoundServers, n importCounts, o *ops.ImportOptions) (err error) {
	const hint = "Review with --dry-run, then pass --yes. Servers that are imported with --yes wait for review."
	question := "Import " + countWithNoun(n.servers, "server") + " and start " + map[bool]string{true: "it", false: "them"}[n.servers == 1] + "?"
	switch {
	case n.servers == 0:
		question = "Remove the already imported servers from the clients' files?"
	case f.quarantined:
		question = "Import " + countWithNoun(n.servers, "server") + ", for review before they start?"
	}
	if err := r.requireConfirmation(ctx, f.consent, question, hint); err != nil {
		return err
	}
	o.Confirmed = !f.consent.yes && !f.quarantined
	if f.consent.yes {
		return nil
	}
	if n.secrets > 0 && !f.keyring && !f.noKeyring {
		question := "Keep " + countWithNoun(n.secrets, "secret") + " in the keyring instead of the configuration file?"
		if o.Keyring, err = askYesNo(r, ctx, question); err != nil {
			return err
		}
	}
	if !f.remove && slices.ContainsFunc(h.Found, isInUserFile) {
		question := "Remove them from the clients' files after the import? (--undo restores them)"
		if slices.ContainsFunc(h.Found, func(s ops.Found) bool { return s.AlreadyAdded && isInUserFile(s) }) {
			question = "Remove these and the already imported servers from the clients' files? (--undo restores them)"
		}
		o.Remove, err = askYesNo(r, ctx, question)
	}
	return err
}

// isInUserFile reports whether a server is in a client file of the user, not of a project.
func isInUserFile(s ops.Found) bool {
	return s.Client != "" && s.Scope != clients.Project && !s.IsProxy
}

// findImportableServers finds servers in the files of all clients or one client, in a given file or in stdin.
func findImportableServers(r *invocation, ctx context.Context, c *api.Client, from string, f importFlags) (*ops.FoundServers, error) {
	env, err := newClientFileEnv(r)
	if err != nil {
		return nil, err
	}
	here, err := newImportTarget(r, c)
	if err != nil {
		return nil, err
	}
	account := ops.NewImporter(env, func() (*clients.Journal, error) { return openClientJournal(r) })
	_, unknown := clients.FindImportSource(from)
	if from == "" || unknown == nil {
		return account.FindServers(ctx, here, from)
	}
	text, err := readFileOrStdin(r, from)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(from, `/\`):
		return nil, unknown
	case err != nil:
		return nil, problem.Newf(problem.InvalidParameter, "%s cannot be read: %v.", toPrintable(from), err).WithHint("Give the name of a client, the path of a file, or - for stdin.")
	case f.remove:
		return nil, newUsageError("--remove requires the name of a client.", "For example: mcpproxy upstream import cursor --remove")
	}
	if from == "-" {
		from = "stdin"
	}
	return account.FindServersInText(ctx, here, from, text)
}

// readFileOrStdin reads a file, or stdin if path is "-". The size limit of clients' files applies.
func readFileOrStdin(r *invocation, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(r.Stdin, textedit.MaxSize+1))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, textedit.MaxSize+1))
}

// newImportTarget returns the target of an import. It is the daemon or, if none is running, the configuration file and
// the keyring.
func newImportTarget(r *invocation, c *api.Client) (here ops.ImportTarget, err error) {
	live, err := r.openConfig()
	if err != nil {
		return here, err
	}
	kept, err := r.openLocalSecrets()
	if err != nil {
		return here, err
	}
	return ops.ImportTarget{
		ConfigText: live.ReadFile, CheckNotSelf: live.CheckNotSelfReference, ReadSecret: kept.Store.Get,
		ServerNames: func(ctx context.Context) ([]string, error) {
			all, err := api.ListServers.Call(ctx, c, ops.Nothing{})
			if api.IsDaemonAbsentError(err) {
				return mapSlice(live.Current().Servers, func(s config.Server) string { return s.Name }), nil
			}
			return mapSlice(all.Servers, func(s ops.ServerRow) string { return s.Name }), err
		},
		StoreSecret: func(ctx context.Context, name, value string) error {
			in := ops.SetSecretRequest{Name: name, Value: value}
			_, err := callDaemonOrLocalSecrets(r, ctx, c, api.SetSecret, in, func(s ops.SecretManager) (ops.SecretView, error) { return s.Set(ctx, in) })
			return err
		},
		DeleteSecret: func(ctx context.Context, name string) error {
			in := ops.SecretRef{Name: name}
			_, err := callDaemonOrLocalSecrets(r, ctx, c, api.DeleteSecret, in, func(s ops.SecretManager) (ops.SecretView, error) { return s.Delete(ctx, in) })
			return err
		},
		AddServers: func(ctx context.Context, all []ops.AddServerRequest) ([]ops.ServerView, []error, error) {
			added, err := api.AddServers.Call(ctx, c, ops.AddServersRequest{Servers: all})
			if api.IsDaemonAbsentError(err) {
				return ops.AddServersOneByOneFunc(ops.NewOfflineAdmin(live).AddServer)(ctx, all)
			}
			views, refused := added.ViewsAndErrors()
			return views, refused, err
		},
		ChangeServer: func(ctx context.Context, in ops.ServerChange) error {
			_, err := callDaemonOrOffline(r, ctx, c, api.ChangeServer, api.Change{ServerChange: in}, func(f ops.OfflineAdmin, in api.Change) (ops.ServerView, error) {
				return f.ChangeServer(in.ServerChange)
			})
			return err
		},
	}, nil
}

// writeImportableServers writes each found server once, with all clients that have it.
func writeImportableServers(p *printer, all ops.Findings) {
	var order []string
	by := map[string][]ops.Found{}
	for _, s := range all.Found {
		if s.IsProxy {
			continue
		}
		if by[s.Name] == nil {
			order = append(order, s.Name)
		}
		by[s.Name] = append(by[s.Name], s)
	}
	for _, name := range order {
		writeImportableServer(p, by[name])
	}
	for _, s := range all.Found {
		if s.IsProxy {
			p.writeLine("Not imported: %s of %s is MCPProxy itself.", escapeInvisibleLine(s.Called), clientNameOrPath(s))
		}
	}
	for _, b := range all.Broken {
		p.writeLine("%s %s: %s", p.colorize(colorWarning, "Left out:"), escapeInvisibleLine(b.Path), escapeInvisibleLine(b.Message))
	}
	if len(all.Found)+len(all.Broken) > 0 {
		fmt.Fprintln(p)
	}
}

// clientNameOrPath returns the name of the client that has a server, or the path of its file.
func clientNameOrPath(s ops.Found) string { return escapeInvisibleLine(cmp.Or(s.ClientName, s.Path)) }

// writeImportableServer writes the launch command of one server, with hidden characters made visible.
func writeImportableServer(p *printer, all []ops.Found) {
	s := all[0]
	f := fieldList{indent: "  "}
	var from, notes []string
	for _, one := range all {
		place := clientNameOrPath(one)
		if one.ClientName != "" {
			place += ", " + escapeInvisibleLine(one.Path)
		}
		if one.Target != "" {
			place += ", a link to " + escapeInvisibleLine(one.Target)
		}
		if one.Called != s.Name {
			place += ", as " + escapeInvisibleLine(one.Called)
		}
		from = append(from, place)
		for _, note := range one.Notes {
			if !slices.Contains(notes, escapeInvisibleLine(note)) && !strings.HasPrefix(note, "it is the same server as ") { // shown in From
				notes = append(notes, escapeInvisibleLine(note))
			}
		}
	}
	f.add("From", strings.Join(from, "\n"))
	l := s.Launch
	if l.Command != "" {
		f.add("Command", shellQuoteWords(append([]string{l.Command}, l.Args...)...))
	}
	f.add("URL", escapeInvisibleLine(l.URL))
	f.add("Directory", escapeInvisibleLine(l.WorkingDir))
	f.add("Environment", formatPairs(l.Env, "="))
	f.add("Headers", formatPairs(l.Headers, ": "))
	f.add("Plain text", plaintextSecretsText(s))
	f.add("Notes", strings.Join(notes, "\n"))
	state := ""
	if s.AlreadyAdded {
		state = ": already added"
	}
	p.writeLine("%s%s", escapeInvisibleLine(s.Name), state)
	f.write(p)
}

func formatPairs(values map[string]string, between string) string {
	return strings.Join(mapSlice(slices.Sorted(maps.Keys(values)), func(name string) string {
		return escapeInvisibleLine(name) + between + escapeInvisibleLine(values[name])
	}), "\n")
}

// plaintextSecretsText lists the plain-text secrets and their names in the keyring.
func plaintextSecretsText(s ops.Found) string {
	return strings.Join(mapSlice(s.Secrets, func(c ops.InClear) string {
		return escapeInvisibleLine(c.Place) + ", in the keyring " + escapeInvisibleLine(c.Name)
	}), "\n")
}

// writeImportResults writes the results of an import.
func writeImportResults(p *printer, h *ops.FoundServers, all []ops.Result, o ops.ImportOptions, offline bool) {
	by := map[string]ops.Found{}
	for _, s := range h.Found {
		by[s.ID] = s
	}
	var added, review, kept []string
	out := map[string][]string{} // file → servers removed from it
	for _, r := range all {
		switch {
		case o.DryRun && r.State == "" && !slices.Contains(added, escapeInvisibleLine(r.Name)):
			added = append(added, escapeInvisibleLine(r.Name))
		case r.State == "review" && r.Added:
			review = append(review, escapeInvisibleLine(r.Name))
		case r.Added:
			added = append(added, escapeInvisibleLine(r.Name))
		}
		if r.Added || o.DryRun {
			kept = append(kept, r.Secrets...)
		}
		if s := by[r.ID]; r.Removed || o.DryRun && o.Remove && s.Client != "" && s.Scope != clients.Project {
			out[s.Path] = append(out[s.Path], escapeInvisibleLine(s.Called))
		}
	}
	slices.Sort(kept)
	kept = slices.Compact(kept)
	if len(added) > 0 {
		p.writeLine("%s %s.", map[bool]string{true: "Would import", false: "Imported"}[o.DryRun], strings.Join(added, ", "))
	}
	switch {
	case len(added) == 0 || o.DryRun:
	case offline:
		p.addNote(notRunningMessage)
	default:
		p.addNote("Check their state with `mcpproxy upstream list`.")
	}
	if len(review) > 0 {
		p.writeLine("Imported for review: %s.", strings.Join(review, ", "))
		p.addNote("To approve and start it, run `mcpproxy upstream approve %s`%s.", shellQuoteWord(review[0]), map[bool]string{true: ", and so on"}[len(review) > 1])
	}
	if len(kept) > 0 {
		p.writeLine("%s as secrets: %s.", map[bool]string{true: "Would be stored", false: "Stored"}[o.DryRun], strings.Join(kept, ", "))
	}
	for _, path := range slices.Sorted(maps.Keys(out)) {
		p.writeLine("%s from %s: %s.", map[bool]string{true: "Would be removed", false: "Removed"}[o.DryRun], toPrintable(path), strings.Join(out[path], ", "))
	}
	if len(out) > 0 && !o.DryRun {
		p.addNote("To restore them, run `mcpproxy upstream import --undo`.")
		noteClientNextSteps(p, h.Found, all)
	}
	for _, r := range all {
		if s := by[r.ID]; o.Remove && s.Scope == clients.Project {
			p.addNote("%s stays in %s, because that file belongs to a project.", escapeInvisibleLine(s.Called), toPrintable(s.Path))
		}
		if r.Problem != nil {
			p.addNote("%s: %s %s", escapeInvisibleLine(r.Name), toPrintable(r.Problem.Message), toPrintable(r.Problem.Hint))
		}
	}
}

// noteClientNextSteps adds notes about the next steps for clients whose files were changed.
func noteClientNextSteps(p *printer, found []ops.Found, all []ops.Result) {
	for _, c := range clients.AllClients() {
		left := slices.ContainsFunc(found, func(s ops.Found) bool {
			return s.Client == c.ID && slices.ContainsFunc(all, func(r ops.Result) bool { return r.ID == s.ID && r.Removed })
		})
		if !left {
			continue
		}
		if !slices.ContainsFunc(found, func(s ops.Found) bool { return s.Client == c.ID && s.IsProxy }) {
			p.addNote("To use these servers in %s, connect it to MCPProxy: run `mcpproxy connect %s`.", c.Name, c.ID)
		}
		if c.Reload != "" {
			p.addNote("%s: %s", c.Name, c.Reload)
		}
	}
}

// failedImportError returns an error for servers that failed, or nil if there are none.
func failedImportError(all []ops.Result) error {
	failed := slices.DeleteFunc(slices.Clone(all), func(r ops.Result) bool { return r.Problem == nil })
	if len(failed) == 0 {
		return nil
	}
	return problem.Newf(failed[0].Problem.Code, "%s could not be imported.", countWithNoun(len(failed), "server")).
		WithHint("The reasons are above. The others were imported.")
}

// undoImportInClientFiles restores the servers that the last import removed from clients' files.
func undoImportInClientFiles(r *invocation, client string) error {
	env, err := newClientFileEnv(r)
	if err != nil {
		return err
	}
	all, err := ops.NewImporter(env, func() (*clients.Journal, error) { return openClientJournal(r) }).RestoreClientFiles(client)
	if len(all) == 0 && err != nil {
		return err
	}
	if wrong := r.printOutput(all, func(p *printer) {
		for _, change := range all {
			p.writeLine("%s", undoneChangeText(change.Path, change.Created, change.PartlyUndone))
		}
	}); wrong != nil {
		return wrong
	}
	return err
}
