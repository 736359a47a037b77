package cli

import (
	"context"
	"fmt"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// loginPollInterval is the time between requests for the progress of a login.
const loginPollInterval = 250 * time.Millisecond

func newUpstreamLoginCommand(r *invocation) commandSpec {
	var noBrowser bool
	return commandSpec{flags: map[string]any{"no-browser": &noBrowser}, run: showResultRunFunc(r, func(ctx context.Context, c *api.Client, args []string) (ops.LoginView, error) {
		l, err := api.LoginServer.Call(ctx, c, ops.ServerRef{Name: args[0]})
		if err != nil {
			return l, err
		}
		if err := showAndOpenLoginURL(r, l, noBrowser); err != nil {
			return l, err
		}
		return awaitLogin(ctx, c, l)
	}, func(p *printer, l ops.LoginView) { p.writeLine("Logged in to %s.", toOneLine(l.Server)) })}
}

// showAndOpenLoginURL prints the login address on its own line to stdout, or to stderr if stdout is for programs. On a
// terminal with a desktop, it also opens the address in the browser, unless noBrowser is set.
func showAndOpenLoginURL(r *invocation, l ops.LoginView, noBrowser bool) error {
	if err := checkBrowserURL(l.URL); err != nil {
		return problem.New(problem.LoginNeeded, "The address of the login to '"+l.Server+"' cannot be used: "+err.Error()+".", "")
	}
	out := r.Stdout
	if r.output != formatTable {
		out = r.Stderr
	}
	fmt.Fprintf(r.Stderr, "To log in to %s, open this address on this machine:\n", toOneLine(l.Server))
	fmt.Fprintln(out, l.URL)
	if !noBrowser && r.terminal && hasDesktop(r.lookupEnv) && openURLInBrowser(l.URL) == nil {
		fmt.Fprintln(r.Stderr, "Opening it in your browser.")
	}
	return nil
}

// awaitLogin waits until the login has ended.
func awaitLogin(ctx context.Context, c *api.Client, l ops.LoginView) (ops.LoginView, error) {
	look := time.NewTicker(loginPollInterval)
	defer look.Stop()
	for l.State == "waiting" {
		select {
		case <-ctx.Done():
			return l, ctx.Err()
		case <-look.C:
		}
		var err error
		if l, err = api.GetLogin.Call(ctx, c, ops.ServerRef{Name: l.Server}); err != nil {
			return l, err
		}
	}
	if l.State != "done" {
		return l, problem.New(problem.LoginNeeded, "The login to server '"+l.Server+"' failed: "+l.Error+".",
			"Try again with `mcpproxy upstream login "+l.Server+"`.")
	}
	return l, nil
}

func writeLoggedOut(p *printer, s ops.ServerView) {
	p.writeLine("Logged out of %s.", toOneLine(s.Name))
}
