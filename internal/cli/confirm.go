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

// consent is a user's confirmation by a flag.
type consent struct {
	yes         bool
	fingerprint string
}

// confirm requires a yes to the question, or a flag. Without a terminal, hint says what to do instead.
func (r *run) confirm(ctx context.Context, c consent, question, hint string) error {
	if c.yes || c.fingerprint != "" {
		return nil
	}
	ask := r.Ask
	if ask == nil {
		ask = r.askTerminal()
	}
	if ask == nil || r.output != formatTable {
		return usage("Nobody can be asked: this needs a terminal, or the answer beforehand.", hint)
	}
	answer, err := ask(ctx, question+" [y/N] ")
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return problem.New(problem.Interrupted, "You did not say yes: nothing was changed.", "To do it, run the command again and answer y, or give --yes.")
}

// askYesNo asks a question that may be answered with no.
func askYesNo(r *run, ctx context.Context, question string) (bool, error) {
	err := r.confirm(ctx, consent{}, question, "Answer with flags.")
	if err != nil && ctx.Err() == nil && problem.From(err).Code == problem.Interrupted {
		return false, nil
	}
	return err == nil, err
}

// askTerminal returns a function that asks on the terminal; nil without a terminal.
func (r *run) askTerminal() func(ctx context.Context, question string) (string, error) {
	in, ok := r.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	if is, _ := terminal(r.Stderr); !is {
		return nil
	}
	return func(ctx context.Context, question string) (string, error) {
		fmt.Fprint(r.Stderr, question)
		answered := make(chan string, 1)
		// A terminal read cannot be interrupted. When ctx ends, so does the process.
		go func() {
			line, _ := bufio.NewReader(in).ReadString('\n') // no line means no
			answered <- line
		}()
		select {
		case line := <-answered:
			return line, nil
		case <-ctx.Done():
			fmt.Fprintln(r.Stderr)
			return "", ctx.Err()
		}
	}
}
