package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/browser"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
)

// lookLogin is how often it is asked whether the person has logged in.
const lookLogin = 250 * time.Millisecond

func upstreamLogin(r *run) *cobra.Command {
	var noBrowser bool
	cmd := &cobra.Command{
		Use:   "login <server>",
		Short: "Log in to a server that asks for it",
		Long: `Prints the address at which you log in, opens it in your browser when there is
one, and waits until you have. The login comes back to a port of this machine, so
open the address in a browser on it. When it fails, the exit code is 6.`,
		Example:           "  mcpproxy upstream login github\n  mcpproxy upstream login github --no-browser",
		Args:              exactly("server"),
		ValidArgsFunction: r.complete(serverNames),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			l, err := api.LoginServer.Call(ctx, c, gateway.ServerRef{Name: args[0]})
			if err != nil {
				return err
			}
			if err := sayWhere(r, l, noBrowser); err != nil {
				return err
			}
			if l, err = awaitLogin(ctx, c, l); err != nil {
				return err
			}
			return r.print(l, func(p *printer) { fmt.Fprintf(p, "Logged in to %s.\n", oneLine(l.Server)) })
		}),
	}
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "only print the address")
	return cmd
}

// sayWhere tells the person the address, on stdout in a line of its own, or on
// stderr when stdout holds data for programs.
func sayWhere(r *run, l gateway.LoginView, noBrowser bool) error {
	if err := browser.Check(l.URL); err != nil {
		return problem.New(problem.LoginNeeded, "The address of the login to '"+l.Server+"' cannot be used: "+err.Error()+".", "")
	}
	out := r.Stdout
	if r.output != formatTable {
		out = r.Stderr
	}
	fmt.Fprintf(r.Stderr, "To log in to %s, open this address on this machine:\n", oneLine(l.Server))
	fmt.Fprintln(out, l.URL)
	if !noBrowser && r.terminal && browser.Desktop(r.lookup) && browser.Open(l.URL) == nil {
		fmt.Fprintln(r.Stderr, "It is opened in your browser.")
	}
	return nil
}

// awaitLogin waits until the login is over.
func awaitLogin(ctx context.Context, c *api.Client, l gateway.LoginView) (gateway.LoginView, error) {
	look := time.NewTicker(lookLogin)
	defer look.Stop()
	for l.State == "waiting" {
		select {
		case <-ctx.Done():
			return l, ctx.Err()
		case <-look.C:
		}
		var err error
		if l, err = api.GetLogin.Call(ctx, c, gateway.ServerRef{Name: l.Server}); err != nil {
			return l, err
		}
	}
	if l.State != "done" {
		return l, problem.New(problem.LoginNeeded, "The login to server '"+l.Server+"' failed: "+l.Error+".",
			"Try again with `mcpproxy upstream login "+l.Server+"`.")
	}
	return l, nil
}

func upstreamLogout(r *run) *cobra.Command {
	return forServer(r, api.LogoutServer, &cobra.Command{
		Use:     "logout",
		Short:   "Forget the login to a server",
		Long:    "Forgets the login to a server and the registration that was made for it, and has the authorization server forget it where that can be asked for.",
		Example: "  mcpproxy upstream logout github",
	}, func(p *printer, s gateway.ServerView) { fmt.Fprintf(p, "Logged out of %s.\n", oneLine(s.Name)) })
}
