package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/process"
)

// connectFlags are the flags of `connect` and `disconnect`.
type connectFlags struct {
	all, dryRun, undo bool
	options           ops.ConnectOptions
	consent           confirmationFlags
}

func newConnectCommand(r *invocation) commandSpec {
	var f connectFlags
	spec := newClientFilesCommand(r, &f, func(ctx context.Context, c *connectRun, args []string) (err error) {
		if f.options.Token != "" && (f.all || len(args) > 1) {
			return newUsageError("A token is for one client.", "Connect one client at a time, each with its own token.")
		}
		if f.all {
			chosen := f.options.Surface != "" // the surface of connected clients changes, too
			if args, err = c.findClientIDs(func(v ops.ClientView) bool {
				return v.Found && (chosen || !v.Connected || v.Foreign || v.Missing != "")
			}, "No MCP client to connect was found."); err != nil {
				return err
			}
		}
		done, err := c.confirmAndApply(ctx, args, func(client string) (ops.ConnectPlan, error) { return c.account.PlanConnect(client, f.options) }, "Connect")
		err = errors.Join(err, c.offerPermissionRules(ctx, done))
		if len(done) > 0 && runningDaemonURL(ctx, r) == "" {
			r.printMessage(notRunningMessage)
		}
		return err
	})
	spec.flags["profile"], spec.flags["token"], spec.flags["surface"] = &f.options.Profile, &f.options.Token, &f.options.Surface
	return spec
}

func newDisconnectCommand(r *invocation) commandSpec {
	var f connectFlags
	return newClientFilesCommand(r, &f, func(ctx context.Context, c *connectRun, args []string) (err error) {
		if f.all {
			if args, err = c.findClientIDs(func(v ops.ClientView) bool { return v.Connected }, "No MCP client is connected."); err != nil {
				return err
			}
		}
		_, err = c.confirmAndApply(ctx, args, c.account.PlanDisconnect, "Disconnect")
		return err
	})
}

// newClientFilesCommand returns a command that changes the files of the named clients or undoes its last change.
func newClientFilesCommand(r *invocation, f *connectFlags, change func(ctx context.Context, c *connectRun, clients []string) error) commandSpec {
	return commandSpec{
		flags:    map[string]any{"all": &f.all, "dry-run": &f.dryRun, "undo": &f.undo, "yes": &f.consent.yes},
		args:     cobra.ArbitraryArgs,
		complete: newFixedCompletion(clients.ClientIDs()...),
		run: func(cmd *cobra.Command, args []string) error {
			c, err := newConnectRun(r, cmd, args, *f)
			switch {
			case err != nil:
				return err
			case f.undo:
				return c.undoLastChanges(args)
			}
			return change(cmd.Context(), c, args)
		},
	}
}

// connectRun is one run of connect or disconnect.
type connectRun struct {
	*invocation
	flags   connectFlags
	account *ops.LocalClients
}

func newConnectRun(r *invocation, cmd *cobra.Command, args []string, f connectFlags) (*connectRun, error) {
	switch {
	case len(args) == 0 && !f.all:
		return nil, newUsageError("Missing argument: client.", "Name one of "+strings.Join(clients.ClientIDs(), ", ")+"; or pass --all for all installed clients.")
	case f.all && (len(args) > 0 || f.undo):
		return nil, newUsageError("--all takes no client names and no --undo.", "Give either --all or the names of clients.")
	case f.undo && (f.dryRun || f.options != ops.ConnectOptions{}):
		return nil, newUsageError("--undo cannot be combined with other flags.", "Give it alone.")
	}
	account, err := newLocalClients(cmd.Context(), r)
	return &connectRun{r, f, account}, err
}

// findClientIDs returns the IDs of the clients that match. It returns an error with the text none if no client matches.
func (c *connectRun) findClientIDs(wanted func(ops.ClientView) bool, none string) ([]string, error) {
	all, err := c.account.ListClients()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, v := range all.Clients {
		if wanted(v) {
			ids = append(ids, v.ID)
		}
	}
	if len(ids) == 0 {
		return nil, problem.New(problem.NotFound, none, "`mcpproxy connect CLIENT` supports "+strings.Join(clients.ClientIDs(), ", ")+".")
	}
	return ids, nil
}

// connectResult holds the results for all clients.
type connectResult struct {
	Clients []ops.FileChange `json:"clients"`
	Failed  []itemWithError  `json:"failed"`
}

