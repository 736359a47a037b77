package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/secret"
)

// secretName validates the arguments of a command that names a secret. Errors repeat no argument, which may be a value.
func secretName(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usage("The name of the secret is missing.", "For example: mcpproxy secrets set GITHUB_TOKEN")
	case len(args) > 1:
		return usage("There is one argument, the name: a value on the command line could be read by other users, and stays in the history of the shell.",
			"Leave the value out: it is asked for, or read from stdin.")
	}
	return nil
}

// secretNames completes the secrets that are stored or needed.
func secretNames(ctx context.Context, c *api.Client, _ string) (names []string) {
	all, err := api.ListSecrets.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return nil
	}
	for _, v := range all.Secrets {
		names = append(names, v.Name)
	}
	return names
}

// localSecrets returns the secrets without a daemon.
func (r *run) localSecrets() (ops.SecretManager, error) {
	dir, err := r.dataDirectory()
	if err != nil {
		return ops.SecretManager{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ops.SecretManager{}, problem.Newf(problem.InvalidConfig, "The data directory %s cannot be made: %v", printable(dir), err).
			WithHint("Choose another one with --data-dir or MCPPROXY_DATA_DIR.")
	}
	return ops.SecretManager{Store: secret.OpenStore(dir, nil), Servers: func() []config.Server {
		path, err := r.configFile()
		if err != nil {
			return nil
		}
		live, err := r.open(path)
		if err != nil {
			return nil // a file with mistakes does not keep secrets from being set
		}
		return live.Current().Servers
	}}, nil
}

// secretsOp runs an operation in the daemon, or without one in this process.
func secretsOp[In, Out any](r *run, ctx context.Context, c *api.Client, op *api.Op[In, Out], in In, here func(ops.SecretManager) (Out, error)) (Out, error) {
	out, err := op.Call(ctx, c, in)
	if !api.IsDaemonAbsent(err) {
		return out, err
	}
	s, err := r.localSecrets()
	if err != nil {
		return out, err
	}
	return here(s)
}

func secretsSet(r *run) command {
	return command{args: secretName, complete: firstOnly(r.live(secretNames)), run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		if err := secret.CheckName(args[0]); err != nil {
			return usage("This cannot be the name of a secret: "+err.Error()+".", "Choose a name such as GITHUB_TOKEN.")
		}
		value, err := r.readSecret(ctx, args[0])
		if err != nil {
			return err
		}
		in := ops.SetSecretRequest{Name: args[0], Value: value}
		if err := ops.ValidateSecret(in.Name, in.Value); err != nil {
			return err
		}
		v, err := secretsOp(r, ctx, c, api.SetSecret, in, func(s ops.SecretManager) (ops.SecretView, error) { return s.Set(ctx, in) })
		if err != nil {
			return err
		}
		return r.print(v, func(p *printer) { writeSecretSet(p, v) })
	})}
}

func writeSecretSet(p *printer, v ops.SecretView) {
	p.line("%s is set, in %s.", v.Name, storedIn(v))
	if len(v.UsedBy) == 0 {
		p.note("No server names it yet: write ${keyring:%s} where the value belongs, in env, headers or url of a server.", v.Name)
		return
	}
	p.note("Used by %s.", oneLine(strings.Join(v.UsedBy, ", ")))
}

// storedIn returns where a secret is stored.
func storedIn(v ops.SecretView) string {
	if v.Kept == string(secret.Keyring) {
		return "the keyring of the system"
	}
	return "the sealed file of the data directory"
}

// readSecret reads a value from the terminal without echo, or from stdin without its final line end.
func (r *run) readSecret(ctx context.Context, name string) (string, error) {
	if in, ok := r.Stdin.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		return r.promptSecret(ctx, in, "Value of "+name+" (not shown): ")
	}
	raw, err := io.ReadAll(io.LimitReader(r.Stdin, secret.MaxValue+3))
	if err != nil {
		return "", problem.Newf(problem.InvalidParameter, "The value cannot be read from stdin: %v", err)
	}
	value, cut := strings.CutSuffix(string(raw), "\n")
	if cut {
		value = strings.TrimSuffix(value, "\r")
	}
	return value, nil
}

