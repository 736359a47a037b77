package cli

import (
	"context"
	"fmt"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// kindFlag is the --kind flag: the commands for tools with it decide about prompts, resources, templates and instructions.
type kindFlag string

// kind parses the flag.
func (k kindFlag) kind() (tool.DefinitionKind, error) {
	for _, kind := range append(tool.PrimitiveKinds(), tool.KindTool) {
		if kind.Label() == string(k) {
			return kind, nil
		}
	}
	return "", usage("Invalid value '"+string(k)+"' for --kind: must be one of "+strings.Join(kindWords(), ", ")+".", "")
}

// definition parses an argument that names a definition.
func (k kindFlag) definition(arg string) (definition, error) {
	kind, err := k.kind()
	if err != nil {
		return definition{}, err
	}
	return parseDefinition(kind, arg)
}

// definition names the definition of a tool, prompt, resource, template or instructions. Instructions have no name.
type definition ops.PrimitiveRef

// parseDefinition parses server:name; for instructions the server alone.
func parseDefinition(kind tool.DefinitionKind, arg string) (definition, error) {
	if kind == tool.KindTool {
		id, err := toolID(arg)
		return definition{id.Server, kind, id.Tool}, err
	}
	ref, err := ops.NamedDefinition{Name: arg, Kind: kind}.ParseRef()
	if p := problem.From(err); p != nil {
		return definition{}, usage(printable(p.Message), p.Hint)
	}
	return definition(ref), nil
}

// id returns the name in lists.
func (d definition) id() string {
	if d.Kind == tool.KindInstructions {
		return d.Server
	}
	return d.Server + ":" + d.Name
}

// arg returns the arguments of a command that name it.
func (d definition) arg() string {
	if d.Kind == tool.KindTool {
		return quotedWord(d.id())
	}
	return "--kind " + d.Kind.Label() + " " + quotedWord(d.id())
}

// title returns the name within a sentence.
func (d definition) title() string {
	switch d.Kind {
	case tool.KindTool:
		return visibleLine(d.id())
	case tool.KindInstructions:
		return "the instructions of " + visibleLine(d.Server)
	}
	return "the " + d.Kind.Label() + " " + visibleLine(d.id())
}

// heading is title at the start of a sentence.
func (d definition) heading() string {
	if d.Kind == tool.KindTool {
		return d.title()
	}
	return sentence(d.title())
}

// subject is heading with the verb.
func (d definition) subject() string {
	if d.Kind == tool.KindInstructions {
		return d.heading() + " are"
	}
	return d.heading() + " is"
}

// question asks whether to approve it.
func (d definition) question() string {
	if d.Kind == tool.KindTool {
		return "Approve this definition of " + d.title() + "?"
	}
	return "Approve " + d.title() + "?"
}

func (d definition) toolRef() ops.ToolRef { return ops.ToolRef{Server: d.Server, Tool: d.Name} }

func (d definition) diff(ctx context.Context, c *api.Client) (difference, error) {
	if d.Kind == tool.KindTool {
		t, err := api.DiffTool.Call(ctx, c, d.toolRef())
		return difference{"Tool", t.Name, t, t}, err
	}
	o, err := api.Primitives[d.Kind].Diff.Call(ctx, c, ops.PrimitiveRef(d))
	return difference{sentence(o.Kind.Label()), definition{o.Server, o.Kind, o.Name}.id(), ops.ToolDiff{
		Status: o.Status, Reason: o.Reason, Fingerprint: o.Fingerprint, Comparison: o.Comparison, ScanResult: o.ScanResult,
	}, o}, err
}

// approve returns the daemon's answer, and the status of a tool that is still locked.
func (d definition) approve(ctx context.Context, c *api.Client, s ops.SeenFingerprint) (answer any, status string, err error) {
	if d.Kind == tool.KindTool {
		v, err := api.ApproveTool.Call(ctx, c, ops.ToolApproval{ToolDecision: ops.ToolDecision{ToolRef: d.toolRef(), SeenFingerprint: s}})
		return v, v.Status, err
	}
	answer, err = api.Primitives[d.Kind].Approve.Call(ctx, c, ops.PrimitiveDecision{PrimitiveRef: ops.PrimitiveRef(d), SeenFingerprint: s})
	return answer, "", err
}

func (d definition) block(ctx context.Context, c *api.Client, s ops.SeenFingerprint) (answer any, err error) {
	if d.Kind == tool.KindTool {
		return api.BlockTool.Call(ctx, c, ops.ToolDecision{ToolRef: d.toolRef(), SeenFingerprint: s})
	}
	return api.Primitives[d.Kind].Block.Call(ctx, c, ops.PrimitiveDecision{PrimitiveRef: ops.PrimitiveRef(d), SeenFingerprint: s})
}

func (d definition) unblock(ctx context.Context, c *api.Client, s ops.SeenFingerprint) (answer any, err error) {
	if d.Kind == tool.KindTool {
		return api.UnblockTool.Call(ctx, c, ops.ToolDecision{ToolRef: d.toolRef(), SeenFingerprint: s})
	}
	return api.Primitives[d.Kind].Unblock.Call(ctx, c, ops.PrimitiveDecision{PrimitiveRef: ops.PrimitiveRef(d), SeenFingerprint: s})
}

// approveOne shows a definition, asks, and approves what was shown.
func approveOne(r *run, ctx context.Context, c *api.Client, of definition, given consent) error {
	seen := ops.SeenFingerprint{Fingerprint: given.fingerprint}
	if seen.Fingerprint == "" {
		d, err := of.diff(ctx, c)
		if err != nil {
			return err
		}
		if d.Reason == "" {
			return r.print(d.answer, func(p *printer) { p.line("%s approved already.", of.subject()) })
		}
		if r.output == formatTable {
			writeDiff(r.printer(r.Stdout), d)
			fmt.Fprintln(r.Stdout)
		}
		if err := r.confirm(ctx, given, of.question(), approveHint("tools diff", "tools approve", of.arg(), d.Fingerprint)); err != nil {
			return err
		}
		seen.Fingerprint = d.Fingerprint
	}
	answer, status, err := of.approve(ctx, c, seen)
	if err != nil {
		return conflictHint(err, "approved", "mcpproxy tools diff "+of.arg())
	}
	return r.print(answer, func(p *printer) {
		p.line("Approved %s.", of.title())
		noteStillLocked(p, status)
	})
}

// blockOne blocks a definition: the listed one, unless a fingerprint is given.
func blockOne(r *run, ctx context.Context, c *api.Client, of definition, seen ops.SeenFingerprint) error {
	if seen.Fingerprint == "" {
		d, err := of.diff(ctx, c)
		if err != nil {
			return err
		}
		seen.Fingerprint = d.Fingerprint
	}
	answer, err := of.block(ctx, c, seen)
	if err != nil {
		return conflictHint(err, "blocked", "mcpproxy tools diff "+of.arg())
	}
	return r.print(answer, func(p *printer) {
		p.line("Blocked %s. To undo it: `mcpproxy tools unblock %s`.", of.title(), of.arg())
	})
}

// unblockOne unblocks a definition: the listed one, unless a fingerprint is given.
func unblockOne(r *run, ctx context.Context, c *api.Client, of definition, seen ops.SeenFingerprint) error {
	if seen.Fingerprint == "" {
		d, err := of.diff(ctx, c)
		if err != nil {
			return err
		}
		seen.Fingerprint = d.Fingerprint
	}
	answer, err := of.unblock(ctx, c, seen)
	if err != nil {
		return conflictHint(err, "unblocked", "mcpproxy tools diff "+of.arg())
	}
	return r.print(answer, func(p *printer) {
		p.line("Unblocked %s. It waits for your approval: `mcpproxy tools approve %s`.", of.title(), of.arg())
	})
}

// approveHint explains how to approve without a terminal.
func approveHint(look, approve, name, fingerprint string) string {
	return fmt.Sprintf("Look with `mcpproxy %s %s`, then approve exactly that with `mcpproxy %s %s --fingerprint %s`; or approve whatever it is with --yes.",
		look, name, approve, name, visibleLine(fingerprint))
}

// conflictHint adds the next step to the error that the definition has changed since.
func conflictHint(err error, done, command string) error {
	if p := problem.From(err); p.Code == problem.Conflict {
		return p.WithHint("Nothing was " + done + ". See what is there now with `" + command + "`.")
	}
	return err
}

// noteStillLocked notes why an approved tool still cannot be called.
func noteStillLocked(p *printer, status string) {
	for _, s := range policy.Statuses() {
		if status == s.String() {
			p.note("It cannot be called all the same, its status is %s. %s", status, s.Remedy())
		}
	}
}
