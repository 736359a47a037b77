package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/secret"
)

// checkSecretNameArgument validates the arguments of a command that takes the name of a secret. Its errors contain no
// argument, because an argument may be a secret value.
func checkSecretNameArgument(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return newUsageError("The name of the secret is missing.", "For example: mcpproxy secrets set GITHUB_TOKEN")
	case len(args) > 1:
		return newUsageError("Pass only the name: other users can read a value on the command line, and the shell keeps it in its history.",
			"The command asks for the value, or reads it from stdin.")
	}
	return nil
}

// openLocalSecrets opens the secrets of the data directory in this process, without a daemon.
func (r *invocation) openLocalSecrets() (ops.SecretManager, error) {
	dir, err := r.resolveDataDir()
	if err != nil {
		return ops.SecretManager{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ops.SecretManager{}, problem.Newf(problem.InvalidConfig, "The data directory %s cannot be created: %v", toPrintable(dir), err).
			WithHint("Choose another one with --data-dir or MCPPROXY_DATA_DIR.")
	}
	return ops.SecretManager{Store: secret.OpenStore(dir, nil), Servers: func() []config.Server {
		live, err := r.openConfig()
		if err != nil {
			return nil // secrets can be set even if the configuration file is invalid
		}
		return live.Current().Servers
	}}, nil
}

// callDaemonOrLocalSecrets runs an operation on secrets in the daemon, or in this process if no daemon is running.
func callDaemonOrLocalSecrets[In, Out any](r *invocation, ctx context.Context, c *api.Client, op *api.Op[In, Out], in In, here func(ops.SecretManager) (Out, error)) (Out, error) {
	out, err := op.Call(ctx, c, in)
	if !api.IsDaemonAbsentError(err) {
		return out, err
	}
	s, err := r.openLocalSecrets()
	if err != nil {
		return out, err
	}
	return here(s)
}

func newSecretsSetCommand(r *invocation) commandSpec {
	return commandSpec{args: checkSecretNameArgument, complete: completeFirstArgument(r.completeFromDaemon(secretNames)), run: showResultRunFunc(r, func(ctx context.Context, c *api.Client, args []string) (none ops.SecretView, err error) {
		if err := secret.CheckName(args[0]); err != nil {
			return none, newUsageError("Invalid name for a secret: "+err.Error()+".", "Choose a name such as GITHUB_TOKEN.")
		}
		in := ops.SetSecretRequest{Name: args[0]}
		if in.Value, err = r.readSecret(ctx, args[0]); err != nil {
			return none, err
		}
		if err := ops.ValidateSecret(in.Name, in.Value); err != nil {
			return none, err
		}
		return callDaemonOrLocalSecrets(r, ctx, c, api.SetSecret, in, func(s ops.SecretManager) (ops.SecretView, error) { return s.Set(ctx, in) })
	}, writeSecretStored)}
}

func writeSecretStored(p *printer, v ops.SecretView) {
	p.writeLine("%s is set, in %s.", v.Name, secretStoreName(v))
	if len(v.UsedBy) == 0 {
		p.addNote("No server uses it yet: write ${keyring:%s} for the value in env, headers or url of a server.", v.Name)
		return
	}
	p.addNote("Used by %s.", toOneLine(strings.Join(v.UsedBy, ", ")))
}

// secretStoreName returns the name of the store that contains a secret.
func secretStoreName(v ops.SecretView) string {
	if v.Kept == string(secret.Keyring) {
		return "the keyring of the system"
	}
	return "the encrypted file in the data directory"
}

// readSecret reads a value from the terminal without echo, or from stdin. It removes one final line end.
func (r *invocation) readSecret(ctx context.Context, name string) (string, error) {
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

// promptSecret asks for a secret on a terminal without echo, and restores the echo when ctx ends.
func (r *invocation) promptSecret(ctx context.Context, in *os.File, question string) (string, error) {
	before, err := term.GetState(int(in.Fd()))
	if err != nil {
		return "", problem.Newf(problem.InvalidParameter, "The terminal cannot be read: %v", err)
	}
	fmt.Fprint(r.Stderr, question)
	value, err := readUntilDone(ctx, func() ([]byte, error) { return term.ReadPassword(int(in.Fd())) })
	fmt.Fprintln(r.Stderr)
	switch {
	case ctx.Err() != nil:
		_ = term.Restore(int(in.Fd()), before)
		return "", ctx.Err()
	case err != nil && !errors.Is(err, io.EOF):
		return "", problem.Newf(problem.InvalidParameter, "The value cannot be read: %v", err)
	}
	return string(value), nil
}

func (r *invocation) fetchSecrets(ctx context.Context, c *api.Client, _ []string) (ops.SecretViews, error) {
	return callDaemonOrLocalSecrets(r, ctx, c, api.ListSecrets, ops.Nothing{}, func(s ops.SecretManager) (ops.SecretViews, error) { return s.List(ctx) })
}

func formatSecretState(p *printer, v ops.SecretView) string {
	switch v.State {
	case "missing":
		return p.colorize(colorBad, "missing")
	case "locked":
		return p.colorize(colorWarning, "locked keyring")
	}
	return v.Kept
}

func writeSecrets(p *printer, all ops.SecretViews) {
	list[ops.SecretView]{
		none: "No secret is set, and no server needs one. Set one with `mcpproxy secrets set NAME`.",
		columns: []column[ops.SecretView]{
			{title: "NAME", text: func(v ops.SecretView) string { return v.Name }},
			{title: "STORAGE", cell: formatSecretState},
			{title: "SET", cell: func(p *printer, v ops.SecretView) string { return p.formatTime(v.SetAt) }},
			{title: "USED BY", text: func(v ops.SecretView) string { return strings.Join(v.UsedBy, ", ") }},
		},
		narrow: slices.Concat(columnTruncationStep("USED BY", 12), columnHidingSteps("SET"), columnTruncationStep("NAME", 16), columnHidingSteps("USED BY", "STORAGE")),
	}.write(p, all.Secrets)
}

func newSecretsDeleteCommand(r *invocation) commandSpec {
	var c confirmationFlags
	return commandSpec{flags: map[string]any{"yes": &c.yes}, args: checkSecretNameArgument, complete: completeFirstArgument(r.completeFromDaemon(secretNames)), run: showResultRunFunc(r, func(ctx context.Context, client *api.Client, args []string) (none ops.SecretView, err error) {
		all, err := r.fetchSecrets(ctx, client, nil)
		if err != nil {
			return none, err
		}
		question, hint := "Delete the secret? No server uses it.", "Give --yes."
		for _, v := range all.Secrets {
			if v.Name == args[0] && len(v.UsedBy) > 0 {
				used := "It is used by " + toOneLine(strings.Join(v.UsedBy, ", ")) + ", which cannot start without it."
				question, hint = "Delete "+v.Name+"? "+used, "Give --yes. "+used
			}
		}
		if err := r.requireConfirmation(ctx, c, question, hint); err != nil {
			return none, err
		}
		in := ops.SecretRef{Name: args[0]}
		return callDaemonOrLocalSecrets(r, ctx, client, api.DeleteSecret, in, func(s ops.SecretManager) (ops.SecretView, error) { return s.Delete(ctx, in) })
	}, func(p *printer, v ops.SecretView) { p.writeLine("%s is deleted.", v.Name) })}
}