// confirmAndApply shows the planned changes, asks once and applies them. After a failure of one client, it continues
// with the others. It returns the clients whose files were written.
func (c *connectRun) confirmAndApply(ctx context.Context, ids []string, prepare func(string) (ops.ConnectPlan, error), verb string) (written []string, err error) {
	out := connectResult{[]ops.FileChange{}, []itemWithError{}}
	var plans []ops.ConnectPlan
	var names []string
	var first error
	fail := func(client string, err error) {
		first = errors.Join(first, err)
		out.Failed = append(out.Failed, itemWithError{client, problem.From(err)})
	}
	for _, id := range ids {
		plan, err := prepare(id)
		switch {
		case err != nil:
			fail(id, err)
		case c.flags.dryRun || !plan.Changed:
			out.Clients = append(out.Clients, plan.FileChange)
		default:
			plans, names = append(plans, plan), append(names, plan.Name)
		}
	}
	if len(plans) > 0 {
		if c.output == formatTable {
			p := c.newPrinter(c.Stderr)
			for _, plan := range plans {
				writePlannedFileChange(p, plan.FileChange)
			}
		}
		if err := c.requireConfirmation(ctx, c.flags.consent, verb+" "+joinNamesInSentence(names)+"?", "Review with --dry-run, then pass --yes."); err != nil {
			return nil, err
		}
	}
	for _, plan := range plans {
		if plan.Command != nil { // some commands take ten seconds
			c.printMessage("Running `%s`.", toPrintable(strings.Join(plan.Command, " ")))
		}
		done, err := c.account.ApplyPlan(ctx, ops.Caller{}, plan)
		if err != nil {
			fail(plan.Client, err)
			continue
		}
		out.Clients, written = append(out.Clients, done), append(written, done.Client)
	}
	if len(ids) == 1 && first != nil {
		return nil, first
	}
	if err := c.printOutput(out, func(p *printer) { writeConnectResult(p, out, verb) }); err != nil || first == nil {
		return written, err
	}
	return written, problem.Newf(out.Failed[0].Error.Code, "%s could not be changed.", countWithNoun(len(out.Failed), "client")).WithHint("The errors are above. The other clients were changed.")
}

