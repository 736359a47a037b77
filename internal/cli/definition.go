package cli

import (
	"context"
	"fmt"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
)

// kindFlag is the flag with which the commands that decide about tools decide
// about what else servers offer.
type kindFlag string

// kind reads the flag.
func (k kindFlag) kind() (tool.Kind, error) {
	for _, kind := range append(tool.OfferKinds(), tool.KindTool) {
		if kind.Word() == string(k) {
			return kind, nil
		}
	}
	return "", usage("Invalid value '"+string(k)+"' for --kind: must be one of "+strings.Join(kindWords(), ", ")+".", "")
}

// definition returns what an argument names.
func (k kindFlag) definition(arg string) (definition, error) {
	kind, err := k.kind()
	switch {
	case err != nil:
		return nil, err
	case kind == tool.KindTool:
		id, err := toolID(arg)
		return toolRef(id), err
	}
	return offerNamed(kind, arg)
}

// definition is what a person decides about: the definition of a tool, or of
// something else that a server offers.
type definition interface {
	arg() string      // how it is given to a command
	title() string    // how it is called in a sentence
	subject() string  // how it begins one, with the verb
	question() string // whether to approve it
	diff(ctx context.Context, c *api.Client) (difference, error)
	// approve and block return the answer of the daemon, and what is to be said of
	// it beside that it is done.
	approve(ctx context.Context, c *api.Client, s gateway.Seen) (answer any, more func(*printer), err error)
	block(ctx context.Context, c *api.Client, s gateway.Seen) (answer any, err error)
}

// toolRef is a tool as a definition.
type toolRef gateway.ToolRef

func (t toolRef) arg() string      { return quotedWord(tool.ID(t).String()) }
func (t toolRef) title() string    { return visibleLine(tool.ID(t).String()) }
func (t toolRef) subject() string  { return t.title() + " is" }
func (t toolRef) question() string { return "Approve this definition of " + t.title() + "?" }

func (t toolRef) diff(ctx context.Context, c *api.Client) (difference, error) {
	d, err := api.DiffTool.Call(ctx, c, gateway.ToolRef(t))
	return difference{"Tool", d.Name, d, d}, err
}

func (t toolRef) approve(ctx context.Context, c *api.Client, s gateway.Seen) (any, func(*printer), error) {
	v, err := api.ApproveTool.Call(ctx, c, gateway.ToolDecision{ToolRef: gateway.ToolRef(t), Seen: s})
	return v, func(p *printer) { stillLocked(p, v) }, err
}

func (t toolRef) block(ctx context.Context, c *api.Client, s gateway.Seen) (any, error) {
	return api.BlockTool.Call(ctx, c, gateway.ToolDecision{ToolRef: gateway.ToolRef(t), Seen: s})
}

// offerRef names an offer on the command line: server:name, of instructions the
// server alone.
type offerRef gateway.OfferRef

func offerNamed(kind tool.Kind, arg string) (offerRef, error) {
	server, name, _ := strings.Cut(arg, ":")
	if err := tool.CheckServerName(server); err != nil {
		return offerRef{}, usage("Invalid name '"+printable(arg)+"': "+err.Error()+".", "Write it as `mcpproxy approvals` does.")
	}
	if (name == "") != (kind == tool.KindInstructions) {
		if kind == tool.KindInstructions {
			return offerRef{}, usage("A server has its instructions once: give its name alone.", "")
		}
		return offerRef{}, usage("Invalid name '"+printable(arg)+"': it is the server, a colon and the "+kind.Word()+".", "Write it as `mcpproxy approvals` does.")
	}
	return offerRef{server, kind, name}, nil
}

// arg is how it is given to a command.
func (o offerRef) arg() string {
	name := o.Server
	if o.Kind != tool.KindInstructions {
		name += ":" + o.Name
	}
	return "--kind " + o.Kind.Word() + " " + quotedWord(name)
}

// title is how it is called in a sentence.
func (o offerRef) title() string {
	if o.Kind == tool.KindInstructions {
		return "the instructions of " + visibleLine(o.Server)
	}
	return "the " + o.Kind.Word() + " " + visibleLine(o.Server+":"+o.Name)
}

func refOf(v gateway.WaitingOffer) offerRef { return offerRef{v.Server, v.Kind, v.Name} }

