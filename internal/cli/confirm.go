package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"mcpproxy/internal/problem"
)

// confirmationFlags holds the flags that confirm a command without a question.
type confirmationFlags struct {
	yes         bool
	fingerprint string
}

// requireConfirmation returns an error unless the user confirms with a flag or answers yes. hint is the hint of the
// error if there is no terminal.
func (r *invocation) requireConfirmation(ctx context.Context, c confirmationFlags, question, hint string) error {
	if c.yes || c.fingerprint != "" {
		return nil
	}
	ask := r.Ask
	if ask == nil {
		ask = r.newTerminalPrompt()
	}
	if ask == nil || r.output != formatTable {
		return newUsageError("Not a terminal: pass the answer as a flag.", hint)
	}
	answer, err := ask(ctx, question+" [y/N] ")
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return problem.New(problem.Interrupted, "Not confirmed: nothing was changed.", "Run the command again and answer y, or pass --yes.")
}

// askYesNo asks a question and reports whether the answer is yes.
func askYesNo(r *invocation, ctx context.Context, question string) (bool, error) {
	err := r.requireConfirmation(ctx, confirmationFlags{}, question, "Answer with flags.")
	if err != nil && ctx.Err() == nil && problem.From(err).Code == problem.Interrupted {
		return false, nil
	}
	return err == nil, err
}

// newTerminalPrompt returns a function that asks a question on the terminal, or nil if there is no terminal.
func (r *invocation) newTerminalPrompt() func(ctx context.Context, question string) (string, error) {
	in, ok := r.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	if is, _, _ := detectTerminal(r.Stderr); !is {
		return nil
	}
	return func(ctx context.Context, question string) (string, error) {
		fmt.Fprint(r.Stderr, question)
		line, _ := readUntilDone(ctx, func() (string, error) { return bufio.NewReader(in).ReadString('\n') }) // a read error counts as no
		if ctx.Err() != nil {
			fmt.Fprintln(r.Stderr)
		}
		return line, ctx.Err()
	}
}

// readUntilDone reads from a terminal until ctx is done. A read from a terminal cannot be interrupted, so it continues
// until the process exits.
func readUntilDone[T any](ctx context.Context, read func() (T, error)) (value T, err error) {
	done := make(chan func() (T, error), 1)
	go func() {
		value, err := read()
		done <- func() (T, error) { return value, err }
	}()
	select {
	case result := <-done:
		return result()
	case <-ctx.Done():
		return value, ctx.Err()
	}
}
