package ops

import (
	"context"
	"encoding/json"
	"errors"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream/process"
	"mcpproxy/internal/upstream/sandbox"
)

// trySandbox is the action in the activity log.
const trySandbox = "try_sandbox"

// SandboxSuggestion is a proposed sandbox of a server. Nothing is changed.
type SandboxSuggestion struct {
	Name    string          `json:"name"`
	Sandbox json.RawMessage `json:"sandbox" type:"object" doc:"The proposed value of the key sandbox of the server."`
	Text    string          `json:"text" doc:"The same in words."`
	Command string          `json:"command" doc:"The command that sets it."`
	Reasons []string        `json:"reasons,omitempty" doc:"Why it contains each path and the network. Paths come from the launch, and from what the server wrote."`
	LeftOut []string        `json:"left_out,omitempty" doc:"What it does not contain, and why: secrets, folders that many programs share, and to write what other programs run."`
	Started bool            `json:"started,omitempty" doc:"Whether the server was started in sandboxes. A server whose launch is not approved, or that is disabled, is not started."`
	Untried bool            `json:"untried,omitempty" doc:"Whether the server was not started in exactly this sandbox, because it allows more than the current sandbox of the server, or because that is a container."`
	Ready   bool            `json:"ready,omitempty" doc:"Whether the server listed its tools in exactly this sandbox."`
	Problem string          `json:"problem,omitempty" doc:"Why the server did not list its tools in it."`
}

// SuggestSandbox proposes a sandbox for a server: from its arguments and environment, and from trial runs in strict
// sandboxes next to the running server, none of which allows more than its current one. It changes nothing.
func (v *VersionOperations) SuggestSandbox(ctx context.Context, c Caller, in ServerRef) (out SandboxSuggestion, err error) {
	a := v.admin
	s := a.Config().Server(in.Name)
	switch {
	case s == nil:
		return out, a.serverNotFoundError(in.Name)
	case s.Command == "":
		return out, problem.Newf(problem.Conflict, "Server '%s' has a URL. MCPProxy does not start a process for it.", in.Name).WithHint("Name a server with a command.")
	}
	out.Name = s.Name
	sandboxes := a.Sandboxes
	if sandboxes == nil {
		sandboxes = sandbox.NewSystem("")
	}
	var found sandbox.Suggestion
	suggest := func(try func(sandbox.Rules) sandbox.Trial) error {
		found, err = sandboxes.Suggest(process.Command{Name: s.Command, Args: s.Args, Env: s.Env, Dir: s.WorkingDir}, s.Sandbox, try)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p := problem.Newf(problem.Conflict, "Server '%s' cannot be tried in a sandbox: %v.", in.Name, err).Because(err)
		if _, is := errors.AsType[*sandbox.UnenforceableError](err); is {
			return p.WithHint("Use mode container, or run `mcpproxy doctor`.")
		}
		return p.WithHint("See docs/guide/sandbox.md for the commands that a sandbox supports.")
	}
	if !catalog.MayStartServer(*s, a.Book.ServerView(s.Name)) {
		err = suggest(nil)
	} else {
		err = a.runUserAction(c, newActionRecord(c, activity.ServerChange, tool.ID{Server: in.Name}, trySandbox, ""), func() error {
			return suggest(func(r sandbox.Rules) sandbox.Trial { return v.trials.TrySandbox(ctx, *s, r) })
		})
	}
	if err != nil {
		return out, err
	}
	if out.Sandbox, err = json.Marshal(found.Rules); err != nil {
		return out, err
	}
	out.Text, out.Reasons, out.LeftOut, out.Ready, out.Problem = found.Rules.Text(), found.Reasons, found.LeftOut, found.Ready, found.Failure
	out.Started, out.Untried = found.Started, found.Untried
	if out.Ready {
		out.Problem = ""
	}
	out.Command = "mcpproxy upstream set " + ShellQuote(s.Name) + " sandbox " + ShellQuote(string(out.Sandbox))
	return out, nil
}
