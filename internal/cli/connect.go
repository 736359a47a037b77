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
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/process"
)

// connectFlags are the flags of `connect` and `disconnect`.
type connectFlags struct {
	all, dryRun, undo bool
	wish              ops.ConnectOptions
	consent           consent
}

func connectCommand(r *run) command {
	var f connectFlags
	return command{
		flags:    map[string]any{"all": &f.all, "dry-run": &f.dryRun, "undo": &f.undo, "profile": &f.wish.Profile, "token": &f.wish.Token, "yes": &f.consent.yes},
		args:     cobra.ArbitraryArgs,
		complete: fixed(clients.ClientIDs()...),
		run: func(cmd *cobra.Command, args []string) error {
			c, err := newConnector(r, cmd, args, f)
			switch {
			case err != nil:
				return err
			case f.undo:
				return c.undo(args)
			case f.all && f.wish.Token != "" || len(args) > 1 && f.wish.Token != "":
				return usage("A token is for one client.", "Connect one client at a time, each with a token of its own.")
			}
			if f.all {
				if args, err = c.found(func(v ops.ClientView) bool { return v.Found && (!v.Connected || v.Foreign || v.Missing != "") }, "No MCP client was found that is not connected."); err != nil {
					return err
				}
			}
			done, err := c.change(cmd.Context(), args, func(client string) (ops.ConnectPlan, error) { return c.account.PlanConnect(client, f.wish) }, "Connect")
			err = errors.Join(err, c.offerRules(cmd.Context(), done))
			if len(done) > 0 && daemonURL(cmd.Context(), r) == "" {
				r.say(notRunning)
			}
			return err
		},
	}
}

func disconnectCommand(r *run) command {
	var f connectFlags
	return command{
		flags:    map[string]any{"all": &f.all, "dry-run": &f.dryRun, "undo": &f.undo, "yes": &f.consent.yes},
		args:     cobra.ArbitraryArgs,
		complete: fixed(clients.ClientIDs()...),
		run: func(cmd *cobra.Command, args []string) error {
			c, err := newConnector(r, cmd, args, f)
			switch {
			case err != nil:
				return err
			case f.undo:
				return c.undo(args)
			}
			if f.all {
				if args, err = c.found(func(v ops.ClientView) bool { return v.Connected }, "No MCP client is connected."); err != nil {
					return err
				}
			}
			_, err = c.change(cmd.Context(), args, c.account.PlanDisconnect, "Disconnect")
			return err
		},
	}
}

// connector is one run of connect or disconnect.
type connector struct {
	*run
	flags   connectFlags
	account *ops.LocalClients
}

func newConnector(r *run, cmd *cobra.Command, args []string, f connectFlags) (*connector, error) {
	switch {
	case len(args) == 0 && !f.all:
		return nil, usage("Missing argument: client.", "Name one of "+strings.Join(clients.ClientIDs(), ", ")+"; or say --all for those that are installed.")
	case f.all && (len(args) > 0 || f.undo):
		return nil, usage("--all stands alone.", "Give either --all or the names of clients.")
	case f.undo && (f.dryRun || f.wish != ops.ConnectOptions{}):
		return nil, usage("--undo takes back what was written, and goes with nothing else.", "Give it alone.")
	}
	account, err := clientAccount(cmd.Context(), r)
	return &connector{r, f, account}, err
}

// found returns the known clients that match.
func (c *connector) found(wanted func(ops.ClientView) bool, none string) ([]string, error) {
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
		return nil, problem.New(problem.NotFound, none, "`mcpproxy connect CLIENT` writes the file of any of "+strings.Join(clients.ClientIDs(), ", ")+".")
	}
	return ids, nil
}

// connectResult has the results of all clients.
type connectResult struct {
	Clients []ops.FileChange `json:"clients"`
	Failed  []failedItem     `json:"failed"`
}