// promptSecret asks on a terminal, and restores the echo when ctx ends.
func (r *run) promptSecret(ctx context.Context, in *os.File, question string) (string, error) {
	before, err := term.GetState(int(in.Fd()))
	if err != nil {
		return "", problem.Newf(problem.InvalidParameter, "The terminal cannot be asked: %v", err)
	}
	fmt.Fprint(r.Stderr, question)
	type answer struct {
		value []byte
		err   error
	}
	answered := make(chan answer, 1)
	// A terminal read cannot be interrupted. When ctx ends, so does the process.
	go func() {
		value, err := term.ReadPassword(int(in.Fd()))
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		fmt.Fprintln(r.Stderr)
		if a.err != nil && !errors.Is(a.err, io.EOF) {
			return "", problem.Newf(problem.InvalidParameter, "The value cannot be read: %v", a.err)
		}
		return string(a.value), nil
	case <-ctx.Done():
		_ = term.Restore(int(in.Fd()), before)
		fmt.Fprintln(r.Stderr)
		return "", ctx.Err()
	}
}

func secretsList(r *run) command {
	return command{run: r.withClient(func(ctx context.Context, c *api.Client, _ []string) error {
		all, err := r.listSecrets(ctx, c)
		if err != nil {
			return err
		}
		return r.print(all, func(p *printer) { writeSecrets(p, all) })
	})}
}

func (r *run) listSecrets(ctx context.Context, c *api.Client) (ops.SecretViews, error) {
	return secretsOp(r, ctx, c, api.ListSecrets, ops.Nothing{}, func(s ops.SecretManager) (ops.SecretViews, error) { return s.List(ctx) })
}

func writeSecrets(p *printer, all ops.SecretViews) {
	if len(all.Secrets) == 0 {
		p.note("No secret is set, and no server needs one. Set one with `mcpproxy secrets set NAME`.")
		return
	}
	t := table{p: p, header: []string{"NAME", "KEPT", "SET", "USED BY"},
		narrow: append(append(shorten("USED BY", 12), leaveOut("SET")...), append(shorten("NAME", 16), leaveOut("USED BY", "KEPT")...)...)}
	for _, v := range all.Secrets {
		kept, set := v.Kept, ""
		switch v.State {
		case "missing":
			kept = p.paint(hueBad, "missing")
		case "locked":
			kept = p.paint(hueWarning, "locked keyring")
		}
		if v.SetAt != nil {
			set = p.moment(v.SetAt)
		}
		t.add(oneLine(v.Name), kept, set, oneLine(strings.Join(v.UsedBy, ", ")))
	}
	t.write()
}

func secretsDelete(r *run) command {
	var c consent
	return command{flags: map[string]any{"yes": &c.yes}, args: secretName, complete: firstOnly(r.live(secretNames)), run: r.withClient(func(ctx context.Context, client *api.Client, args []string) error {
		all, err := r.listSecrets(ctx, client)
		if err != nil {
			return err
		}
		question, hint := "Delete the secret? No server uses it.", "Give --yes."
		for _, v := range all.Secrets {
			if v.Name == args[0] && len(v.UsedBy) > 0 {
				used := "It is used by " + oneLine(strings.Join(v.UsedBy, ", ")) + ", which cannot start without it."
				question, hint = "Delete "+v.Name+"? "+used, "Give --yes. "+used
			}
		}
		if err := r.confirm(ctx, c, question, hint); err != nil {
			return err
		}
		in := ops.SecretRef{Name: args[0]}
		v, err := secretsOp(r, ctx, client, api.DeleteSecret, in, func(s ops.SecretManager) (ops.SecretView, error) { return s.Delete(ctx, in) })
		if err != nil {
			return err
		}
		return r.print(v, func(p *printer) { p.line("%s is deleted.", v.Name) })
	})}
}