func (o offerRef) question() string { return "Approve " + o.title() + "?" }

func (o offerRef) diff(ctx context.Context, c *api.Client) (difference, error) {
	d, err := api.Offers[o.Kind].Diff.Call(ctx, c, gateway.OfferRef(o))
	return difference{sentence(d.Kind.Word()), strings.TrimSuffix(d.Server+":"+d.Name, ":"), gateway.ToolDiff{
		Status: d.Status, Reason: d.Reason, Fingerprint: d.Fingerprint, Approved: d.Approved, Definition: d.Definition,
		Changes: d.Changes, Truncated: d.Truncated, Verdict: d.Verdict, Findings: d.Findings,
	}, d}, err
}

func (o offerRef) approve(ctx context.Context, c *api.Client, s gateway.Seen) (any, func(*printer), error) {
	d, err := api.Offers[o.Kind].Approve.Call(ctx, c, gateway.OfferDecision{OfferRef: gateway.OfferRef(o), Seen: s})
	return d, func(*printer) {}, err
}

func (o offerRef) block(ctx context.Context, c *api.Client, s gateway.Seen) (any, error) {
	return api.Offers[o.Kind].Block.Call(ctx, c, gateway.OfferDecision{OfferRef: gateway.OfferRef(o), Seen: s})
}

// subject begins a sentence about it.
func (o offerRef) subject() string {
	title := sentence(o.title())
	if o.Kind == tool.KindInstructions {
		return title + " are"
	}
	return title + " is"
}

// approveOne shows a definition, asks, and approves what was shown.
func approveOne(r *run, ctx context.Context, c *api.Client, of definition, given consent) error {
	seen := gateway.Seen{Fingerprint: given.fingerprint}
	if seen.Fingerprint == "" {
		d, err := of.diff(ctx, c)
		if err != nil {
			return err
		}
		if d.Reason == "" {
			return r.print(d.answer, func(p *printer) { fmt.Fprintf(p, "%s approved already.\n", of.subject()) })
		}
		if r.output == formatTable {
			writeDiff(r.printer(r.Stdout), d)
			fmt.Fprintln(r.Stdout)
		}
		if err := r.consented(ctx, given, of.question(), seeThenSay("tools diff", "tools approve", of.arg(), d.Fingerprint)); err != nil {
			return err
		}
		seen.Fingerprint = d.Fingerprint
	}
	answer, more, err := of.approve(ctx, c, seen)
	if err != nil {
		return lookAgain(err, "approved", "mcpproxy tools diff "+of.arg())
	}
	return r.print(answer, func(p *printer) {
		fmt.Fprintf(p, "Approved %s.\n", of.title())
		more(p)
	})
}

// blockOne refuses a definition; without a fingerprint the one that is there.
func blockOne(r *run, ctx context.Context, c *api.Client, of definition, seen gateway.Seen) error {
	if seen.Fingerprint == "" {
		d, err := of.diff(ctx, c)
		if err != nil {
			return err
		}
		seen.Fingerprint = d.Fingerprint
	}
	answer, err := of.block(ctx, c, seen)
	if err != nil {
		return lookAgain(err, "blocked", "mcpproxy tools diff "+of.arg())
	}
	return r.print(answer, func(p *printer) { fmt.Fprintf(p, "Blocked %s.\n", of.title()) })
}

// seeThenSay is how to approve without a terminal.
func seeThenSay(look, approve, name, fingerprint string) string {
	return fmt.Sprintf("Look with `mcpproxy %s %s`, then approve exactly that with `mcpproxy %s %s --fingerprint %s`; or approve whatever it is with --yes.",
		look, name, approve, name, visibleLine(fingerprint))
}

// lookAgain says what to do when something else was there than was seen.
func lookAgain(err error, done, command string) error {
	if p := problem.From(err); p.Code == problem.Conflict {
		return p.WithHint("Nothing was " + done + ". See what is there now with `" + command + "`.")
	}
	return err
}

// stillLocked says why a tool cannot be called all the same.
func stillLocked(p *printer, v gateway.ToolView) {
	for _, s := range policy.Statuses() {
		if v.Status == s.String() {
			p.note("It cannot be called all the same, its status is %s. %s", v.Status, s.Remedy())
		}
	}
}
