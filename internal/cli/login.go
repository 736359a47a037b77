package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// loginPollInterval is the time between requests for the progress of a login.
const loginPollInterval = 250 * time.Millisecond

// loginFlags are the flags of the login commands.
type loginFlags struct{ noBrowser, headless bool }

func (f *loginFlags) all() map[string]any {
	return map[string]any{"no-browser": &f.noBrowser, "headless": &f.headless}
}

// loginResults are the logins of one command.
type loginResults struct {
	Logins []ops.LoginView `json:"logins"`
}

// newLoginCommand returns the command that logs in to a server, or to all servers that need it.
func newLoginCommand(r *invocation) commandSpec {
	var f loginFlags
	return commandSpec{flags: f.all(), run: showResultRunFunc(r, func(ctx context.Context, c *api.Client, args []string) (all loginResults, err error) {
		if len(args) == 0 {
			list, err := api.ListServers.Call(ctx, c, ops.Nothing{})
			if err != nil {
				return all, err
			}
			for _, s := range list.Servers {
				if s.Enabled && s.NeedsLogin {
					args = append(args, s.Name)
				}
			}
		}
		all.Logins = []ops.LoginView{}
		for _, name := range args {
			l, err := f.logIn(ctx, r, c, name)
			if err != nil {
				return all, err
			}
			all.Logins = append(all.Logins, l)
		}
		return all, nil
	}, func(p *printer, all loginResults) {
		for _, l := range all.Logins {
			writeLoggedIn(p, l)
		}
		if len(all.Logins) == 0 {
			p.writeLine("No server needs a login.")
		}
	})}
}

func newUpstreamLoginCommand(r *invocation) commandSpec {
	var f loginFlags
	return commandSpec{flags: f.all(), run: showResultRunFunc(r, func(ctx context.Context, c *api.Client, args []string) (ops.LoginView, error) {
		return f.logIn(ctx, r, c, args[0])
	}, writeLoggedIn)}
}

func writeLoggedIn(p *printer, l ops.LoginView) { p.writeLine("Logged in to %s.", toOneLine(l.Server)) }

// logIn logs in to a server: shows what the user needs, and waits for the end.
func (f *loginFlags) logIn(ctx context.Context, r *invocation, c *api.Client, server string) (ops.LoginView, error) {
	headless := f.headless || r.terminal && !f.noBrowser && !hasDesktop(r.lookupEnv)
	l, err := api.LoginServer.Call(ctx, c, ops.LoginRequest{ServerRef: ops.ServerRef{Name: server}, Headless: headless})
	if err != nil {
		return l, err
	}
	if err := showAndOpenLoginURL(r, l, f.noBrowser || headless); err != nil {
		return l, err
	}
	var pasted <-chan string
	if headless && l.Code == "" {
		fmt.Fprintln(r.Stderr, "If your browser runs on another machine, the login may end at an address that the browser cannot open (http://127.0.0.1…). Then paste that address here:")
		pasted = readLines(r.Stdin)
	}
	return awaitLogin(ctx, r, c, l, pasted)
}

// readLines returns a channel of the lines of a reader. Its goroutine ends with the process, because a read from a
// terminal cannot be interrupted.
func readLines(from io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		for scan := bufio.NewScanner(from); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	return lines
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
	if l.Before != "" {
		fmt.Fprintf(r.Stderr, "%s has changed its authorization server: %s instead of %s.\n", toOneLine(l.Server), toOneLine(l.Issuer), toOneLine(l.Before))
	}
	where := "on this machine"
	if l.Code != "" {
		where = "on any machine and enter the code " + toOneLine(l.Code)
	}
	fmt.Fprintf(r.Stderr, "To log in to %s, open this address %s:\n", toOneLine(l.Server), where)
	fmt.Fprintln(out, l.URL)
	if !noBrowser && r.terminal && hasDesktop(r.lookupEnv) && openURLInBrowser(l.URL) == nil {
		fmt.Fprintln(r.Stderr, "Opening it in your browser.")
	}
	return nil
}

// awaitLogin waits until the login has ended. It completes the login with an address that the user pastes.
func awaitLogin(ctx context.Context, r *invocation, c *api.Client, l ops.LoginView, pasted <-chan string) (ops.LoginView, error) {
	look := time.NewTicker(loginPollInterval)
	defer look.Stop()
	for l.State == "waiting" {
		select {
		case <-ctx.Done():
			return l, ctx.Err()
		case address := <-pasted:
			if _, err := api.CompleteLogin.Call(ctx, c, ops.LoginCompletion{ServerRef: ops.ServerRef{Name: l.Server}, URL: address}); err != nil {
				r.printError(toProblem(err))
			}
			continue
		case <-look.C:
		}
		var err error
		if l, err = api.GetLogin.Call(ctx, c, ops.ServerRef{Name: l.Server}); err != nil {
			return l, err
		}
	}
	if l.State != "done" {
		return l, problem.New(problem.LoginNeeded, "The login to server '"+l.Server+"' failed: "+l.Error+".",
			"Try again with `"+ops.LoginCommand(l.Server)+"`.")
	}
	return l, nil
}