// change shows the planned changes, asks once, and makes them. A failure of one client does not stop the others. It returns the clients whose files it
// has written.
func (c *connector) change(ctx context.Context, ids []string, prepare func(string) (ops.ConnectPlan, error), verb string) (written []string, err error) {
	out := connectResult{[]ops.FileChange{}, []failedItem{}}
	var plans []ops.ConnectPlan
	var names []string
	var first error
	fail := func(client string, err error) {
		first = errors.Join(first, err)
		out.Failed = append(out.Failed, failedItem{client, problem.From(err)})
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
			p := c.printer(c.Stderr)
			for _, plan := range plans {
				writeClientChange(p, plan.FileChange)
			}
		}
		if err := c.confirm(ctx, c.flags.consent, verb+" "+joinNames(names)+"?", "Look with --dry-run, then give --yes."); err != nil {
			return nil, err
		}
	}
	for _, plan := range plans {
		if plan.Command != nil { // some take ten seconds
			c.say("Running `%s`.", printable(strings.Join(plan.Command, " ")))
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
	if err := c.print(out, func(p *printer) { writeChanged(p, out, verb) }); err != nil || first == nil {
		return written, err
	}
	return written, problem.Newf(out.Failed[0].Error.Code, "%s could not be changed.", counted(len(out.Failed), "client")).WithHint("What was wrong stands above; the others are done.")
}

// joinNames formats names in a sentence.
func joinNames(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// writeClientChange writes the planned change of a client's file.
func writeClientChange(p *printer, o ops.FileChange) {
	if !o.Changed {
		p.line("%s: nothing changes, %s has it.", printable(o.Name), printable(o.Path))
		return
	}
	p.line("%s: %s", printable(o.Name), printable(o.Path))
	if o.Target != "" {
		p.line("which is a link to %s", printable(o.Target))
	}
	if o.Command != nil {
		p.line("by its own command: %s", printable(strings.Join(o.Command, " ")))
	}
	writeDiffLines(p, o.Difference)
	for _, warning := range o.Warnings {
		p.line("%s %s", p.paint(hueWarning, "Warning:"), printable(warning))
	}
}

func writeChanged(p *printer, out connectResult, verb string) {
	for _, o := range out.Clients {
		if !o.Written {
			writeClientChange(p, o)
			continue
		}
		p.line("%s %s: %sed in %s.", p.paint(hueGood, "✓"), printable(o.Name), strings.ToLower(verb), printable(o.Path))
		for _, warning := range o.Warnings {
			p.text("    ", printable(warning))
		}
		if o.Next != "" {
			p.text("    ", printable(o.Next))
		}
	}
	for _, f := range out.Failed {
		p.line("%s %s: %s %s", p.paint(hueBad, "✗"), printable(f.Name), printable(f.Error.Message), printable(f.Error.Hint))
	}
	if at := slices.IndexFunc(out.Clients, func(o ops.FileChange) bool { return o.Written }); at >= 0 {
		p.note("`mcpproxy %s %s --undo` takes it back.", strings.ToLower(verb), out.Clients[at].Client)
	}
}

// offerRules shows the recommended permission rules and writes them if the user agrees. With --yes it only tells the command.
func (c *connector) offerRules(ctx context.Context, ids []string) error {
	if c.output != formatTable {
		return nil
	}
	p := c.printer(c.Stderr)
	var plans []permission.Plan
	for _, id := range ids {
		plan, err := permission.PreparePlan(c.account.Env, id, c.account.Tools())
		switch {
		case err != nil || c.flags.consent.yes: // the command says why
			c.say("Next: `mcpproxy permissions %s`, so that reads run unasked and the rest asks.", id)
		case plan.Changed:
			writePlan(p, plan)
			plans = append(plans, plan)
		}
	}
	if len(plans) == 0 {
		return nil
	}
	agreed, err := askYesNo(c.run, ctx, "Write these rules too, so that reads run unasked and the rest asks?")
	if err != nil || !agreed {
		return err
	}
	j, err := clientChanges(c.run)
	if err != nil {
		return err
	}
	for _, plan := range plans {
		out, err := plan.Apply(j)
		if err != nil {
			return err
		}
		c.say("%s %s: the rules are in %s. `mcpproxy permissions %s --undo` takes them back.", p.paint(hueGood, "✓"), printable(plan.Name), printable(plan.Path), plan.Client)
		if !out.After.Right {
			c.say("Not all is as recommended: `mcpproxy permissions %s --check` says why.", plan.Client)
		}
	}
	return nil
}

// undo undoes the last change of each client.
func (c *connector) undo(args []string) error {
	all := []ops.PastChange{}
	for _, client := range args {
		done, err := c.account.UndoLastConnect(client)
		if all = append(all, done...); err != nil {
			return errors.Join(c.printUndone(all), err)
		}
	}
	return c.printUndone(all)
}

// printUndone prints the undone changes.
func (c *connector) printUndone(all []ops.PastChange) error {
	return c.print(all, func(p *printer) {
		for _, change := range all {
			p.line("%s", undoneText(change.Path, change.Created, change.Partly))
		}
	})
}

// notRunning tells how to start MCPProxy.
const notRunning = "MCPProxy is not running: `mcpproxy service install` has it run from now on, `mcpproxy serve` until you end it."

// statusTimeout limits how long a daemon may take to return its address.
const statusTimeout = 2 * time.Second

// clientAccount returns the clients of the user and the address of MCPProxy: of a running daemon, otherwise from the configuration.
func clientAccount(ctx context.Context, r *run) (*ops.LocalClients, error) {
	env, err := clientsEnv(r)
	if err != nil {
		return nil, err
	}
	live, err := r.open(r.configPath)
	if err != nil {
		return nil, err
	}
	place := ops.ProxyEndpoint{Base: ops.ListenerURL(live.Current().Listen), Locked: live.Current().RequireMCPAuth}
	for _, profile := range live.Current().Profiles {
		place.Profiles = append(place.Profiles, profile.Name)
	}
	if at := daemonURL(ctx, r); at != "" {
		place.Base = at
	}
	return accountAt(r, env, place), nil
}

// accountAt returns the clients of the user for an MCPProxy at a place.
func accountAt(r *run, env clients.Env, place ops.ProxyEndpoint) *ops.LocalClients {
	var err error
	if place.Command, place.Args, err = r.self(); err != nil {
		place.NoCommand = err
	}
	return &ops.LocalClients{
		ClientAccount: &permission.ClientAccount{
			Env: env, Tools: func() []permission.ProxyTool { tools, _ := builtinTools(r); return tools }, Open: func() (*clients.Journal, error) { return clientChanges(r) },
		},
		Endpoint: func() ops.ProxyEndpoint { return place },
		Run: func(ctx context.Context, argv []string) (string, error) {
			return process.RunCommand(ctx, argv, os.Environ())
		},
		Tokens: daemonTokens{r},
	}
}

// daemonURL returns the URL of the running daemon, "" without one.
func daemonURL(ctx context.Context, r *run) string {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	c, err := r.client()
	if err != nil {
		return ""
	}
	defer c.Close()
	s, err := api.GetStatus.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return ""
	}
	for _, surface := range s.Surfaces {
		if at, ok := strings.CutSuffix(surface.Address, "/mcp"); ok {
			return ops.ListenerURL(strings.TrimPrefix(at, "http://"))
		}
	}
	return ""
}

// daemonTokens creates tokens through the daemon.
type daemonTokens struct{ r *run }

func (d daemonTokens) Make(ctx context.Context, _ ops.Caller, name, profile string) (string, error) {
	c, err := d.r.client()
	if err != nil {
		return "", err
	}
	defer c.Close()
	made, err := api.CreateToken.Call(ctx, c, ops.CreateTokenRequest{Name: name, Profile: profile})
	return made.Token, err
}

func (d daemonTokens) Revoke(ctx context.Context, _ ops.Caller, name string) error {
	c, err := d.r.client()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = api.RevokeToken.Call(ctx, c, ops.TokenRef{Name: name})
	return err
}