// joinNamesInSentence joins names as in "a, b and c".
func joinNamesInSentence(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// writePlannedFileChange writes the planned change of a client's file.
func writePlannedFileChange(p *printer, o ops.FileChange) {
	if !o.Changed {
		p.writeLine("%s: no change, %s already has the entry.", toPrintable(o.Name), toPrintable(o.Path))
		return
	}
	p.writeLine("%s: %s%s", toPrintable(o.Name), toPrintable(o.Path), surfaceNote(o.Surface))
	if o.Target != "" {
		p.writeLine("which is a link to %s", toPrintable(o.Target))
	}
	if o.Command != nil {
		p.writeLine("by its own command: %s", toPrintable(strings.Join(o.Command, " ")))
	}
	if o.Difference != "" {
		writeColoredDiff(p, o.Difference)
	}
	if o.Rules != nil {
		p.writeLine("and its permission rules, in %s", toPrintable(o.Rules.Path))
		writeColoredDiff(p, o.Rules.Difference)
	}
	for _, warning := range o.Warnings {
		p.writeLine("%s %s", p.colorize(colorWarning, "Warning:"), toPrintable(warning))
	}
}

// surfaceNote returns a note about the client's surface for the end of a line, or "" if the surface is not known.
func surfaceNote(surface string) string {
	if surface == "" {
		return ""
	}
	return ", surface " + surface
}

func writeConnectResult(p *printer, out connectResult, verb string) {
	for _, o := range out.Clients {
		if !o.Written {
			writePlannedFileChange(p, o)
			continue
		}
		note := ""
		if verb == "Connect" {
			note = surfaceNote(o.Surface)
		}
		p.writeLine("%s %s: %sed in %s%s.", p.colorize(colorGood, "✓"), toPrintable(o.Name), strings.ToLower(verb), toPrintable(o.Path), note)
		if o.Rules != nil && o.Rules.Written {
			p.writeWrapped("    ", "Its permission rules are in "+toPrintable(o.Rules.Path)+".")
		}
		for _, warning := range o.Warnings {
			p.writeWrapped("    ", toPrintable(warning))
		}
		if o.Next != "" {
			p.writeWrapped("    ", toPrintable(o.Next))
		}
	}
	for _, f := range out.Failed {
		p.writeLine("%s %s: %s %s", p.colorize(colorBad, "✗"), toPrintable(f.Name), toPrintable(f.Error.Message), toPrintable(f.Error.Hint))
	}
	if at := slices.IndexFunc(out.Clients, func(o ops.FileChange) bool { return o.Written }); at >= 0 {
		p.addNote("To undo this, run `mcpproxy %s %s --undo`.", strings.ToLower(verb), out.Clients[at].Client)
	}
}

// offerPermissionRules shows the recommended permission rules and writes them if the user agrees. With --yes it only
// prints the command that writes them.
func (c *connectRun) offerPermissionRules(ctx context.Context, ids []string) error {
	if c.output != formatTable {
		return nil
	}
	p := c.newPrinter(c.Stderr)
	var plans []permission.Plan
	for _, id := range ids {
		plan, err := permission.PreparePlan(c.account.Env, id, c.account.Tools())
		switch {
		case err == nil && !plan.Changed, c.flags.options.Surface == string(clients.SurfaceAll) && err != nil: // they are there, or nothing helps
		case err != nil: // the command says why
			c.printMessage("Next, run `mcpproxy permissions %s`. It shows the rules with which the client runs reads without asking, and asks before other calls.", id)
		case c.flags.consent.yes:
			c.printMessage("Next, run `mcpproxy permissions %s --write`. Then the client runs reads without asking, and asks before other calls.", id)
		default:
			writePermissionPlan(p, plan)
			plans = append(plans, plan)
		}
	}
	if len(plans) == 0 {
		return nil
	}
	agreed, err := askYesNo(c.invocation, ctx, "Write these rules too? The client then runs reads without asking, and asks before other calls.")
	if err != nil || !agreed {
		return err
	}
	j, err := openClientJournal(c.invocation)
	if err != nil {
		return err
	}
	for _, plan := range plans {
		out, err := plan.Apply(j)
		if err != nil {
			return err
		}
		c.printMessage("%s %s: the rules are in %s. To undo this, run `mcpproxy permissions %s --undo`.", p.colorize(colorGood, "✓"), toPrintable(plan.Name), toPrintable(plan.Path), plan.Client)
		if !out.After.Right {
			c.printMessage("Some rules are not as recommended. See `mcpproxy permissions %s --check`.", plan.Client)
		}
	}
	return nil
}

// undoLastChanges undoes the last change to each client's files.
func (c *connectRun) undoLastChanges(args []string) error {
	all := []ops.PastChange{}
	for _, client := range args {
		done, err := c.account.UndoLastConnect(client)
		if all = append(all, done...); err != nil {
			return errors.Join(c.printUndoneChanges(all), err)
		}
	}
	return c.printUndoneChanges(all)
}

// printUndoneChanges prints the changes that were undone.
func (c *connectRun) printUndoneChanges(all []ops.PastChange) error {
	return c.printOutput(all, func(p *printer) {
		for _, change := range all {
			p.writeLine("%s", undoneChangeText(change.Path, change.Created, change.Partly))
		}
	})
}

// notRunningMessage tells the user how to start MCPProxy.
const notRunningMessage = "MCPProxy is not running. `mcpproxy service install` runs it as a service, `mcpproxy serve` until you stop it."

// statusTimeout limits how long a daemon may take to return its address.
const statusTimeout = 2 * time.Second

// newLocalClients returns access to the user's MCP clients. It uses the address of the running daemon, or the address
// in the configuration if none is running.
func newLocalClients(ctx context.Context, r *invocation) (*ops.LocalClients, error) {
	env, err := newClientFileEnv(r)
	if err != nil {
		return nil, err
	}
	live, err := r.openConfig()
	if err != nil {
		return nil, err
	}
	cfg := live.Current()
	place := ops.ProxyEndpoint{Base: cfg.BaseURL(cfg.Listen, cfg.TLS.IsOn()), Listener: config.ListenerURL(cfg.Listen, cfg.TLS.IsOn()), Locked: live.Current().RequireMCPAuth,
		Profiles: mapSlice(live.Current().Profiles, func(p config.Profile) string { return p.Name })}
	if at := runningDaemonURL(ctx, r); at != "" {
		place.Base = at
	}
	return newLocalClientsForEndpoint(r, env, place), nil
}

// newLocalClientsForEndpoint returns access to the user's MCP clients, for an MCPProxy at the given endpoint.
func newLocalClientsForEndpoint(r *invocation, env clients.Env, place ops.ProxyEndpoint) *ops.LocalClients {
	var err error
	if place.Command, place.Args, err = r.ownProgramAndFlags(); err != nil {
		place.NoCommand = err
	}
	return &ops.LocalClients{
		AccountClients: &permission.AccountClients{
			Env: env, Tools: func() []permission.ProxyTool { tools, _ := configuredBuiltinTools(r); return tools }, Open: func() (*clients.Journal, error) { return openClientJournal(r) },
		},
		Endpoint: func() ops.ProxyEndpoint { return place },
		Run: func(ctx context.Context, argv []string) (string, error) {
			return process.RunCommand(ctx, argv, os.Environ())
		},
		Tokens: daemonTokenIssuer{r},
	}
}

// runningDaemonURL returns the URL of the running daemon, or "" if none is running.
func runningDaemonURL(ctx context.Context, r *invocation) string {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	s, _ := callDaemon(ctx, r, api.GetStatus, ops.Nothing{}) // after an error, the status is empty
	return ops.ClientBaseURL(s.Surfaces)
}

// daemonTokenIssuer creates and revokes tokens through the daemon.
type daemonTokenIssuer struct{ r *invocation }

// CreateToken implements ops.TokenIssuer.
func (d daemonTokenIssuer) CreateToken(ctx context.Context, _ ops.Caller, in ops.CreateTokenRequest) (ops.CreatedToken, error) {
	return callDaemon(ctx, d.r, api.CreateToken, in)
}

// RevokeToken implements ops.TokenIssuer.
func (d daemonTokenIssuer) RevokeToken(ctx context.Context, _ ops.Caller, in ops.TokenRef) (ops.RevokedToken, error) {
	return callDaemon(ctx, d.r, api.RevokeToken, in)
}
