package cli

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// signInPollInterval is the time between checks whether the sign-in code was used.
const signInPollInterval = 250 * time.Millisecond

// pageLifetime is the maximum age of a sign-in page. It equals the lifetime of the sign-in code.
const pageLifetime = time.Minute

// openedUIResult is the result of opening the web UI.
type openedUIResult struct {
	Address  string `json:"address"`
	SignedIn bool   `json:"signed_in"`
}

func newUICommand(r *invocation) commandSpec {
	var printLink bool
	return commandSpec{flags: map[string]any{"print": &printLink}, run: r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) error {
		address, err := fetchUIAddress(ctx, c)
		if err != nil {
			return err
		}
		return openOrPrintUI(ctx, r, c, address, printLink)
	})}
}

// fetchUIAddress returns the URL of the running daemon's web UI.
func fetchUIAddress(ctx context.Context, c *api.Client) (string, error) {
	s, err := api.GetStatus.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(s.Surfaces, func(one ops.Surface) bool { return one.Name == api.UI })
	if at < 0 {
		return "", problem.New(problem.NotFound, "The running MCPProxy has no web UI.", "Restart it: it may be an older version.")
	}
	return s.Surfaces[at].Address, nil
}

// openOrPrintUI opens a signed-in page of the web UI, or prints a link to it.
func openOrPrintUI(ctx context.Context, r *invocation, c *api.Client, address string, printLink bool) error {
	if !printLink && hasDesktop(r.lookupEnv) {
		err := openUIAndAwaitSignIn(ctx, r, c, address)
		if !errors.Is(err, errNoBrowser) {
			return err
		}
	}
	return printUILink(ctx, r, c, address)
}

// printUILink prints a sign-in link. It requires a terminal, because other output may be stored.
func printUILink(ctx context.Context, r *invocation, c *api.Client, address string) error {
	if !r.terminal || r.output != formatTable {
		return problem.New(problem.Usage, "No browser was opened. The sign-in link is shown only in a terminal.",
			"Run `mcpproxy ui` in a terminal, or open "+address+" and sign in with the API key.")
	}
	code, err := api.NewCode.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return err
	}
	r.printMessage("Open this link in a browser on this machine. It works once, within a minute, and signs in the browser that opens it:")
	fmt.Fprintln(r.Stdout, address+"#"+code.Code)
	return nil
}

var errNoBrowser = errors.New("no browser can be opened")

// openUIAndAwaitSignIn opens an HTML file that redirects to the UI, and waits until the sign-in code was used. It does
// not pass the link to the browser as an argument, because other users can see arguments.
func openUIAndAwaitSignIn(ctx context.Context, r *invocation, c *api.Client, address string) error {
	code, err := api.NewCode.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return err
	}
	path, err := r.writeSignInPage(address + "#" + code.Code)
	if err != nil {
		return fmt.Errorf("the page that leads to the web UI: %w", err)
	}
	defer func() { _ = os.Remove(path) }()
	if openFileInBrowser(path) != nil {
		return errNoBrowser
	}
	r.printMessage("Opening %s in your browser. If nothing opens, run `mcpproxy ui --print`.", address)
	look := time.NewTicker(signInPollInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
		state, err := api.GetCode.Call(ctx, c, api.CodeRef{ID: code.ID})
		switch {
		case err != nil && problem.From(err).Code == problem.NotFound: // the code has expired
			return problem.New(problem.Timeout, "No browser signed in within a minute.",
				"Browsers from Snap or Flatpak may not be able to read your files: `mcpproxy ui --print` shows the link instead.")
		case err != nil:
			return err
		case state.Used:
			return r.printOutput(openedUIResult{address, true}, func(p *printer) { p.writeLine("Signed in to %s.", address) })
		}
	}
}

// writeSignInPage writes a page that redirects to the link and returns its path. Only this user can read the page. It
// also removes old pages.
func (r *invocation) writeSignInPage(link string) (path string, err error) {
	dir, err := r.resolveDataDir()
	if err == nil {
		dir, err = filepath.Abs(filepath.Join(dir, "sign-in"))
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", err
	}
	old, _ := os.ReadDir(dir)
	for _, one := range old {
		if info, err := one.Info(); err == nil && time.Since(info.ModTime()).Abs() > pageLifetime {
			_ = os.Remove(filepath.Join(dir, one.Name()))
		}
	}
	f, err := os.CreateTemp(dir, "*.html") // mode 0600
	if err != nil {
		return "", err
	}
	link = html.EscapeString(link)
	_, err = fmt.Fprintf(f, `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=%s">
<title>MCPProxy</title>
<p><a rel="noreferrer" href="%s">Sign in to MCPProxy</a></p>
</html>
`, link, link)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
	}
	return f.Name(), err
}
